/** The records of all plugins. They are held in memory, because each request for the list reads them; a change is durable before it has any effect. */
import type { PluginPackage } from '@portico/registry';

import type { Database, Transaction } from '../../../platform/database/database.ts';
import { askedOf } from '../consent/capabilities.ts';
import { PluginEntity, type PluginRow } from './entities.ts';
import type { PluginRecord } from './plugin.ts';

/** Settings that wait for a package that was not seen yet. */
export interface WaitingSettings {
    /** In the form of a record, secrets sealed; null when none wait. */
    find(name: string, packageName: string): PluginRecord['settings'] | null;
    forget(tx: Transaction, name: string): Promise<void>;
}

/** All records, by plugin name and package. */
export class Records {
    readonly #db: Database;
    #waiting: WaitingSettings = { find: () => null, forget: () => Promise.resolve() };
    readonly #records = new Map<string, PluginRecord>();

    static async open(db: Database): Promise<Records> {
        const records = new Records(db);
        for (const row of await db.read((em) => em.find(PluginEntity, {}))) {
            records.#records.set(keyOf(row.name, row.package), recordOf(row));
        }
        return records;
    }

    private constructor(db: Database) {
        this.#db = db;
    }

    /** Sets where packages that are seen for the first time get their settings from. */
    inheritFrom(waiting: WaitingSettings): void {
        this.#waiting = waiting;
    }

    /** The record of a package under a name; null when it was never seen. */
    get(name: string, packageName: string): PluginRecord | null {
        return this.#records.get(keyOf(name, packageName)) ?? null;
    }

    /** The records of all packages that were seen under a name, the oldest first. */
    of(name: string): readonly PluginRecord[] {
        return [...this.#records.values()].filter((record) => record.name === name);
    }

    all(): readonly PluginRecord[] {
        return [...this.#records.values()];
    }

    /** Writes a record, new or changed, as part of a transaction; memory has it after the commit. */
    async put(tx: Transaction, record: PluginRecord): Promise<void> {
        await tx.em.upsert(PluginEntity, rowOf(record));
        tx.afterCommit(() => this.#records.set(keyOf(record.name, record.package), record));
    }

    /** Makes records of packages that are seen for the first time. A package in a trusted folder is enabled with all that it asks for, unless another package had its name. */
    async enrol(
        seen: readonly { readonly plugin: PluginPackage; readonly trusted: boolean }[],
        at: number
    ): Promise<void> {
        const changed = seen.flatMap(({ plugin, trusted }): PluginRecord[] => {
            const { name } = plugin.manifest;
            const known = this.get(name, plugin.package);
            if (known !== null) {
                return JSON.stringify(known.seen) === JSON.stringify(plugin)
                    ? []
                    : [{ ...known, seen: plugin }];
            }
            const asked = askedOf(plugin.manifest);
            return [
                {
                    ...newRecord(plugin, at),
                    settings: this.#waiting.find(name, plugin.package) ?? {},
                    ...(trusted && this.of(name).length === 0
                        ? { enabled: true, grants: asked, decided: asked }
                        : {})
                }
            ];
        });
        if (changed.length > 0) {
            await this.#db.write(async (tx) => {
                for (const record of changed) {
                    await this.put(tx, record);
                    if (
                        this.get(record.name, record.package) === null &&
                        Object.keys(record.settings).length > 0
                    ) {
                        await this.#waiting.forget(tx, record.name);
                    }
                }
            });
        }
    }

    /** Assigns the permissions of a plugin's name to this package. `forget` is called when another package had them. */
    async takeArea(
        { name, package: packageName }: PluginRecord,
        forget: (tx: Transaction, area: string) => Promise<void>
    ): Promise<void> {
        if (this.get(name, packageName)?.holdsArea !== false) {
            return;
        }
        await this.#db.write(async (tx) => {
            const own = this.get(name, packageName);
            await (own === null ? null : this.putRunning(tx, own, forget));
        });
    }

    /** Writes the record of a package that runs, and assigns the permissions of the name to it. */
    async putRunning(
        tx: Transaction,
        record: PluginRecord,
        forget: (tx: Transaction, area: string) => Promise<void>
    ): Promise<void> {
        const others = this.of(record.name).filter(
            (other) => other.package !== record.package && other.holdsArea
        );
        for (const other of others) {
            await this.put(tx, { ...other, holdsArea: false });
        }
        await this.put(tx, { ...record, holdsArea: true });
        if (others.length > 0) {
            await forget(tx, record.name);
        }
    }

    /** Deletes a record and the times of its schedules, so that the next package of the name has no missed runs. */
    async remove(
        tx: Transaction,
        { name, package: packageName }: Pick<PluginRecord, 'name' | 'package'>
    ): Promise<void> {
        await tx.em.nativeDelete(PluginEntity, { name, package: packageName });
        await tx.em.execute('delete from plugin_schedules where plugin = ?', [name], 'run');
        tx.afterCommit(() => this.#records.delete(keyOf(name, packageName)));
    }

    /** Changes what the panel itself notes on a record; the version stays. @returns null when the record is gone */
    note(
        name: string,
        packageName: string,
        change: Partial<Pick<PluginRecord, 'failure' | 'failures' | 'quarantinedAt' | 'seen'>>
    ): Promise<PluginRecord | null> {
        return this.#db.write(async (tx) => {
            const before = this.get(name, packageName);
            if (before === null) {
                return null;
            }
            const after = { ...before, ...change };
            await this.put(tx, after);
            return after;
        });
    }
}

/** The record of a package that is seen for the first time: disabled and empty, until an admin decides. @param at - milliseconds since 1970 */
export function newRecord(plugin: PluginPackage, at: number): PluginRecord {
    return {
        name: plugin.manifest.name,
        package: plugin.package,
        enabled: false,
        grants: {},
        decided: {},
        settings: {},
        failures: [],
        failure: null,
        quarantinedAt: null,
        holdsArea: false,
        seen: plugin,
        firstSeenAt: at,
        version: 1
    };
}

const keyOf = (name: string, packageName: string): string => `${name}\n${packageName}`;

function recordOf({ grants, decided, settings, failures, failure, seen, ...row }: PluginRow): PluginRecord {
    return {
        ...row,
        enabled: Boolean(row.enabled),
        holdsArea: Boolean(row.holdsArea),
        quarantinedAt: row.quarantinedAt ?? null,
        grants: parse(grants),
        decided: parse(decided),
        settings: parse(settings),
        failures: parse(failures),
        seen: parse(seen),
        failure: failure === null || failure === undefined ? null : parse(failure)
    };
}

function rowOf({ grants, decided, settings, failures, failure, seen, ...record }: PluginRecord): PluginRow {
    return {
        ...record,
        grants: JSON.stringify(grants),
        decided: JSON.stringify(decided),
        settings: JSON.stringify(settings),
        failures: JSON.stringify(failures),
        seen: JSON.stringify(seen),
        failure: failure === null ? null : JSON.stringify(failure)
    };
}

function parse<T>(text: string): T {
    return JSON.parse(text) as T;
}
