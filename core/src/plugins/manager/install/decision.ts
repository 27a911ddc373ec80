/** Checks before another package takes a plugin's place: what an admin decided about it, and whether it fits the other plugins. */
import type { PluginPackage } from '@portico/registry';

import { fail } from '../../../platform/errors.ts';
import type { Capabilities } from '../../runtime/generation.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import type { PluginData } from '../data/data-folders.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import type { Decision, PluginRecord } from '../records/plugin.ts';
import { newRecord } from '../records/records.ts';
import type { InstallRequest } from './ports.ts';

/** Adds a request to what was decided before. `missing` is what the package asks for beyond the decision; null when nothing is missing. */
export function decide(
    data: Pick<PluginData, 'keptSettings'>,
    plugin: PluginPackage,
    { enabled, grants }: InstallRequest,
    before: PluginRecord | null
): { readonly decision: Decision; readonly missing: Capabilities | null } {
    const asked = askedOf(plugin.manifest);
    const base: Decision = before ?? {
        ...newRecord(plugin, 0),
        settings: data.keptSettings(plugin) ?? {}
    };
    const decision: Decision = {
        enabled: enabled ?? base.enabled,
        grants: grants ?? base.grants,
        decided: grants === undefined ? base.decided : asked,
        settings: base.settings
    };
    return { decision, missing: beyond(asked, decision.decided, decision.grants) };
}

/**
 * Checks the requirements between a package and the other plugins.
 *
 * @param mustRun - the package must be able to run, too
 * @throws IN_USE 40901 when an enabled plugin requires another version; PLUGIN_FAILED 50303 when the package could not run
 */
export function requireFit(
    lifecycle: Lifecycle,
    name: string,
    plugin: PluginPackage,
    mustRun: boolean
): void {
    const others = lifecycle.runtimes().filter((each) => each.name !== name);
    const { unresolved } = lifecycle.registry.resolve([
        ...others.flatMap((each) => each.plugin ?? []),
        plugin
    ]);
    const dependants = lifecycle.known.dependants(name);
    const broken = unresolved.flatMap((each) => {
        const other = others.find((one) => one.plugin === each.plugin);
        return other !== undefined &&
            other.obstacle === null &&
            dependants.includes(other.name) &&
            lifecycle.recordOf(other)?.enabled === true
            ? [{ plugin: other.name, message: each.message }]
            : [];
    });
    if (broken.length > 0) {
        throw fail.IN_USE(
            { by: broken.map((each) => each.plugin) },
            { message: broken.map((each) => each.message).join('; ') }
        );
    }
    const own = unresolved.find((each) => each.plugin === plugin);
    if (own !== undefined && mustRun) {
        throw fail.PLUGIN_FAILED(
            { plugin: name, stage: 'resolved', cause: own.code },
            { message: own.message }
        );
    }
}
