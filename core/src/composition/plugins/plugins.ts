/** The plugin manager with the panel's services as its ports. */
import { engineHome } from '../../engine/files/home.ts';
import type { KeptPlugins } from '../../features/import-export/plugins/kept.ts';
import type { ImportExport } from '../../features/import-export/service.ts';
import { corePermissions } from '../../features/users/roles/permissions.ts';
import { notifyLater } from '../../platform/hooks.ts';
import { createPlugins, type Plugins, type PluginsOptions } from '../../plugins/manager/plugins.ts';
import type { PanelPort, PluginHostPorts } from '../../plugins/runtime/ports.ts';
import type { Gateway } from '../../server/gateway/gateway.ts';
import type { HttpPorts } from '../../server/http/ports.ts';
import type { Route } from '../../server/http/route.ts';
import { createServices } from '../../services/services.ts';
import type { AccountServices } from '../accounts.ts';
import { alertOfPlugin } from '../alerts.ts';
import { publishPlugin, publishRoutes } from '../event-sources.ts';
import type { Foundation } from '../foundation.ts';
import type { ProxyServices } from '../proxy.ts';
import { Rehearsals } from '../rehearsals/rehearsals.ts';
import { certificatesPort, hostsPort, networkPort, panelPort } from './plugin-ports.ts';

/** What the plugin manager needs beside the foundation. */
export interface PluginParts {
    readonly people: AccountServices;
    readonly proxy: ProxyServices;
    readonly importExport: ImportExport;
    readonly kept: KeptPlugins;
    readonly http: HttpPorts;
    /** The core's routes: no plugin may have a name of theirs. */
    readonly routes: readonly Route[];
    readonly watch: PluginsOptions['watch'];
    /** The gateway is built after the plugins; they use it when they mount. */
    gateway(): Gateway;
    /** Version of the SDK that runs the plugins. */
    readonly sdk: string;
    readonly reached?: PluginsOptions['reached'];
    readonly timing?: PluginsOptions['timing'];
}

/** Builds the plugin manager. No plugin is started. */
export function createPluginManager(
    foundation: Foundation,
    { people, importExport, kept, routes, watch, sdk, reached, timing, ...parts }: PluginParts
): Promise<Plugins> {
    const { config, db, keyring, clock, log, hooks, notifications, events } = foundation;
    const plugins: Promise<Plugins> = createPlugins({
        config,
        db,
        keyring,
        clock,
        log,
        permissions: people.permissions,
        forgetArea: async (tx, area) => {
            await people.roles.forgetArea(tx, area);
            await people.auth.apiTokens.forgetArea(tx, area);
        },
        reserved: reservedNames(routes),
        host: { sdk, node: process.versions.node },
        ports: runtimePorts(foundation, {
            people,
            ...parts,
            hasPlugin: async (name) => (await plugins).has(name)
        }),
        kept,
        watch,
        ...(reached === undefined ? {} : { reached }),
        changed(plugin, state, before, failure) {
            notifyLater(hooks.pluginStateChanged, () => ({ plugin, state, before }));
            alertOfPlugin(notifications, { plugin, state, failure });
            publishPlugin(events, plugin, state, before);
            if (state === 'running') {
                importExport.started(plugin);
            }
        },
        routesChanged(plugin) {
            notifyLater(hooks.routesChanged, () => ({ plugin }));
            publishRoutes(events, plugin);
        },
        ...(timing === undefined ? {} : { timing })
    });
    return plugins;
}

function runtimePorts(
    { config, db, tasks, keyring, clock, log, hooks, notifications, settings }: Foundation,
    {
        people,
        proxy,
        http,
        gateway,
        hasPlugin
    }: Pick<PluginParts, 'people' | 'proxy' | 'http' | 'gateway'> & {
        readonly hasPlugin: PanelPort['hasPlugin'];
    }
): PluginHostPorts {
    const { hosts, engine, certificates } = proxy;
    const rehearsals = new Rehearsals(config.dataDir);
    return {
        http,
        hooks: hooks.host,
        db,
        tasks,
        keyring,
        clock,
        log,
        get gateway() {
            return gateway();
        },
        notify: (notification) => notifications.notify(notification),
        renew: (caller) => people.auth.authenticator.renew(caller),
        hosts: hostsPort(hosts, engine, () => engineHome(config.dataDir, config.engineUser)),
        certificates: certificatesPort(certificates),
        accessLog: proxy.accessLog,
        network: networkPort(log),
        services: createServices(config, log),
        fragments: engine.fragments,
        mandates: people.auth.mandates,
        panel: panelPort(
            gateway,
            engine,
            () => proxy.forbidden(),
            (folder, signal) => rehearsals.rehearse(folder, signal),
            () => settings.get('panel.url'),
            hasPlugin
        ),
        isDangerous: (permission) => people.permissions.isDangerous(permission),
        forbidden: () => proxy.forbidden()
    };
}

/** Names that a reader would take for the core's own: its areas of permissions, and the first segments after `/api/`. */
function reservedNames(routes: readonly Route[]): ReadonlySet<string> {
    return new Set([
        'core',
        'panel',
        'system',
        ...corePermissions.map(({ name }) => name.split(':')[0] ?? ''),
        ...routes.map(({ path }) => /^\/api\/([a-z0-9-]+)/.exec(path)?.[1] ?? 'api')
    ]);
}
