/** The composition root: every service, built once, by hand, in order. No other part of the core knows how the parts fit together. */
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';

import { type AccountServices, createAccountServices } from './composition/accounts.ts';
import { answerBackups } from './composition/backup.ts';
import { type Foundation, openFoundation } from './composition/foundation.ts';
import { createImportExport, createPluginCatalogue, pluginHooks } from './composition/import-export.ts';
import { createPluginManager } from './composition/plugins/plugins.ts';
import { createProxyServices, type ProxyServices } from './composition/proxy.ts';
import { withoutEngine } from './composition/rehearsals/absent-engine.ts';
import type { EngineDriver } from './engine/port.ts';
import { engineRoutes } from './engine/routes.ts';
import { auditRoutes } from './features/audit/routes.ts';
import { authRoutes } from './features/auth/routes.ts';
import { certificateRoutes } from './features/certificates/routes.ts';
import { dnsProviderRoutes } from './features/dns-providers/routes.ts';
import { eventRoutes } from './features/events/routes.ts';
import { hostRoutes } from './features/hosts/routes.ts';
import { KeptPlugins } from './features/import-export/plugins/kept.ts';
import type { PluginCatalogue } from './features/import-export/ports.ts';
import { importExportRoutes } from './features/import-export/routes.ts';
import type { ImportExport } from './features/import-export/service.ts';
import { notificationRoutes } from './features/notifications/routes.ts';
import { panelOrigin } from './features/settings/addresses/panel-origin.ts';
import { settingsRoutes } from './features/settings/routes.ts';
import { taskRoutes } from './features/tasks/routes.ts';
import { userRoutes } from './features/users/routes.ts';
import { removePanelAddress, writePanelAddress } from './platform/address/panel.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import type { Config } from './platform/config.ts';
import { type CoreHooks, type HookTiming, notifyLater } from './platform/hooks.ts';
import type { Log } from './platform/log/log.ts';
import { PluginLogs } from './plugins/manager/logs/plugin-logs.ts';
import type { Plugins, PluginsOptions } from './plugins/manager/plugins.ts';
import type { Lifecycle } from './plugins/manager/reconciler/lifecycle.ts';
import { pluginRoutes } from './plugins/manager/routes/routes.ts';
import { PluginSettings } from './plugins/manager/settings/plugin-settings.ts';
import { createGateway, type Gateway } from './server/gateway/gateway.ts';
import { unknownPath } from './server/http/answer/unknown-path.ts';
import { healthRoutes, type Readiness } from './server/http/health.ts';
import { IdempotencyKeys } from './server/http/idempotency/idempotency.ts';
import { createOpenApi } from './server/http/openapi/document.ts';
import { openApiRoutes } from './server/http/openapi/routes.ts';
import type { HttpPorts } from './server/http/ports.ts';
import type { Route } from './server/http/route.ts';
import { createHttpServer } from './server/http/server.ts';
import { createStartPage } from './server/http/start-page.ts';

/** What a panel is built from. */
export interface PanelOptions {
    readonly config: Config;
    readonly log: Log;
    /** Shows a secret that was made at the first start, once, and nowhere else. */
    readonly show: (text: string) => void;
    /** The engine's driver; default: Caddy. */
    readonly driver?: EngineDriver;
    /** Time from one load of the engine to the next, milliseconds; default 1,000. */
    readonly reloadWindowMs?: number;
    readonly clock?: Clock;
    /** Checks answers against their schemas; on in tests and development. */
    readonly checkReturns?: boolean;
    /** How long requests under way may take when the panel stops, milliseconds; default 30,000. */
    readonly drainMs?: number;
    /** Called at each phase of a plugin's swap, before it goes on; for tests that end the process there. */
    readonly reached?: PluginsOptions['reached'];
    /** Time limits of plugins, milliseconds. */
    readonly pluginTiming?: PluginsOptions['timing'];
    /** Time limits of plugins' taps at an export and an import. */
    readonly hookTiming?: HookTiming;
    /** The process is the panel's own: plugins that block, end or fill it are named. */
    readonly watch?: boolean;
    /** Boots a copy to prove it: without an engine, renewals and notifications, so that nothing leaves this process. */
    readonly isRehearsal?: boolean;
}

/** Version of the core, as its package says. */
export const version = versionIn(new URL('../package.json', import.meta.url));

/** Builds the panel of a data folder. @throws Error when the folder is in use, damaged, or open to other users */
export async function createPanel({
    config,
    log,
    show,
    clock = systemClock,
    checkReturns = false,
    ...options
}: PanelOptions): Promise<Panel> {
    const foundation = await openFoundation({ config, log, clock, hookTiming: options.hookTiming });
    const { db, keyring, settings, hooks } = foundation;
    let gateway: Gateway;
    let catalogue: PluginCatalogue;
    let readiness: Readiness = 'starting';
    const people = await createAccountServices(
        foundation,
        (path, method) => gateway.resolve(path, method),
        show
    );
    const { isRehearsal = false, watch = false } = options;
    const proxy = createProxyServices(foundation, isRehearsal ? withoutEngine() : options);
    const kept = new KeptPlugins({ db, clock, keyring });
    const importExport = createImportExport({
        ...foundation,
        ...people,
        proxy,
        version,
        kept,
        plugins: () => catalogue,
        hooks: pluginHooks(hooks.host),
        notify: (notification) => foundation.notifications.notify(notification),
        channels: foundation.notifications.section
    });
    answerBackups(foundation, version);
    settings.onChange((keys) => notifyLater(hooks.settingsChanged, () => ({ keys })));

    const http = httpPorts(foundation, people, checkReturns);
    const openApi = createOpenApi({ servers: () => gateway.servers(), version });
    const routes = [
        ...healthRoutes(() => readiness, problemsOf(foundation, proxy)),
        ...openApiRoutes(() => openApi),
        ...featureRoutes(foundation, people, proxy, importExport, () => catalogue)
    ];
    const plugins = await createPluginManager(foundation, {
        people,
        proxy,
        importExport,
        kept,
        http,
        routes,
        gateway: () => gateway,
        watch,
        sdk: versionIn(new URL('../package.json', import.meta.resolve('@portico/sdk'))),
        ...(options.reached === undefined ? {} : { reached: options.reached }),
        ...(options.pluginTiming === undefined ? {} : { timing: options.pluginTiming })
    });
    catalogue = createPluginCatalogue({
        ...foundation,
        lifecycle: plugins.lifecycle,
        installer: plugins.installer,
        kept,
        pluginSettings: new PluginSettings(keyring)
    });
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        ports: http,
        unknown: unknownPath((plugin) => plugins.refusal(plugin)),
        routes: [...routes, ...pluginRoutes(plugins.service, plugins.installer, new PluginLogs(log))]
    });
    gateway = await createGateway({
        core,
        startPage: createStartPage(http, () => plugins.pagesState()),
        startOf: (plugin) => plugins.startOf(plugin),
        log,
        ...(options.drainMs === undefined ? {} : { drainMs: options.drainMs })
    });
    return new Panel({ foundation, people, proxy, importExport, plugins, gateway, isRehearsal }, (now) => {
        readiness = now;
    });
}

function httpPorts(
    { audit, clock, db, keyring, log, settings }: Foundation,
    { auth }: AccountServices,
    checkReturns: boolean
): HttpPorts {
    return {
        authenticator: auth.authenticator,
        recorder: audit,
        idempotency: new IdempotencyKeys({ db, keyring, clock }),
        clientAddress: (peer, forwardedFor) => settings.clientAddress(peer, forwardedFor),
        corsOrigins: () => settings.get('panel.corsOrigins'),
        origin: (host) => panelOrigin(settings.get('panel.url'), host),
        log,
        checkReturns
    };
}

function problemsOf({ db, log }: Foundation, { engine }: ProxyServices): () => readonly string[] {
    return () => {
        const ofEngine = engine.problem();
        const lost = log.lostLines();
        return [
            ...db.problems(),
            ...(ofEngine === null ? [] : [`The proxy engine: ${ofEngine}`]),
            ...(lost === 0 ? [] : [`${lost} lines of the log could not be written since the start`])
        ];
    };
}

function featureRoutes(
    { audit, settings, notifications, tasks, events }: Foundation,
    { auth, users, roles, permissions }: AccountServices,
    { engine, hosts, certificates, dnsProviders }: ProxyServices,
    importExport: ImportExport,
    catalogue: () => PluginCatalogue
): readonly Route[] {
    return [
        authRoutes(auth),
        userRoutes({ users, roles, permissions }),
        hostRoutes(hosts),
        certificateRoutes(certificates),
        dnsProviderRoutes(dnsProviders),
        engineRoutes(engine),
        auditRoutes(audit),
        settingsRoutes(settings),
        notificationRoutes(notifications, () =>
            catalogue()
                .list()
                .map(({ name }) => name)
        ),
        taskRoutes(tasks),
        eventRoutes(events),
        importExportRoutes(importExport)
    ].flat();
}

interface Parts {
    readonly foundation: Foundation;
    readonly people: AccountServices;
    readonly proxy: ProxyServices;
    readonly importExport: ImportExport;
    readonly plugins: Plugins;
    readonly gateway: Gateway;
    readonly isRehearsal: boolean;
}

/** One panel, built but not started. */
export class Panel {
    readonly #parts: Parts;
    readonly #setReadiness: (readiness: Readiness) => void;
    #opening: Promise<void> = Promise.resolve();

    constructor(parts: Parts, setReadiness: (readiness: Readiness) => void) {
        this.#parts = parts;
        this.#setReadiness = setReadiness;
    }

    get gateway(): Gateway {
        return this.#parts.gateway;
    }

    get hooks(): CoreHooks {
        return this.#parts.foundation.hooks;
    }

    get plugins(): Lifecycle {
        return this.#parts.plugins.lifecycle;
    }

    /** Resolves when every enabled plugin runs or has failed. */
    settled(): Promise<void> {
        return this.#opening;
    }

    /** Ends the plugin whose code threw an error that no code caught; false when no plugin did. Call it in the handler of `uncaughtException`. */
    handleUncaught(error: unknown): boolean {
        return this.#parts.plugins.handleUncaught(error);
    }

    /** Listens, then starts the engine. Resolves when both are done: the engine runs, or its status says why not. */
    async start(): Promise<AddressInfo> {
        const { foundation, people, proxy, plugins, gateway, isRehearsal } = this.#parts;
        const { config, hooks, notifications } = foundation;
        if (isRehearsal) {
            await notifications.close(); // from here on nothing is sent
        }
        const address = await gateway.listen(config.host, config.port);
        writePanelAddress(config.dataDir, {
            pid: process.pid,
            port: address.port,
            host: loopbackOf(config.host),
            instance: people.auth.consoleTokens.instance
        });
        await proxy.engine.boot();
        if (!isRehearsal) {
            void proxy.accessLog.tidy();
            proxy.certificates.start();
            notifications.start();
        }
        this.#setReadiness('ready');
        notifyLater(hooks.panelStarted, () => ({}));
        // Not awaited: a plugin that hangs must not keep users out.
        this.#opening = plugins.open();
        return address;
    }

    /** Drains requests and releases everything. The proxy engine keeps running unless `engine` is true. */
    async stop({ engine: stopEngine = false }: { readonly engine?: boolean } = {}): Promise<void> {
        const { foundation, people, proxy, importExport, plugins, gateway } = this.#parts;
        const { config, log, hooks, notifications, tasks, audit, db, lock } = foundation;
        this.#setReadiness('stopping');
        const parts: readonly (() => unknown)[] = [
            () => hooks.panelStopping.run({}),
            () => gateway.close(),
            () => plugins.close(),
            () => proxy.certificates.stop(),
            () => tasks.close(),
            () => importExport.close(),
            () => (stopEngine ? proxy.driver.stop() : undefined),
            () => proxy.engine.close(),
            () => people.auth.stop(),
            () => notifications.close(),
            () => audit.close(),
            () => db.close(),
            () => removePanelAddress(config.dataDir),
            () => lock.release()
        ];
        // Each part is stopped, also when an earlier one could not write its last records: a full disk must not keep the process.
        for (const stopPart of parts) {
            try {
                await stopPart();
            } catch (error) {
                log.error('A part of the panel did not stop cleanly', { error });
            }
        }
    }
}

function versionIn(packageJson: URL): string {
    return (JSON.parse(readFileSync(packageJson, 'utf8')) as { readonly version: string }).version;
}

/** The address under which the panel's own machine reaches it. */
function loopbackOf(host: string): string {
    return host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
}
