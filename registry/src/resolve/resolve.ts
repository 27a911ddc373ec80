/** Decides which plugins can start, and in which order. Pure: versions and ranges in, an order and reasons out. */
import satisfies from 'semver/functions/satisfies.js';

import type { PluginPackage } from '../manifest.ts';

/** What runs the plugins. */
export interface Host {
    /** Version of the SDK. */
    readonly sdk: string;
    /** Version of Node. */
    readonly node: string;
}

/** A plugin that cannot start, and why. */
export interface Unresolved {
    readonly name: string;
    readonly plugin: PluginPackage;
    readonly code:
        | 'SDK_RANGE'
        | 'NODE_RANGE'
        | 'REQUIREMENT_MISSING'
        | 'REQUIREMENT_RANGE'
        | 'REQUIREMENT_FAILED'
        | 'CYCLE'
        | 'NAME_TAKEN';
    readonly message: string;
}

/** Which plugins can start, in which order. */
export interface Resolution {
    /** Each plugin comes after those that it requires and, where they are there, its optional ones. */
    readonly order: readonly PluginPackage[];
    readonly unresolved: readonly Unresolved[];
}

/** Resolves all plugins. @param plugins - in order of precedence: the first of two with the same name wins */
export function resolve(plugins: readonly PluginPackage[], host: Host): Resolution {
    const resolver = new Resolver();
    plugins.forEach((plugin) => resolver.add(plugin, host));
    return resolver.order();
}

class Resolver {
    readonly #unresolved: Unresolved[] = [];
    /** The first plugin of each name. */
    readonly #named = new Map<string, PluginPackage>();
    /** Plugins that this panel can run, by name. */
    readonly #usable = new Map<string, PluginPackage>();
    /** Why a plugin cannot start, by name. */
    readonly #failed = new Map<string, string>();
    readonly #order: PluginPackage[] = [];
    readonly #done = new Set<string>();

    add(plugin: PluginPackage, host: Host): void {
        const { name } = plugin.manifest;
        const first = this.#named.get(name);
        if (first !== undefined) {
            this.#unresolved.push({
                name,
                plugin,
                code: 'NAME_TAKEN',
                message: `${plugin.package} ${plugin.version} is not used: ${first.package} ${first.version} has the name ${name}`
            });
            return;
        }
        this.#named.set(name, plugin);
        const conflict = hostConflict(plugin, host);
        if (conflict === null) {
            this.#usable.set(name, plugin);
        } else {
            this.#refuse(plugin, conflict.code, conflict.message);
        }
    }

    order(): Resolution {
        for (const name of [...this.#usable.keys()].sort()) {
            this.#visit(name, []);
        }
        return { order: this.#order, unresolved: this.#unresolved };
    }

    /** Places a plugin behind its requirements. @param path - names of the plugins that led here, to find circles */
    #visit(name: string, path: readonly string[]): void {
        const plugin = this.#usable.get(name);
        if (plugin === undefined || this.#done.has(name) || this.#failed.has(name)) {
            return;
        }
        const { requires = {}, optional = {} } = plugin.manifest;
        for (const [other, range] of Object.entries(requires)) {
            const obstacle = this.#obstacle(name, other, range, path);
            if (obstacle !== null) {
                this.#refuse(plugin, obstacle.code, obstacle.message);
                return;
            }
        }
        for (const [other, range] of Object.entries(optional)) {
            const partner = this.#usable.get(other);
            if (partner !== undefined && !path.includes(other) && satisfies(partner.version, range)) {
                this.#visit(other, [...path, name]);
            }
        }
        if (!this.#done.has(name) && !this.#failed.has(name)) {
            this.#done.add(name);
            this.#order.push(plugin);
        }
    }

    /** Why a requirement is not met, after its plugin was visited; null when it is. */
    #obstacle(
        name: string,
        other: string,
        range: string,
        path: readonly string[]
    ): Pick<Unresolved, 'code' | 'message'> | null {
        const way = [...path, name];
        if (way.includes(other)) {
            const circle = [...way.slice(way.indexOf(other)), other].join(' → ');
            return { code: 'CYCLE', message: `${circle} require each other in a circle` };
        }
        const partner = this.#usable.get(other);
        if (partner === undefined) {
            const why = this.#failed.get(other);
            return why === undefined
                ? {
                      code: 'REQUIREMENT_MISSING',
                      message: `${name} requires ${other} ${range}, which is not there`
                  }
                : {
                      code: 'REQUIREMENT_FAILED',
                      message: `${name} requires ${other} ${range}, which cannot start: ${why}`
                  };
        }
        if (!satisfies(partner.version, range)) {
            return {
                code: 'REQUIREMENT_RANGE',
                message: `${name} requires ${other} ${range}, but ${partner.version} is there`
            };
        }
        this.#visit(other, way);
        return this.#done.has(other)
            ? null
            : {
                  code: 'REQUIREMENT_FAILED',
                  message: `${name} requires ${other}, which cannot start: ${this.#failed.get(other) ?? 'it waits for itself'}`
              };
    }

    #refuse(plugin: PluginPackage, code: Unresolved['code'], message: string): void {
        this.#unresolved.push({ name: plugin.manifest.name, plugin, code, message });
        this.#failed.set(plugin.manifest.name, message);
    }
}

/** Why this panel cannot run a plugin, whatever else is installed; null when it can. */
export function hostConflict(
    { manifest: { name, sdk }, version, node }: PluginPackage,
    host: Host
): { readonly code: 'SDK_RANGE' | 'NODE_RANGE'; readonly message: string } | null {
    if (!satisfies(host.sdk, sdk)) {
        return {
            code: 'SDK_RANGE',
            message: `${name} ${version} works with @portico/sdk ${sdk}, but this panel has ${host.sdk}`
        };
    }
    if (node !== null && !satisfies(host.node, node)) {
        return {
            code: 'NODE_RANGE',
            message: `${name} ${version} works with Node ${node}, but this panel runs on ${host.node}`
        };
    }
    return null;
}
