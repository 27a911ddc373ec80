/** A plugin as the API shows it. */
import type { Found, Lock, PluginPackage } from '@portico/registry';
import { viewSettings } from '@portico/sdk/host';

import type { ServiceStatus } from '../../../services/port.ts';
import { localePaths, pathOfPage } from '../../runtime/routes/page-documents.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import { permissionsOf } from '../records/permissions.ts';
import type { PluginFailure, PluginRecord, Runtime } from '../records/plugin.ts';
import type { PluginDetail, PluginView } from './schema.ts';

const worst = ['ok', 'degraded', 'failed'] as const;

/** What a view is made of. */
export interface Viewed {
    readonly runtime: Runtime;
    readonly record: PluginRecord | null;
    readonly available: string | null;
    readonly adoptable: string | null;
}

/** A plugin in a list. */
export function viewOf({ runtime, record, available, adoptable }: Viewed): PluginView {
    const plugin = runtime.plugin ?? record?.seen ?? null;
    return {
        ...packageView(runtime.name, plugin, runtime.found),
        name: runtime.name,
        state: runtime.state,
        enabled: record?.enabled ?? false,
        capabilities: capabilitiesOf(plugin, record),
        health: healthOf(runtime),
        bootMs: runtime.bootMs,
        failure: failureOf(runtime.failure),
        quarantinedAt: record?.quarantinedAt == null ? null : timeOf(record.quarantinedAt),
        deprecations: [...(runtime.generation?.deprecations() ?? [])],
        available,
        adoptable
    };
}

/** A plugin with its settings. @param versions - installed ones @param services - null when what keeps them does not answer @param settingsSchema - JSON Schema; null before its code was loaded */
export function detailOf(
    viewed: Viewed,
    settingsSchema: Record<string, unknown> | null,
    services: readonly ServiceStatus[] | null,
    versions: PluginDetail['versions']
): PluginDetail {
    const { released } = viewed.runtime;
    return {
        ...viewOf(viewed),
        settings: viewSettings(viewed.record?.settings ?? {}),
        settingsSchema,
        refused: (viewed.runtime.generation?.refused() ?? []).map(({ capability, count, at }) => ({
            capability,
            count,
            at: timeOf(at)
        })),
        services: services?.map(serviceView) ?? null,
        released: released === null ? null : releasedView(released),
        versions
    };
}

/** The installed versions, the newest install first. */
export function versionsOf(
    { runtime: { name, found }, record }: Viewed,
    lock: Pick<Lock, 'kept'>
): PluginDetail['versions'] {
    const current = found?.lock ?? null;
    return [...(current === null ? [] : [current]), ...lock.kept(name)]
        .filter((entry) => entry.package === (record?.package ?? entry.package))
        .map((entry) => ({
            version: entry.version,
            integrity: entry.integrity,
            signature: entry.signature,
            installedAt: entry.installedAt,
            current: entry === current
        }))
        .sort((a, b) => (a.installedAt < b.installedAt ? 1 : -1));
}

/** A package that cannot be used because another package has its name. */
export function passedOverView(
    {
        name,
        found,
        plugin,
        obstacle
    }: {
        readonly name: string;
        readonly found: Found;
        readonly plugin: PluginPackage | null;
        readonly obstacle: Omit<PluginFailure, 'at'>;
    },
    at: number
): PluginView {
    return {
        ...packageView(name, plugin, found),
        name,
        state: 'failed',
        enabled: false,
        capabilities: capabilitiesOf(plugin, null),
        health: null,
        bootMs: null,
        failure: failureOf({ ...obstacle, at }),
        quarantinedAt: null,
        deprecations: [],
        available: null,
        adoptable: null
    };
}

function serviceView({
    name,
    state,
    pid,
    startedAt,
    exits,
    lastExit,
    failures,
    grants
}: ServiceStatus): NonNullable<PluginDetail['services']>[number] {
    return {
        name,
        state,
        pid,
        startedAt: startedAt === null ? null : timeOf(startedAt),
        exits,
        failures,
        lastExit:
            lastExit === null
                ? null
                : { ...lastExit, limit: lastExit.limit ?? null, at: timeOf(lastExit.at) },
        program: grants.exec,
        user: grants.user
    };
}

function releasedView({
    at,
    report
}: NonNullable<Runtime['released']>): NonNullable<PluginDetail['released']> {
    return {
        at: timeOf(at),
        released: [...report.released],
        leaked: [...report.leaked],
        cut: report.cut,
        failures: [...report.failures]
    };
}

function packageView(name: string, plugin: PluginPackage | null, found: Found | null) {
    return {
        package: plugin?.package ?? found?.lock?.package ?? null,
        version: plugin?.version ?? found?.lock?.version ?? null,
        title: plugin?.title ?? name,
        icon: plugin?.manifest.icon ?? null,
        contributes: contributesOf(plugin),
        origin: found?.origin ?? null,
        sdk: plugin?.manifest.sdk ?? null,
        requires: plugin?.manifest.requires ?? {},
        optional: plugin?.manifest.optional ?? {},
        permissions:
            plugin === null
                ? []
                : permissionsOf(plugin).map(({ name: permission, title, roles }) => ({
                      name: permission,
                      title,
                      roles: [...roles]
                  }))
    };
}

/** What the plugin brings for the pages, with addresses as a browser asks for them. */
function contributesOf(plugin: PluginPackage | null): PluginView['contributes'] {
    const { pages = [], group = null, locales = {} } = plugin?.manifest.contributes ?? {};
    const prefix = `/api/plugins/${plugin?.manifest.name}`;
    return {
        group,
        pages: pages.map((page) => ({
            id: page.id,
            title: page.title,
            icon: page.icon ?? null,
            access: `${plugin?.manifest.name}:${page.access}`,
            place: page.place ?? 'nav',
            uses: page.uses ?? [],
            path: `${prefix}/${pathOfPage(page)}`
        })),
        locales: localePaths(prefix, locales)
    };
}

function capabilitiesOf(plugin: PluginPackage | null, record: PluginRecord | null) {
    const asked = plugin === null ? {} : askedOf(plugin.manifest);
    const granted = record?.grants ?? {};
    return { asked, granted, missing: beyond(asked, granted) };
}

function healthOf({ health }: Runtime): PluginView['health'] {
    if (health === null) {
        return null;
    }
    const state = worst[Math.max(0, ...health.reports.map((report) => worst.indexOf(report.state)))] ?? 'ok';
    return {
        state,
        at: timeOf(health.at),
        checks: health.reports.map(({ name, state: own, evidence = null, remedy = null }) => ({
            name,
            state: own,
            evidence,
            remedy
        }))
    };
}

function failureOf(failure: PluginFailure | null): PluginView['failure'] {
    return failure === null
        ? null
        : { stage: failure.stage, code: failure.code, message: failure.message, at: timeOf(failure.at) };
}

function timeOf(at: number): string {
    return new Date(at).toISOString();
}
