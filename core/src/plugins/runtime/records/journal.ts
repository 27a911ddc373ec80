/**
 * The journal of changes that plugins have begun. A plugin's data lies in a file of its own, which no transaction of the core covers. So a row
 * is written before a mutating handler runs, and is replaced by the audit entry with the outcome after it. A row that is found at boot
 * belongs to a change that was cut.
 */
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';
import type { AuditEntry, Recorder } from '../../../server/http/ports.ts';

/** Changes under way, each with the audit entry that it will become. */
export interface Journal {
    /** Writes the row of a change and resolves with its id. @throws STORAGE_FULL 50700; then the handler must not run */
    begin(entry: AuditEntry): Promise<number>;
    /** Deletes the row in the transaction that records the outcome. */
    end(tx: Transaction, row: number): Promise<void>;
    /** Deletes the row when the outcome is recorded elsewhere. */
    drop(row: number): Promise<void>;
    /** Turns the rows of a killed panel into audit entries with the outcome `failure`. Resolves with their number. */
    recover(): Promise<number>;
}

/** Code of a change whose end is unknown, since the panel was killed: HTTP status 503 × 100. */
const cutCode = 50300;

/** Makes the journal in the core's database. */
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
            db.writeEssential(async (tx) => {
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
