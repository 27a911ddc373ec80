/** Dumps that are made by themselves: each server with a schedule has all its databases dumped. */
import { errors, type Scheduled } from '@portico/sdk';

import type { DumpSchedule } from '../entities.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Servers } from '../servers/servers.ts';
import type { Ctx } from '../settings.ts';
import type { Dumps } from './dumps.ts';

/** What the schedules of dumps work with. */
export interface DumpSchedulesOptions {
    readonly ctx: Ctx;
    readonly servers: Servers;
    readonly dumps: Dumps;
    readonly target: FindTarget;
}

/** Keeps the schedules of all servers. */
export class DumpSchedules {
    readonly #options: DumpSchedulesOptions;
    readonly #scheduled = new Map<number, { readonly rule: string; readonly end: Scheduled }>();

    constructor(options: DumpSchedulesOptions) {
        this.#options = options;
    }

    /** A schedule that the panel takes for a moment is one that it takes for good. @throws VALIDATION_FAILED 40001 */
    async check(schedule: DumpSchedule | null | undefined): Promise<void> {
        if (schedule === null || schedule === undefined) {
            return;
        }
        try {
            const trial = await this.#options.ctx.schedule('trial', timesOf(schedule), () => undefined);
            await trial[Symbol.asyncDispose]();
        } catch (error) {
            const message = `It cannot be understood: ${(error as Error).message}`;
            throw errors.invalid([{ path: 'dumpSchedule', message }]);
        }
    }

    /** Brings the schedules in line with what is stored. */
    async refresh(): Promise<void> {
        const rows = await this.#options.servers.list();
        const wanted = new Map(
            rows.flatMap(({ id, dumpSchedule }) =>
                dumpSchedule === null ? [] : [[id, dumpSchedule] as const]
            )
        );
        for (const [id, { rule, end }] of this.#scheduled) {
            if (JSON.stringify(wanted.get(id)) !== rule) {
                this.#scheduled.delete(id);
                await end[Symbol.asyncDispose]();
            }
        }
        for (const [id, schedule] of wanted) {
            if (!this.#scheduled.has(id)) {
                const times = { ...timesOf(schedule), missed: 'run-once', overlap: 'skip' } as const;
                const end = await this.#options.ctx.schedule(`dumps-${id}`, times, () => this.#run(id));
                this.#scheduled.set(id, { rule: JSON.stringify(schedule), end });
            }
        }
    }

    /** Begins the dumps of one server, and tells people when they cannot begin. */
    async #run(id: number): Promise<void> {
        const { ctx, dumps, target } = this.#options;
        const { server, kind, admin } = await target(id);
        try {
            const all = await admin.use(null, (session) => kind.databases.list(session));
            const databases = all.filter(({ system }) => !system).map(({ name }) => name);
            if (databases.length > 0) {
                await dumps.begin(id, { databases, format: 'native' });
            }
        } catch (error) {
            await ctx.notify({
                event: 'dumps-failed',
                severity: 'error',
                title: `The scheduled dumps of ${server.name} could not begin`.slice(0, 200),
                text: (error as Error).message,
                data: { server: id }
            });
        }
    }
}

function timesOf({ cron, timezone }: DumpSchedule): { cron: string; timezone?: string } {
    return { cron, ...(timezone === undefined ? {} : { timezone }) };
}
