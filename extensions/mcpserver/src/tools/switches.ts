/** What an admin decided about single tools. */
import { type ApprovalWay, SwitchEntity } from '../entities.ts';
import type { Ctx } from '../settings.ts';

/** What an admin decided about one tool. */
export interface ToolSwitch {
    readonly enabled: boolean;
    /** Null: as the setting says. */
    readonly approval: ApprovalWay | null;
}

const untouched: ToolSwitch = { enabled: true, approval: null };

/** The switches of all tools, in memory; the database has them, too. */
export class Switches {
    readonly #ctx: Ctx;
    #all: ReadonlyMap<string, ToolSwitch> = new Map();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Reads what is stored. */
    async load(): Promise<void> {
        const rows = await this.#ctx.db.read((em) => em.find(SwitchEntity, {}));
        this.#all = new Map(
            rows.map(({ name, enabled, approval }) => [name, { enabled, approval: approval ?? null }])
        );
    }

    /** What holds for a tool. */
    of(tool: string): ToolSwitch {
        return this.#all.get(tool) ?? untouched;
    }

    /** Changes what holds for a tool. */
    async set(tool: string, change: Partial<ToolSwitch>): Promise<ToolSwitch> {
        const next = { ...this.of(tool), ...change };
        await this.#ctx.db.write((em) => em.upsert(SwitchEntity, { name: tool, ...next }));
        this.#all = new Map([...this.#all, [tool, next]]);
        return next;
    }
}
