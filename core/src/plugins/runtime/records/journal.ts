/**
 * What plugins are about to change. Their data lies in files of their own, which no transaction of the core reaches: a row is written
 * before a mutating handler runs, and becomes the chain's entry with the outcome after it. A row that is found at boot was cut.
 */
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';
import type { AuditEntry, Recorder } from '../../../server/http/ports.ts';

export interface Journal {
    /** @throws STORAGE_FULL 50700; then the handler must not run */
    begin(entry: AuditEntry): Promise<number>;
    /** Takes the row away in the transaction of the entry that speaks of the outcome. */
    end(tx: Transaction, row: number): Promise<void>;
    /** Takes it away where the outcome is recorded elsewhere. */
    drop(row: number): Promise<void>;
    /** Rows of a panel that was killed become entries that say so. Returns how many. */
    recover(): Promise<number>;
}

/** HTTP status × 100: the panel was not there to see the end. */
const cutCode = 50300;

export function createJournal(db: Database, recorder: Pick<Recorder, 'record'>, now: () => number): Journal {
    const writer = new Writer();
    const remove = async (tx: Transaction, row: number): Promise<void> => {
        (await writer.statement(tx, 'delete from plugin_journal where id = ?')).run(row);
    };
    return {
        begin: (entry) =>
            db.write(async (tx) => {
                const statement = await writer.statement(
                    tx,
                    'insert into plugin_journal (at, entry) values (?, ?) returning id'
                );
                return (statement.get(now(), JSON.stringify(entry)) as { id: number }).id;
            }),
        end: remove,
        drop: (row) => db.write((tx) => remove(tx, row)),
        recover: () =>
            db.write(async (tx) => {
                const rows = await tx.em.execute<{ id: number; entry: string }[]>(
                    'select id, entry from plugin_journal order by id'
                );
                for (const { id, entry } of rows) {
                    await recorder.record(tx, {
                        ...(JSON.parse(entry) as AuditEntry),
                        outcome: 'failure',
                        status: null,
                        code: cutCode
                    });
                    await remove(tx, id);
                }
                return rows.length;
            })
    };
}
