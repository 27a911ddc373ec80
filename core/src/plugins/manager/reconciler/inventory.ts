/** What lies on the disk: one package for each plugin name, and the packages that cannot be used because their name is taken. Runs no plugin code. */
import { basename } from 'node:path';

import type { Found, Place, PluginPackage, Registry, Skipped } from '@portico/registry';

import type { PluginFailure } from '../records/plugin.ts';

/** A package that has its plugin name for itself. */
export interface NamedPackage {
    readonly name: string;
    readonly found: Found;
    /** Null when its manifest cannot be read. */
    readonly plugin: PluginPackage | null;
    /** Why it cannot start; null when it can. */
    readonly obstacle: Omit<PluginFailure, 'at'> | null;
}

/** A package that cannot be used because another package has its name. */
export interface PassedOver extends NamedPackage {
    readonly obstacle: Omit<PluginFailure, 'at'>;
}

/** The result of a search of the disk. */
export interface Inventory {
    readonly named: readonly NamedPackage[];
    /** Plugin names; each comes after those that it requires. */
    readonly order: readonly string[];
    readonly passedOver: readonly PassedOver[];
    readonly skipped: readonly Skipped[];
}

/** Finds the plugin packages at all places, and resolves which of them can run together. */
export async function takeInventory(
    registry: Pick<Registry, 'discover' | 'resolve'>,
    places: readonly Place[]
): Promise<Inventory> {
    const { found, skipped } = await registry.discover(places);
    const { order, unresolved } = registry.resolve(
        found.flatMap(({ result }) => ('plugin' in result ? [result.plugin] : []))
    );
    const all = found.map((each): NamedPackage => {
        if ('fault' in each.result) {
            return {
                name: each.lock?.name ?? basename(each.folder),
                found: each,
                plugin: null,
                obstacle: { stage: 'discovered', ...each.result.fault }
            };
        }
        const { plugin } = each.result;
        const why = unresolved.find((one) => one.plugin === plugin);
        return {
            name: plugin.manifest.name,
            found: each,
            plugin,
            obstacle: why === undefined ? null : { stage: 'resolved', code: why.code, message: why.message }
        };
    });
    const taken = new Set<string>();
    const [seen, passedOver]: [NamedPackage[], PassedOver[]] = [[], []];
    // A package that can be used gets its name before a broken one, of which only the folder has this name.
    for (const each of [
        ...all.filter(({ plugin }) => plugin !== null),
        ...all.filter(({ plugin }) => plugin === null)
    ]) {
        if (taken.has(each.name)) {
            passedOver.push({
                ...each,
                obstacle: each.obstacle ?? {
                    stage: 'resolved',
                    code: 'NAME_TAKEN',
                    message: `Another package has the name ${each.name}`
                }
            });
        } else {
            taken.add(each.name);
            seen.push(each);
        }
    }
    return { named: seen, order: order.map(({ manifest }) => manifest.name), passedOver, skipped };
}
