/** Import and export: every section of a document, in the order in which an import plans and writes them. */
import type { HookHost } from '@portico/sdk/host';

import type { Section } from '../engine/section.ts';
import type { Audit } from '../features/audit/audit.ts';
import type { Auth } from '../features/auth/auth.ts';
import {
    collectContributions,
    type Given,
    noHooks
} from '../features/import-export/plugins/contributions.ts';
import type { KeptPlugins } from '../features/import-export/plugins/kept.ts';
import { Restorer, type RestorerOptions } from '../features/import-export/plugins/restorer.ts';
import { createPluginSection, pluginsOfPanel } from '../features/import-export/plugins/section.ts';
import type { MovedPlugin, PluginCatalogue, PluginHooks } from '../features/import-export/ports.ts';
import { ImportExport } from '../features/import-export/service.ts';
import { createSettingsSection } from '../features/settings/export-section.ts';
import type { Settings } from '../features/settings/settings.ts';
import type { Tasks } from '../features/tasks/tasks.ts';
import type { Accounts } from '../features/users/accounts/accounts.ts';
import { createRoleSection } from '../features/users/export/role-section.ts';
import { createUserSection } from '../features/users/export/user-section.ts';
import type { Roles } from '../features/users/roles/roles.ts';
import type { Call } from '../platform/call.ts';
import type { Clock } from '../platform/clock.ts';
import type { Database } from '../platform/database/database.ts';
import type { Keyring } from '../platform/keys/keyring.ts';
import type { Logger } from '../platform/log/log.ts';
import type { Installer } from '../plugins/manager/install/installer.ts';
import {
    PortablePlugins,
    type PortablePluginsOptions
} from '../plugins/manager/settings/portable-plugins.ts';
import { createInternalCall } from '../server/http/request/internal-call.ts';
import type { ProxyServices } from './proxy.ts';

/** What import and export need. */
export interface ImportExportParts {
    readonly db: Database;
    readonly keyring: Keyring;
    readonly clock: Clock;
    readonly log: Logger;
    readonly audit: Audit;
    readonly tasks: Tasks;
    readonly settings: Settings;
    readonly roles: Roles;
    readonly accounts: Accounts;
    readonly auth: Auth;
    readonly proxy: Pick<ProxyServices, 'engine' | 'sections' | 'adapt'>;
    readonly kept: KeptPlugins;
    /** Called when it is needed: plugins are built after this. */
    plugins(): PluginCatalogue;
    /** Default: no plugin runs. */
    readonly hooks?: PluginHooks;
    readonly notify: RestorerOptions['notify'];
    /** The notification channels. */
    readonly channels: Section;
    /** Of the panel. */
    readonly version: string;
}

/** Builds import and export. */
export function createImportExport({
    db,
    keyring,
    clock,
    log,
    audit,
    tasks,
    settings,
    roles,
    accounts,
    auth,
    proxy,
    kept,
    hooks = noHooks,
    notify,
    channels,
    version,
    ...parts
}: ImportExportParts): ImportExport {
    const { dnsProviders, certificates, hosts } = proxy.sections;
    const plugins = later(parts.plugins);
    const restorer = new Restorer({
        db,
        clock,
        log,
        keyring,
        recorder: audit,
        hooks,
        notify,
        running: (name) => plugins.running(name)
    });
    return new ImportExport({
        sections: [
            createSettingsSection(settings),
            createRoleSection({ roles, clock }),
            createUserSection({ db, clock, accounts, roles, logins: auth, factors: auth }),
            channels,
            dnsProviders,
            certificates,
            hosts,
            createPluginSection({ plugins, kept, restorer })
        ],
        engine: proxy.engine,
        db,
        tasks,
        recorder: audit,
        clock,
        version,
        foreign: { adapt: proxy.adapt },
        restorer,
        contributions: (how) => contributionsOf({ hooks, plugins, kept, restorer, db }, how)
    });
}

/** The plugins' own data for a document, and which plugins' data are left out. */
async function contributionsOf(
    {
        hooks,
        plugins,
        kept,
        restorer,
        db
    }: {
        readonly hooks: PluginHooks;
        readonly plugins: PluginCatalogue;
        readonly kept: KeptPlugins;
        readonly restorer: Restorer;
        readonly db: Database;
    },
    { isSealed, signal }: { readonly isSealed: boolean; readonly signal: AbortSignal }
): Promise<Given> {
    const running = new Set(hooks.givers());
    const waiting = restorer.waiting();
    const gives = (name: string, packageName: string): boolean =>
        waiting.has(name) || plugins.find(name, packageName)?.gives === true;
    const silent = pluginsOfPanel({ plugins, kept })
        .filter(({ name, package: packageName }) => !running.has(name) && gives(name, packageName))
        .map(({ name }) => name);
    const neverGiven = pluginsWithData(db)
        .filter(({ name, package: packageName }) => plugins.find(name, packageName)?.gives === false)
        .map(({ name }) => ({ name, why: 'its own data is left out, since it takes no part in exports' }));
    if (!isSealed) {
        const why = 'its own data is left out, since there is no passphrase to seal it under';
        return {
            given: new Map(),
            leftOut: [...running, ...silent].sort().map((name) => ({ name, why })),
            neverGiven
        };
    }
    const live = await collectContributions(hooks, (name) => plugins.running(name)?.package ?? null, signal);
    return {
        ...withWaiting(live, waiting, silent),
        neverGiven: [...live.neverGiven, ...neverGiven]
    };
}

/** Plugins that wrote into a database of their own; a plugin that never did has nothing that an export could lack. */
function pluginsWithData(db: Database): readonly { readonly name: string; readonly package: string }[] {
    return db
        .prepare<[], { name: string; package: string }>(
            'select distinct name, package from plugin_data where accepted = 1 order by name'
        )
        .all();
}

/** Data that waits for its plugin belongs to the panel as well. */
function withWaiting(
    { given, leftOut }: Given,
    waiting: Given['given'],
    silent: readonly string[]
): Omit<Given, 'neverGiven'> {
    return {
        given: new Map([...waiting, ...given]),
        leftOut: [
            ...leftOut.map(({ name, why }) => ({ name, why: `its own data is left out: ${why}` })),
            ...silent
                .filter((name) => !waiting.has(name))
                .map((name) => ({ name, why: 'its own data is left out, since it does not run' }))
        ]
    };
}

/** The taps of plugins at exports and imports. */
export function pluginHooks(hooks: Pick<HookHost, 'taps' | 'collect'>): PluginHooks {
    return {
        givers: () => [
            ...new Set(
                hooks.taps().flatMap(({ hook, plugin }) => (hook === 'export.collect' ? [plugin] : []))
            )
        ],
        give: (payload, signal) => hooks.collect('export.collect', async () => payload, { signal }),
        restore: (plugin, payload, signal) =>
            hooks.collect('import.restore', async () => payload, { only: [plugin], signal })
    };
}

function later(plugins: () => PluginCatalogue): PluginCatalogue {
    return {
        ready: () => plugins().ready(),
        list: () => plugins().list(),
        find: (name, packageName) => plugins().find(name, packageName),
        prove: (plugin, keeps) => plugins().prove(plugin, keeps),
        store: (tx, plugin, revision) => plugins().store(tx, plugin, revision),
        follow: (names) => plugins().follow(names),
        running: (name) => plugins().running(name),
        state: (name) => plugins().state(name),
        requiredBy: (name) => plugins().requiredBy(name),
        install: (plugin, call, signal) => plugins().install(plugin, call, signal)
    };
}

/** What is known about plugins, and the installer, whose tasks an import waits for. */
export interface PluginCatalogueParts extends PortablePluginsOptions {
    readonly installer: Pick<Installer, 'install'>;
    readonly kept: KeptPlugins;
    readonly tasks: Tasks;
    readonly audit: Audit;
}

/** The panel's plugins as import and export use them. */
export function createPluginCatalogue({
    installer,
    kept,
    tasks,
    audit,
    ...options
}: PluginCatalogueParts): PluginCatalogue {
    const catalogue = new PortablePlugins(options);
    options.lifecycle.records.inheritFrom({
        find(name, packageName) {
            const moved = kept.find(name, packageName);
            return moved === null ? null : catalogue.sealed(moved);
        },
        forget: (tx, name) => kept.forgetIn(tx, name)
    });
    const install = async (
        { name, package: packageName, version, enabled }: MovedPlugin,
        call: Call,
        signal: AbortSignal
    ): Promise<void> => {
        // The import has answered its own call, so what it starts gets audit entries of its own.
        const { id: requestId, actor: caller, ip, userAgent } = call;
        const own = createInternalCall({
            id: requestId,
            caller,
            ip,
            userAgent,
            signal,
            recorder: audit,
            action: 'start',
            resource: 'plugins'
        });
        const { id } = await installer.install({ package: packageName, version }, { enabled }, own);
        for await (const event of tasks.events(id, call.actor, { signal })) {
            if (event.event === 'end') {
                break;
            }
        }
        const { state, error } = signal.aborted ? await tasks.cancel(id, own) : tasks.get(id, call.actor);
        if (state !== 'succeeded') {
            throw new Error((error as { readonly message?: string } | null)?.message ?? 'it was cancelled');
        }
        if (catalogue.find(name, packageName)?.isInstalled !== true) {
            throw new Error(`${packageName} ${version} is installed, and is not called ${name}`);
        }
    };
    return {
        ready: () => catalogue.ready(),
        list: () => catalogue.list(),
        find: (name, packageName) => catalogue.find(name, packageName),
        prove: (plugin, keeps) => catalogue.prove(plugin, keeps),
        store: (tx, plugin, revision) => catalogue.store(tx, plugin, revision),
        follow: (names) => catalogue.follow(names),
        running: (name) => catalogue.running(name),
        state: (name) => catalogue.state(name),
        requiredBy: (name) => catalogue.requiredBy(name),
        install
    };
}
