/** Decides which plugins can start, and in which order. Pure: versions and ranges in, an order and reasons out. */
import semver from 'semver';

import type { PluginPackage } from '../manifest.ts';

/** What runs the plugins. */
export interface Host {
    /** Version of the SDK. */
    readonly sdk: string;
    /** Version of Node. */
    readonly node: string;
}

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

export interface Resolution {
    /** Each after everything that it requires and, where that is there, what it makes use of. */
    readonly order: readonly PluginPackage[];
    readonly unresolved: readonly Unresolved[];
}

/** @param plugins - in order of precedence: of two with one name the first is taken */
export function resolve(plugins: readonly PluginPackage[], host: Host): Resolution {
    const unresolved: Unresolved[] = [];
    const firsts = new Map<string, PluginPackage>();
    const usable = new Map<string, PluginPackage>();
    const failed = new Map<string, string>();
    const refuse = (plugin: PluginPackage, code: Unresolved['code'], message: string): void => {
        unresolved.push({ name: plugin.manifest.name, plugin, code, message });
        failed.set(plugin.manifest.name, message);
    };
    for (const plugin of plugins) {
        const { name } = plugin.manifest;
        const first = firsts.get(name);
        const conflict = hostConflict(plugin, host);
        if (first !== undefined) {
            unresolved.push({
                name,
                plugin,
                code: 'NAME_TAKEN',
                message: `${plugin.package} ${plugin.version} is passed over: ${first.package} ${first.version} has the name ${name}`
            });
        } else if (conflict !== null) {
            firsts.set(name, plugin);
            refuse(plugin, conflict.code, conflict.message);
        } else {
            firsts.set(name, plugin);
            usable.set(name, plugin);
        }
    }
    const order: PluginPackage[] = [];
    const done = new Set<string>();
    const visit = (plugin: PluginPackage, path: readonly string[]): void => {
        const { name, requires = {}, optional = {} } = plugin.manifest;
        if (done.has(name) || failed.has(name)) {
            return;
        }
        for (const [other, range] of Object.entries(requires)) {
            const partner = usable.get(other);
            const at = [...path, name].indexOf(other);
            if (at >= 0) {
                return refuse(
                    plugin,
                    'CYCLE',
                    `${[...path, name].slice(at).concat(other).join(' → ')} require each other in a circle`
                );
            }
            if (partner === undefined) {
                return refuse(
                    plugin,
                    failed.has(other) ? 'REQUIREMENT_FAILED' : 'REQUIREMENT_MISSING',
                    `${name} requires ${other} ${range}, ${failed.has(other) ? `which cannot start: ${failed.get(other)}` : 'which is not there'}`
                );
            }
            if (!semver.satisfies(partner.version, range)) {
                return refuse(
                    plugin,
                    'REQUIREMENT_RANGE',
                    `${name} requires ${other} ${range}, but ${partner.version} is there`
                );
            }
            visit(partner, [...path, name]);
            if (!done.has(other)) {
                return refuse(
                    plugin,
                    'REQUIREMENT_FAILED',
                    `${name} requires ${other}, which cannot start: ${failed.get(other) ?? 'it waits for itself'}`
                );
            }
        }
        for (const [other, range] of Object.entries(optional)) {
            const partner = usable.get(other);
            if (partner !== undefined && !path.includes(other) && semver.satisfies(partner.version, range)) {
                visit(partner, [...path, name]);
            }
        }
        if (!done.has(name) && !failed.has(name)) {
            done.add(name);
            order.push(plugin);
        }
    };
    for (const plugin of [...usable.values()].sort((a, b) => (a.manifest.name < b.manifest.name ? -1 : 1))) {
        visit(plugin, []);
    }
    return { order, unresolved };
}

/** Why this panel cannot run it, whatever else is installed; null when it can. */
export function hostConflict(
    { manifest: { name, sdk }, version, node }: PluginPackage,
    host: Host
): { readonly code: 'SDK_RANGE' | 'NODE_RANGE'; readonly message: string } | null {
    if (!semver.satisfies(host.sdk, sdk)) {
        return {
            code: 'SDK_RANGE',
            message: `${name} ${version} works with @portico/sdk ${sdk}, but this panel has ${host.sdk}`
        };
    }
    if (node !== null && !semver.satisfies(host.node, node)) {
        return {
            code: 'NODE_RANGE',
            message: `${name} ${version} works with Node ${node}, but this panel runs on ${host.node}`
        };
    }
    return null;
}
