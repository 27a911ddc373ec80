/** A package takes over the data of another package that had its name. The caller takes over the record. */
import type { Transaction } from '../../../platform/database/database.ts';
import type { PluginRecord } from './plugin.ts';
import type { Records } from './records.ts';

/** Assigns the data to the package, and deletes the record of the other one. */
export async function adopt(
    tx: Transaction,
    records: Records,
    { name, package: to }: PluginRecord,
    from: PluginRecord
): Promise<void> {
    await tx.em.execute(
        'update plugin_data set current = 0 where name = ? and package = ?',
        [name, to],
        'run'
    );
    await tx.em.execute(
        'update plugin_data set package = ? where name = ? and package = ?',
        [to, name, from.package],
        'run'
    );
    await records.remove(tx, from);
}
