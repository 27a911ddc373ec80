/** Another package takes over what belonged to the one that had its name: the record is moved by its caller, the data by name here. */
import type { Transaction } from '../../../platform/database/database.ts';
import type { PluginRecord } from './plugin.ts';
import type { Records } from './records.ts';

/** Moves the data, and forgets the record that it came with. */
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
