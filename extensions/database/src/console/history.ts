/** The statements of the console, each for the user who ran it. */
import { findRows } from '@portico/sdk/db';

import { HistoryEntity, type HistoryRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { mayHoldPassword } from './statement.ts';

const dayMs = 86_400_000;
/** Statements that are kept of one user. */
const mostOfActor = 1_000;
/** What is kept of a statement that may hold a password. */
const withheld = '(a statement with a password is not kept)';

/** A statement that was run. */
export type Ran = Omit<HistoryRow, 'id' | 'at'>;
/** A statement of the history, to be read. */
export type Remembered = HistoryRow;

/** Keeps the statements that users ran in the console, sealed. */
export class History {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Keeps one statement. */
    async add(ran: Ran): Promise<void> {
        if (this.#ctx.settings.historyDays === 0) {
            return;
        }
        const sql = await this.#ctx.secrets.seal(mayHoldPassword(ran.sql) ? withheld : ran.sql);
        await this.#ctx.db.write(async (em) => {
            await em.insert(HistoryEntity, { ...ran, sql, at: Date.now() - ran.durationMs });
        });
    }

    /** Statements of one user, newest first, and one more than `limit` where there are more. */
    async list(
        actor: string,
        { serverId, before, limit }: { serverId?: number | undefined; before: number | null; limit: number }
    ): Promise<readonly Remembered[]> {
        const where = {
            actor,
            ...(serverId === undefined ? {} : { serverId }),
            ...(before === null ? {} : { id: { $lt: before } })
        };
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, HistoryEntity, where, { orderBy: { id: 'desc' }, limit: limit + 1 })
        );
        return Promise.all(rows.map(async (row) => ({ ...row, sql: await this.#ctx.secrets.open(row.sql) })));
    }

    /** Forgets all statements of one user. */
    async clear(actor: string): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(HistoryEntity, { actor })));
    }

    /** Forgets what is too old, or too much. */
    async expire(): Promise<void> {
        const oldest = Date.now() - this.#ctx.settings.historyDays * dayMs;
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(HistoryEntity, { at: { $lt: oldest } });
            await em.execute(
                'delete from history where id in (select id from (select id, row_number() over (partition by actor order by id desc) as place from history) where place > ?)',
                [mostOfActor]
            );
        });
    }
}
