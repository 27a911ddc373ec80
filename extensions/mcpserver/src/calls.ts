/** What agents called: rows in the database, saved a moment later so that a read costs no commit. */
import { type Actor, type PageOf, pages } from '@portico/sdk';
import type { InferEntity } from '@portico/sdk/db';

import { CallEntity, type NewCall } from './entities.ts';
import type { Ctx } from './settings.ts';

/** Which calls are listed. */
export interface CallFilter {
    /** Null: of all users. */
    readonly userId: number | null;
    readonly tool?: string | undefined;
    readonly outcome?: 'success' | 'failure' | undefined;
    readonly from?: string | undefined;
    readonly to?: string | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
}

const saveMs = 250;
const dayMs = 86_400_000;

/** The calls of all agents. */
export class Calls {
    readonly #ctx: Ctx;
    #waiting: NewCall[] = [];
    #timer: NodeJS.Timeout | null = null;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Adds a call. It is in the database after a quarter of a second; the audit log has it at once. */
    add(actor: Actor, call: Omit<NewCall, 'at' | 'userId' | 'username' | 'tokenId'>): void {
        this.#waiting.push({
            ...call,
            at: Date.now(),
            userId: actor.id ?? 0,
            username: actor.username ?? '',
            tokenId: actor.tokenId
        });
        this.#timer ??= setTimeout(() => {
            this.save().catch((error: unknown) =>
                this.#ctx.log.error('Calls could not be saved', { error: String(error) })
            );
        }, saveMs);
    }

    /** Saves what waits. */
    async save(): Promise<void> {
        clearTimeout(this.#timer ?? undefined);
        this.#timer = null;
        const rows = this.#waiting;
        this.#waiting = [];
        if (rows.length > 0) {
            await this.#ctx.db.write((em) => em.insertMany(CallEntity, rows));
        }
    }

    /** One page, the newest first. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
    async list({
        userId,
        tool,
        outcome,
        from,
        to,
        limit,
        cursor
    }: CallFilter): Promise<PageOf<InferEntity<typeof CallEntity>>> {
        await this.save();
        const after = pages.afterNumber({ cursor });
        const at = {
            ...(from === undefined ? {} : { $gte: Date.parse(from) }),
            ...(to === undefined ? {} : { $lt: Date.parse(to) })
        };
        const where = {
            ...(userId === null ? {} : { userId }),
            ...(tool === undefined ? {} : { tool }),
            ...(outcome === undefined ? {} : { code: outcome === 'success' ? 0 : { $ne: 0 } }),
            ...(Object.keys(at).length === 0 ? {} : { at }),
            ...(after === null ? {} : { id: { $lt: after } })
        };
        const rows = await this.#ctx.db.read((em) =>
            em.find(CallEntity, where, { orderBy: { id: 'desc' }, limit: limit + 1 })
        );
        return pages.read(rows, limit, ({ id }) => id);
    }

    /** How many were made since midnight UTC. */
    async today(): Promise<number> {
        await this.save();
        const midnight = Math.floor(Date.now() / dayMs) * dayMs;
        return this.#ctx.db.read((em) => em.count(CallEntity, { at: { $gte: midnight } }));
    }

    /** Removes what is older than `callsKept`. */
    async clean(): Promise<void> {
        const before = Date.now() - this.#ctx.settings.callsKept * dayMs;
        await this.#ctx.db.write((em) => em.nativeDelete(CallEntity, { at: { $lt: before } }));
    }
}
