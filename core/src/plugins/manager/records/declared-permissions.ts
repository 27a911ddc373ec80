/** Keeps the role catalogue in step with the permissions that known plugins declare. */
import type { Logger } from '../../../platform/log/log.ts';
import { type DeclaredPermission, permissionsOf } from './permissions.ts';
import type { PluginRecord } from './plugin.ts';

/** The role catalogue. `register` returns what takes the permissions out again. */
export interface PermissionCatalogue {
    register(plugin: string, permissions: readonly DeclaredPermission[]): () => void;
}

/** Registers the permissions of each plugin, and removes those of plugins that are gone. */
export class DeclaredPermissions {
    readonly #catalogue: PermissionCatalogue;
    readonly #log: Logger;
    readonly #removers = new Map<string, () => void>();

    constructor(catalogue: PermissionCatalogue, log: Logger) {
        this.#catalogue = catalogue;
        this.#log = log;
    }

    /** Registers the permissions of these plugins, and of no others. */
    update(plugins: readonly PluginRecord[]): void {
        const gone = new Set(this.#removers.keys());
        for (const { name, seen } of plugins) {
            gone.delete(name);
            try {
                this.#removers.set(name, this.#catalogue.register(name, permissionsOf(seen)));
            } catch (error) {
                this.#log.warn('The permissions of a plugin could not be registered', {
                    plugin: name,
                    error
                });
            }
        }
        for (const name of gone) {
            this.#removers.get(name)?.();
            this.#removers.delete(name);
        }
    }
}
