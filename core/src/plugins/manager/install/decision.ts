/** Checks and decisions before a package takes a plugin's place, with a panel that runs or on the command line alone. */
import type { LockEntry, PluginPackage, Registry } from '@portico/registry';

import { fail } from '../../../platform/errors.ts';
import type { AuditEntry } from '../../../server/http/ports.ts';
import type { Capabilities } from '../../runtime/generation/generation.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import type { PluginData } from '../data/data-folders.ts';
import type { Decision, PluginRecord, Runtime } from '../records/plugin.ts';
import { newRecord } from '../records/records.ts';
import type { InstallRequest, KeptSettings } from './ports.ts';

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

/** The package that is to be put in place, and what is known of its plugin. */
export interface InstallCandidate {
    readonly plugin: PluginPackage;
    /** The package that has the plugin's name now; null when none has. */
    readonly present: PluginPackage | null;
    /** The present package is enabled, or runs. */
    readonly isInUse: boolean;
    /** The record of this package; null when it is new. */
    readonly record: PluginRecord | null;
    readonly request: InstallRequest;
}

/** What is decided about a package before it is put in place. */
export interface InstallDecision {
    /** The plugin is there with a record; otherwise the package is new. */
    readonly isUpgrade: boolean;
    readonly decision: Decision;
    /** What it asks for and was not granted; null when it has everything. */
    readonly missing: Capabilities | null;
    /** Settings of an import that wait for it. */
    readonly waiting: ReturnType<KeptSettings['find']>;
}

/**
 * Decides what becomes of a package. A new one is enabled unless the request or an import says otherwise, or another package has its name.
 *
 * @throws CONFLICT 40900 when an enabled plugin of another package has the name; CONSENT_REQUIRED 40910 for an upgrade that asks for more than is granted
 */
export function decideInstall(
    {
        data,
        kept
    }: { readonly data: Pick<PluginData, 'keptSettings'>; readonly kept: Pick<KeptSettings, 'find'> },
    { plugin, present, isInUse, record, request }: InstallCandidate
): InstallDecision {
    const { name } = plugin.manifest;
    if (present !== null && present.package !== plugin.package && isInUse) {
        throw fail.CONFLICT(
            { field: 'name', by: present.package },
            { message: `${present.package} has the name ${name} and is enabled: disable it first` }
        );
    }
    const isUpgrade = record !== null && present?.package === plugin.package;
    const waiting = isUpgrade ? null : kept.find(name, plugin.package);
    const enabled = isUpgrade
        ? request.enabled
        : present === null && (request.enabled ?? waiting?.enabled ?? true);
    const { decision, missing } = decide(data, plugin, { ...request, enabled }, record);
    if (isUpgrade && missing !== null) {
        throw fail.CONSENT_REQUIRED({ plugin: name, missing, version: plugin.version });
    }
    return {
        isUpgrade,
        waiting,
        missing,
        decision: { ...decision, enabled: decision.enabled && missing === null }
    };
}

/**
 * Checks the requirements between a package and the other plugins.
 *
 * @param others - every plugin but that of the package's name
 * @param mustRun - the package must be able to run, too
 * @throws IN_USE 40901 when an enabled plugin requires another version; PLUGIN_FAILED 50303 when the package could not run
 */
export function requireFit(
    registry: Pick<Registry, 'resolve'>,
    others: readonly { readonly runtime: Runtime; readonly record: PluginRecord | null }[],
    plugin: PluginPackage,
    mustRun: boolean
): void {
    const { name } = plugin.manifest;
    const { unresolved } = registry.resolve([
        ...others.flatMap(({ runtime }) => runtime.plugin ?? []),
        plugin
    ]);
    const broken = unresolved.flatMap(({ plugin: unfit, message }) => {
        const other = others.find(({ runtime }) => runtime.plugin === unfit);
        return other?.runtime.obstacle === null &&
            other.record?.enabled === true &&
            Object.hasOwn(unfit.manifest.requires ?? {}, name)
            ? [{ plugin: other.runtime.name, message }]
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

/** The part of an install's audit entry that says what was put in place. @param from - the version before; null for none */
export function auditOfInstall(
    plugin: PluginPackage,
    { integrity, signature }: Pick<LockEntry, 'integrity' | 'signature'>,
    { enabled, grants }: Decision,
    from: string | null
): Pick<AuditEntry, 'resource' | 'resourceId' | 'outcome' | 'code' | 'before' | 'after'> {
    return {
        resource: 'plugins',
        resourceId: plugin.manifest.name,
        outcome: 'success',
        code: 0,
        before: { version: from },
        after: { package: plugin.package, version: plugin.version, integrity, signature, enabled, grants }
    };
}
