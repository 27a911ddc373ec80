/** The plugins that this process knows: what lies on the disk, and names of which only a record is left. */
import type { Skipped } from '@portico/registry';

import { emptyRuntime, type PluginRecord, type Runtime } from '../records/plugin.ts';
import type { Records } from '../records/records.ts';
import type { Inventory, PassedOver } from './inventory.ts';

/** One `Runtime` for each name, in the order in which plugins start. */
export class Runtimes {
    readonly #records: Records;
    readonly #runtimes = new Map<string, Runtime>();
    #inventory: Pick<Inventory, 'order' | 'passedOver' | 'skipped'> = {
        order: [],
        passedOver: [],
        skipped: []
    };

    constructor(records: Records) {
        this.#records = records;
    }

    /** Packages that cannot be used because another package has their name. */
    get passedOver(): readonly PassedOver[] {
        return this.#inventory.passedOver;
    }

    /** Folders that were not searched, each with the reason. */
    get skipped(): readonly Skipped[] {
        return this.#inventory.skipped;
    }

    /** One plugin; null when the name is unknown. */
    get(name: string): Runtime | null {
        return this.#runtimes.get(name) ?? null;
    }

    /** All plugins; each comes after the plugins that it requires. */
    list(): readonly Runtime[] {
        const { order } = this.#inventory;
        const rankOf = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
        return [...this.#runtimes.values()].sort(
            (one, two) => rankOf(one.name) - rankOf(two.name) || (one.name < two.name ? -1 : 1)
        );
    }

    /** Every plugin but one, with the record that applies to it now. */
    others(name: string): readonly { readonly runtime: Runtime; readonly record: PluginRecord | null }[] {
        return this.list()
            .filter((runtime) => runtime.name !== name)
            .map((runtime) => ({ runtime, record: this.recordOf(runtime) }));
    }

    /** Names of the plugins that require a plugin directly. */
    dependants(name: string): readonly string[] {
        return this.list()
            .filter(({ plugin }) => Object.hasOwn(plugin?.manifest.requires ?? {}, name))
            .map((runtime) => runtime.name);
    }

    /** Names of the running plugins that require a plugin, also through others; each comes before the plugins that it requires. */
    runningDependants(name: string): readonly string[] {
        const all = new Set<string>();
        const visit = (one: string): void => {
            for (const other of this.dependants(one)) {
                if (!all.has(other) && this.get(other)?.generation != null) {
                    all.add(other);
                    visit(other);
                }
            }
        };
        visit(name);
        return this.list()
            .map((runtime) => runtime.name)
            .filter((other) => all.has(other))
            .reverse();
    }

    /** The record that applies to a plugin now; null when its manifest was never readable. */
    recordOf({ name, plugin, found }: Pick<Runtime, 'name' | 'plugin' | 'found'>): PluginRecord | null {
        const packageName = plugin?.package ?? found?.lock?.package;
        if (packageName !== undefined) {
            return this.#records.get(name, packageName);
        }
        return found === null ? (this.#records.of(name).at(-1) ?? null) : null;
    }

    /** Takes over what was found on the disk. A plugin that runs keeps its package until it stops. */
    update(inventory: Inventory): void {
        this.#inventory = inventory;
        for (const { name, found, plugin, obstacle } of inventory.named) {
            const runtime = this.#runtimes.get(name) ?? emptyRuntime(name);
            this.#runtimes.set(name, runtime);
            runtime.obstacle = obstacle;
            if (runtime.generation === null) {
                if (runtime.found?.folder !== found.folder) {
                    Object.assign(runtime, { definition: null, importFailed: false, bootMs: null });
                }
                Object.assign(runtime, { found, plugin });
            }
        }
        this.#forgetMissing(new Set(inventory.named.map(({ name }) => name)));
    }

    /** Of a package that is gone from the disk, the record is left; without a record, the name is forgotten. */
    #forgetMissing(present: ReadonlySet<string>): void {
        for (const { name } of this.#records.all()) {
            if (!this.#runtimes.has(name)) {
                this.#runtimes.set(name, emptyRuntime(name));
            }
        }
        for (const runtime of this.#runtimes.values()) {
            if (!present.has(runtime.name) && runtime.generation === null) {
                Object.assign(runtime, { found: null, plugin: null, obstacle: null, definition: null });
                if (this.#records.of(runtime.name).length === 0) {
                    this.#runtimes.delete(runtime.name);
                }
            }
        }
    }
}
