/** The composition root: every service, built once, by hand, in order. Nothing else in the core knows how the parts fit together. */
import { existsSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { alertOfPlugin, sendAlerts } from './composition/alerts.ts';
import { createPluginCatalogue, createTransfer, pluginHooks } from './composition/import-export.ts';
import { certificatesPort, hostsPort, networkPort } from './composition/plugin-ports.ts';
import { createServing } from './composition/proxy.ts';
import { openStorage } from './composition/storage.ts';
import type { EngineDriver } from './engine/port.ts';
import { engineRoutes } from './engine/routes.ts';
import { Audit } from './features/audit/audit.ts';
import { auditRoutes } from './features/audit/routes.ts';
import { createAuth } from './features/auth/auth.ts';
import { authRoutes } from './features/auth/routes.ts';
import { certificateRoutes } from './features/certificates/routes.ts';
import { dnsProviderRoutes } from './features/dns-providers/routes.ts';
import { hostRoutes } from './features/hosts/routes.ts';
import { KeptPlugins } from './features/import-export/plugins/kept.ts';
import type { PluginCatalogue } from './features/import-export/ports.ts';
import { importExportRoutes } from './features/import-export/routes.ts';
import { Notifications } from './features/notifications/notifications.ts';
import { notificationRoutes } from './features/notifications/routes.ts';
import { settingsRoutes } from './features/settings/routes.ts';
import { Settings } from './features/settings/settings.ts';
import { taskRoutes } from './features/tasks/routes.ts';
import { Tasks } from './features/tasks/tasks.ts';
import { Accounts } from './features/users/accounts/accounts.ts';
import { Console } from './features/users/console.ts';
import { Passwords } from './features/users/passwords/passwords.ts';
import { corePermissions, Permissions } from './features/users/roles/permissions.ts';
import { Roles } from './features/users/roles/roles.ts';
import { userRoutes } from './features/users/routes.ts';
import { Users } from './features/users/users.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import type { Config } from './platform/config.ts';
import { awaitDataDir, databaseName, prepareDataDir } from './platform/data-dir.ts';
import {
    type CoreHooks,
    createCoreHooks,
    type HookTiming,
    loginHooks,
    notifyLater,
    recordedHook
} from './platform/hooks.ts';
import { createKeyring } from './platform/keyring.ts';
import type { Log } from './platform/log.ts';
import { createOutbound } from './platform/outbound/client.ts';
import { removePanelAddress, writePanelAddress } from './platform/panel-address.ts';
import { createPlugins, type PluginsOptions } from './plugins/manager/plugins.ts';
import type { Lifecycle } from './plugins/manager/reconciler/lifecycle.ts';
import { pluginRoutes } from './plugins/manager/routes/routes.ts';
import { PluginSettings } from './plugins/manager/settings/plugin-settings.ts';
import type { PluginHostPorts } from './plugins/runtime/ports.ts';
import { createGateway, type Gateway } from './server/gateway/gateway.ts';
import { unknownPath } from './server/http/answer/unknown-path.ts';
import { healthRoutes, type Readiness } from './server/http/health.ts';
import { createIdempotency } from './server/http/idempotency/idempotency.ts';
import { createOpenApi } from './server/http/openapi/document.ts';
import { openApiRoutes } from './server/http/openapi/routes.ts';
import type { HttpPorts } from './server/http/ports.ts';
import { createSystemCall } from './server/http/request/system-call.ts';
import { createHttpServer } from './server/http/server.ts';

/** A panel that was built and can be started. */
export interface Panel {
    readonly gateway: Gateway;
    readonly hooks: CoreHooks;
    readonly plugins: Lifecycle;
    /** Resolves when every plugin that is enabled runs or has failed. */
    settled(): Promise<void>;
    /** Tells whether an uncaught error was a plugin's, and then stops the plugin. To be called in the handler of `uncaughtException`. */
    blame(error: unknown): boolean;
    /** Starts to listen, then brings the engine up; resolves when both are done, with the engine running or its trouble on record. */
    start(): Promise<AddressInfo>;
    /** Drains, and lets go of everything. The proxy engine keeps running unless it is asked to end. */
    stop(options?: { readonly engine?: boolean }): Promise<void>;
}

/** What a panel is built from. */
export interface PanelOptions {
    readonly config: Config;
    readonly log: Log;
    /** Shows a secret that was made at the first start, once, and nowhere else. */
    readonly show: (text: string) => void;
    /** The engine's driver; default: Caddy. */
    readonly driver?: EngineDriver;
    readonly clock?: Clock;
    /** Holds answers against their schemas; on in tests and development. */
    readonly checkReturns?: boolean;
    /** Default: 30 s. */
    readonly drainMs?: number;
    /** Hears where the swap of a plugin is before it goes on; for tests that end the process there. */
    readonly reached?: PluginsOptions['reached'];
    /** How long plugins may take, milliseconds. */
    readonly pluginTiming?: PluginsOptions['timing'];
    /** How long plugins may take with their data at an export and an import. */
    readonly hookTiming?: HookTiming;
}

/** Version of the core, as its package says. */
export const version = (
    JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

/** Version of the SDK, which plugins' ranges are held against. */
const sdkVersion = (
    JSON.parse(readFileSync(new URL('../package.json', import.meta.resolve('@portico/sdk')), 'utf8')) as {
        version: string;
    }
).version;

/** A command of the command line holds the folder for less. */
const lockPatienceMs = 5_000;

/** Builds the panel of a data folder. @throws Error when the folder is in use, damaged, or not its owner's alone */
export async function createPanel({
    config,
    log,
    show,
    clock = systemClock,
    checkReturns = false,
    ...options
}: PanelOptions): Promise<Panel> {
    prepareDataDir(config.dataDir);
    const lock = await awaitDataDir(config.dataDir, lockPatienceMs);
    if (lock === null) {
        throw new Error(`${config.dataDir} is in use by another panel`);
    }
    removePanelAddress(config.dataDir); // left by a panel that was killed: another process may have its port now
    const keyring = createKeyring(config.dataDir, { fresh: !existsSync(join(config.dataDir, databaseName)) });
    const db = await openStorage(config.dataDir);
    const hooks = createCoreHooks(log, options.hookTiming);
    let gateway: Gateway;
    let readiness: Readiness = 'starting';

    const settings = await Settings.load({ db, keyring, config, clock, log });
    const audit = await Audit.open({
        db,
        keyring,
        headFile: join(config.dataDir, 'audit.head'),
        clock,
        log,
        retentionDays: () => settings.get('audit.retentionDays'),
        recorded: recordedHook(hooks)
    });
    const outbound = createOutbound({ allow: () => settings.get('panel.outboundAllow'), log });
    const notifications = new Notifications({
        db,
        keyring,
        outbound,
        clock,
        log,
        recorder: audit,
        raised: hooks.notificationRaised
    });
    sendAlerts(hooks, notifications);
    const tasks = await Tasks.open({ db, log, clock });

    // Accounts and how they get in.
    const permissions = new Permissions();
    const roles = new Roles({ db, clock, permissions });
    const accounts = new Accounts({ db, clock, passwords: new Passwords(), roles });
    const auth = createAuth({
        db,
        clock,
        keyring,
        recorder: audit,
        accounts,
        settings,
        resolve: (path) => gateway.resolve(path),
        hooks: loginHooks(hooks),
        jwtSecret: config.jwtSecret
    });
    const users = new Users({ db, clock, accounts, roles, logins: auth });
    const admin = await new Console({ db, accounts, users, logins: auth }).firstRun(
        createSystemCall(audit),
        config.adminPassword
    );
    if (admin?.password != null) {
        show(
            `The first administrator is "${admin.username}" with the password ${admin.password}\nIt is shown this once, and must be changed at the first login.`
        );
    }

    const serving = createServing({
        config,
        db,
        keyring,
        settings,
        hooks,
        clock,
        log: log.child({ part: 'engine' }),
        driver: options.driver,
        tasks,
        outbound,
        systemCall: () => createSystemCall(audit)
    });
    const { driver, engine, hosts, certificates, dnsProviders } = serving;
    const kept = new KeptPlugins({ db, clock, keyring });
    let catalogue: PluginCatalogue;
    const transfer = createTransfer({
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
        serving,
        version,
        kept,
        plugins: () => catalogue,
        hooks: pluginHooks(hooks.host),
        notify: (notification) => notifications.notify(notification)
    });
    settings.onChange((keys) => notifyLater(hooks.settingsChanged, () => ({ keys })));

    const ports: HttpPorts = {
        authenticator: auth.authenticator,
        recorder: audit,
        idempotency: createIdempotency({ db, keyring, clock }),
        clientAddress: (peer, forwardedFor) => settings.clientAddress(peer, forwardedFor),
        corsOrigins: () => settings.get('panel.corsOrigins'),
        log,
        checkReturns
    };
    const openApi = createOpenApi({ servers: () => gateway.servers(), version });
    const featureRoutes = [
        healthRoutes(() => readiness),
        openApiRoutes(() => openApi),
        authRoutes(auth),
        userRoutes({ users, roles, permissions }),
        hostRoutes(hosts),
        certificateRoutes(certificates),
        dnsProviderRoutes(dnsProviders),
        engineRoutes(engine),
        auditRoutes(audit),
        settingsRoutes(settings),
        notificationRoutes(notifications),
        taskRoutes(tasks),
        importExportRoutes(transfer)
    ].flat();
    const plugins = await createPlugins({
        config,
        db,
        keyring,
        clock,
        log,
        permissions,
        forgetArea: async (tx, area) => {
            await roles.forgetArea(tx, area);
            await auth.apiTokens.forgetArea(tx, area);
        },
        reserved: reservedNames(featureRoutes),
        host: { sdk: sdkVersion, node: process.versions.node },
        ports: {
            http: ports,
            hooks: hooks.host,
            db,
            tasks,
            keyring,
            clock,
            log,
            get gateway() {
                return gateway;
            },
            notify: (notification) => notifications.notify(notification),
            renew: (caller) => auth.authenticator.renew(caller),
            hosts: hostsPort(hosts, engine),
            certificates: certificatesPort(certificates),
            network: networkPort(log),
            fragments: engine.fragments,
            forbidden: () => serving.forbidden()
        } satisfies PluginHostPorts,
        kept,
        ...(options.reached === undefined ? {} : { reached: options.reached }),
        changed(plugin, state, before, failure) {
            notifyLater(hooks.pluginStateChanged, () => ({ plugin, state, before }));
            alertOfPlugin(notifications, { plugin, state, failure });
            if (state === 'running') {
                transfer.started(plugin);
            }
        },
        routesChanged: (plugin) => notifyLater(hooks.routesChanged, () => ({ plugin })),
        ...(options.pluginTiming === undefined ? {} : { timing: options.pluginTiming })
    });
    catalogue = createPluginCatalogue({
        lifecycle: plugins.lifecycle,
        installer: plugins.installer,
        kept,
        pluginSettings: new PluginSettings(keyring),
        keyring,
        db,
        log,
        tasks,
        audit
    });
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        ports,
        unknown: unknownPath((plugin) => plugins.refusal(plugin)),
        routes: [...featureRoutes, ...pluginRoutes(plugins.service, plugins.installer)]
    });
    gateway = await createGateway({
        core,
        log,
        ...(options.drainMs === undefined ? {} : { drainMs: options.drainMs })
    });

    let opening: Promise<void> = Promise.resolve();

    return {
        gateway,
        hooks,
        plugins: plugins.lifecycle,
        settled: () => opening,
        blame: (error) => plugins.handleUncaught(error),
        async start() {
            const address = await gateway.listen(config.host, config.port);
            writePanelAddress(config.dataDir, {
                pid: process.pid,
                port: address.port,
                host: loopbackOf(config.host),
                instance: auth.consoleTokens.instance
            });
            await engine.boot();
            certificates.start();
            notifications.start();
            readiness = 'ready';
            notifyLater(hooks.panelStarted, () => ({}));
            opening = plugins.open(); // a plugin that hangs there does not keep requests out
            return address;
        },
        async stop({ engine: stopEngine = false } = {}) {
            readiness = 'stopping';
            await hooks.panelStopping.run({});
            await gateway.close();
            await plugins.close();
            certificates.stop();
            await tasks.close();
            await transfer.close();
            if (stopEngine) {
                await driver.stop();
            }
            await engine.close();
            await auth.stop();
            await notifications.close();
            await audit.close();
            await db.close();
            removePanelAddress(config.dataDir);
            lock.release();
        }
    };
}

/** Names that would be mistaken for the core's own: its areas of permissions, and what stands after `/api/`. */
function reservedNames(routes: readonly { readonly path: string }[]): ReadonlySet<string> {
    return new Set([
        'core',
        'panel',
        'system',
        ...corePermissions.map(({ name }) => name.split(':')[0] ?? ''),
        ...routes.map(({ path }) => /^\/api\/([a-z0-9-]+)/.exec(path)?.[1] ?? 'api')
    ]);
}

/** The address under which the panel's own machine reaches it. */
function loopbackOf(host: string): string {
    return host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
}
