/** Batches that wait to be sent. They lie in the database, so that a crash of the panel loses none. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

/** A batch is dropped after waiting for so long. */
const waitMs = 3_600_000;
/** All batches together; the oldest are dropped first. */
const mostBytes = 16 * 1024 * 1024;

/** A batch that waits. */
export interface WaitingBatch {
    readonly id: number;
    readonly body: Uint8Array;
}

/** Reads and writes the table. */
export class ExportQueue {
    readonly #db: Db;

    constructor(db: Db) {
        this.#db = db;
    }

    /** Adds a batch, and drops what waited for too long, or has no room. */
    async add(exportId: number, at: number, body: Buffer): Promise<void> {
        await this.#db.write(async (em) => {
            await em.execute(
                'insert into export_batches (export_id, at, body) values (?, ?, ?)',
                [exportId, at, body],
                'run'
            );
            const gone = `at < ? or id in (select id from (select id, sum(length(body)) over (order by id desc) as bytes from export_batches) where bytes > ?)`;
            const dropped = await em.execute<{ export_id: number; count: number }[]>(
                `select export_id, count(*) as count from export_batches where ${gone} group by export_id`,
                [at - waitMs, mostBytes]
            );
            if (dropped.length > 0) {
                await em.execute(`delete from export_batches where ${gone}`, [at - waitMs, mostBytes], 'run');
                for (const { export_id: id, count } of dropped) {
                    await countDropped(em, id, count);
                }
            }
        });
    }

    /** The oldest batch of an export; null when none waits. */
    async first(exportId: number): Promise<WaitingBatch | null> {
        const [row] = await this.#db.read((em) =>
            em.execute<WaitingBatch[]>(
                'select id, body from export_batches where export_id = ? order by id limit 1',
                [exportId]
            )
        );
        return row ?? null;
    }

    /** How many batches wait, by export. */
    async counts(): Promise<ReadonlyMap<number, number>> {
        const rows = await this.#db.read((em) =>
            em.execute<{ export_id: number; count: number }[]>(
                'select export_id, count(*) as count from export_batches group by export_id'
            )
        );
        return new Map(rows.map(({ export_id: id, count }) => [id, count]));
    }
}

/** Counts batches of an export that were not sent. */
export async function countDropped(em: EntityManager, exportId: number, count: number): Promise<void> {
    await em.execute('update exports set dropped = dropped + ? where id = ?', [count, exportId], 'run');
}
