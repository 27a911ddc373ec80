/** Chooses the data that a version begins with: the present data, unless the version cannot read them. */
import type { LockEntry, PluginPackage } from '@portico/registry';

import { fail } from '../../../platform/errors.ts';
import type { PluginData } from '../data/data-folders.ts';
import type { PluginDataRow } from '../records/entities.ts';

/** What the choice depends on. */
export interface SourceChoice {
    readonly data: Pick<PluginData, 'rowOf' | 'earlierOf' | 'migrationsOf'>;
    readonly name: string;
    readonly plugin: PluginPackage;
    readonly entry: LockEntry;
    /** An admin gives up every change since. */
    readonly restoreData: boolean;
}

/**
 * Chooses the data for a version; null when there are none. An earlier version gets the present data when nothing was migrated since, so that no change
 * is lost. Otherwise it gets the data that it left, unless a change was accepted since.
 *
 * @throws DATA_AHEAD 40911
 */
export function chooseSource({ data, name, plugin, entry, restoreData }: SourceChoice): PluginDataRow | null {
    const owner = { name, package: plugin.package };
    const now = data.rowOf(owner);
    const then = data.earlierOf(owner, entry.folder);
    if (now === null || then === null) {
        return now;
    }
    if (restoreData) {
        return then;
    }
    const known = data.migrationsOf(then);
    const ahead = data.migrationsOf(now).filter((migration) => !known.includes(migration));
    if (ahead.length === 0) {
        return now;
    }
    if (now.accepted) {
        throw fail.DATA_AHEAD(
            {
                plugin: name,
                from: now.version,
                to: entry.version,
                migrations: ahead,
                earlier: new Date(then.createdAt).toISOString()
            },
            {
                message: `${name} ${now.version} has migrated its data (${ahead.join(', ')}) and accepted changes since, which ${entry.version} cannot read. restoreData: true goes back to the data as ${entry.version} left them, and gives up every change since`
            }
        );
    }
    return then;
}
