/** Records of plugins: all in memory, since every request for the list asks, and durable before anything follows from them. */
import type { PluginPackage } from '@portico/registry';

import type { Database, Transaction } from '../../../platform/database/database.ts';
import { askedOf } from '../consent/capabilities.ts';
import { PluginEntity, type PluginRow } from './entities.ts';
import type { PluginRecord } from './plugin.ts';

/** Settings that wait for a package until it is seen. */
export interface Heritage {
    /** As they are kept on a record; null when nothing waits. */
    find(name: string, packageName: string): PluginRecord['settings'] | null;
    forget(tx: Transaction, name: string): Promise<void>;
}

export class Records {
    readonly #db: Database;
    #heritage: Heritage = { find: () => null, forget: () => Promise.resolve() };
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

    /** From now on, packages that are seen for the first time have the settings that wait for them. */
    inheritFrom(heritage: Heritage): void {
        this.#heritage = heritage;
    }

    /** The record of a package under a name; null when it was never seen. */
    get(name: string, packageName: string): PluginRecord | null {
        return this.#records.get(keyOf(name, packageName)) ?? null;
    }

    /** Every package that was seen under a name. */
    of(name: string): readonly PluginRecord[] {
        return [...this.#records.values()].filter((record) => record.name === name);
    }

    all(): readonly PluginRecord[] {
        return [...this.#records.values()];
    }

    /** Writes one inside a transaction, new or changed; memory follows the commit. */
    async put(tx: Transaction, record: PluginRecord): Promise<void> {
        await tx.em.upsert(PluginEntity, rowOf(record));
        tx.afterCommit(() => this.#records.set(keyOf(record.name, record.package), record));
    }

    /** Makes records of packages that are seen for the first time. One in a trusted folder, whose name nobody had, gets what it asks for. */
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
                    settings: this.#heritage.find(name, plugin.package) ?? {},
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
                        await this.#heritage.forget(tx, record.name);
                    }
                }
            });
        }
    }

    /** From now on a package's permissions are those that its name has. `forget` is called when another package had them. */
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

    /** Writes the record of a package that runs: it takes its name's permissions. */
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

    /** Forgets one, and what its schedules waited for: whoever has the name next missed nothing. */
    async remove(
        tx: Transaction,
        { name, package: packageName }: Pick<PluginRecord, 'name' | 'package'>
    ): Promise<void> {
        await tx.em.nativeDelete(PluginEntity, { name, package: packageName });
        await tx.em.execute('delete from plugin_schedules where plugin = ?', [name], 'run');
        tx.afterCommit(() => this.#records.delete(keyOf(name, packageName)));
    }

    /** Changes what the panel itself notes on a record: not a change that counts as a version. Null when the record is gone. */
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

/** A record of a package that is seen for the first time: disabled and empty, until somebody decides. */
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
