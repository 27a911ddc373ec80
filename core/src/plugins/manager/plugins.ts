/** The plugins of a panel, put together: the registry, the plugin host, records, lifecycle, installs, and what admins see of all that. */
import { join } from 'node:path';

import { createRegistry, type Registry } from '@portico/registry';

import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { Log } from '../../platform/log/log.ts';
import type { PagesState } from '../../server/http/start-page.ts';
import type { GenerationTiming, PluginHost } from '../runtime/generation/generation.ts';
import { createPluginHost } from '../runtime/generation/host.ts';
import { ErrorOwner, isDeparture } from '../runtime/isolation/error-owner.ts';
import type { PluginHostPorts } from '../runtime/ports.ts';
import { PluginData } from './data/data-folders.ts';
import { Installer } from './install/installer.ts';
import { npmSetting } from './install/npm-setting.ts';
import type { InstallerPorts, KeptSettings } from './install/ports.ts';
import { CrashLoop } from './reconciler/failures/crash-loop.ts';
import { fragmentDrop } from './reconciler/failures/fragment-drop.ts';
import { collectChecks, PluginHealth } from './reconciler/health.ts';
import { Lifecycle, type LifecycleEvents, type LifecycleOptions } from './reconciler/lifecycle.ts';
import { placesOf } from './reconciler/places.ts';
import { DeclaredPermissions, type PermissionCatalogue } from './records/declared-permissions.ts';
import { Records } from './records/records.ts';
import { RecordedServices } from './records/services.ts';
import { PluginService } from './routes/service.ts';
import { PluginSettings } from './settings/plugin-settings.ts';
import { Incidents } from './watchdog/incidents.ts';
import type { WatchedPlugin } from './watchdog/watch-thread.ts';
import { Watchdog } from './watchdog/watchdog.ts';

/** What the plugins of a panel are made of. */
export interface PluginsOptions {
    readonly config: Pick<Config, 'dataDir' | 'pluginDirs' | 'nodeModules' | 'npmRegistry' | 'safeMode'>;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly clock: Clock;
    readonly log: Log;
    readonly ports: PluginHostPorts;
    /** The role catalogue. */
    readonly permissions: PermissionCatalogue;
    /** Takes a plugin name's permissions out of roles and tokens. */
    readonly forgetArea: LifecycleOptions['forgetArea'];
    /** Names that no plugin may have. */
    readonly reserved: ReadonlySet<string>;
    /** The versions that plugins' ranges are checked against. */
    readonly host: { readonly sdk: string; readonly node: string };
    /** Settings that an import brought before their plugin. */
    readonly kept: KeptSettings;
    readonly reached?: InstallerPorts['reached'];
    readonly changed: LifecycleEvents['stateChanged'];
    readonly routesChanged: LifecycleEvents['routesChanged'];
    /** Names plugins that block, end or fill the process; for a panel that has its process for itself. */
    readonly watch: boolean;
    /** Milliseconds. `goodMs`: a start is good so long after the last plugin has started; default 10,000. */
    readonly timing?: Partial<GenerationTiming> & {
        readonly importMs?: number;
        readonly goodMs?: number;
        readonly healthEveryMs?: number;
    };
}

const usualGoodMs = 10_000;

/** States in which a plugin stays until something changes. */
const settledStates: ReadonlySet<string> = new Set(['running', 'disabled', 'failed', 'quarantined']);

interface Parts {
    readonly options: PluginsOptions;
    readonly registry: Registry;
    readonly host: PluginHost;
    readonly data: PluginData;
    readonly records: Records;
}

/** Makes the plugins of a panel; no plugin is loaded before `open`. */
export async function createPlugins(options: PluginsOptions): Promise<Plugins> {
    const { config, db, keyring, clock, log, ports, timing: { importMs } = {} } = options;
    const registry = await createRegistry({
        dataDir: config.dataDir,
        registryUrl: () => npmSetting(config.npmRegistry, (secret) => log.hide(secret)),
        hmacKey: keyring.derive('plugins lock'),
        reserved: options.reserved,
        host: options.host,
        log: {
            info: (detail, message) => log.info(message, detail),
            warn: (detail, message) => log.warn(message, detail)
        },
        ...(importMs === undefined ? {} : { importMs })
    });
    const host = createPluginHost(ports);
    const data = await PluginData.open(
        { dataDir: config.dataDir, db, clock },
        registry.lock.current().map(({ folder }) => folder)
    ); // before the records are read: it may finish a swap that was killed
    return new Plugins({ options, registry, host, data, records: await Records.open(db) });
}

/** The plugins of a panel. */
export class Plugins {
    readonly service: PluginService;
    readonly installer: Installer;
    readonly lifecycle: Lifecycle;
    readonly #options: PluginsOptions;
    readonly #registry: Registry;
    readonly #host: PluginHost;
    readonly #data: PluginData;
    readonly #errorOwner = new ErrorOwner((plugin, folder) => this.#watch({ plugin, folder }));
    readonly #incidents: Incidents;
    #watchdog: Watchdog | null = null;
    #watches = false;
    readonly #crashLoop: CrashLoop;
    readonly #health: PluginHealth;
    #safeMode: string | null = null;
    #goodTimer: NodeJS.Timeout | undefined;
    #isOpen = false;

    constructor({ options, registry, host, data, records }: Parts) {
        const { config, db, keyring, clock, log, ports, timing = {} } = options;
        const { importMs: _import, goodMs: _good, healthEveryMs, ...generationTiming } = timing;
        this.#options = options;
        this.#registry = registry;
        this.#host = host;
        this.#data = data;
        this.#crashLoop = new CrashLoop(db, clock);
        const permissions = new DeclaredPermissions(options.permissions, log);
        // From the first request on, a user has the same permissions as before a restart: pages that are open show what they allow.
        permissions.update(records.all().filter(({ enabled }) => enabled));
        this.lifecycle = new Lifecycle({
            registry,
            host,
            records,
            data,
            errorOwner: this.#errorOwner,
            clock,
            log,
            places: placesOf(config),
            timing: generationTiming,
            forgetArea: options.forgetArea,
            events: {
                stateChanged: options.changed,
                routesChanged: options.routesChanged,
                inventoryChanged: (known) => permissions.update(known)
            }
        });
        this.#incidents = new Incidents({
            folder: incidentsIn(config.dataDir),
            lifecycle: this.lifecycle,
            log,
            notify: (notification) => ports.notify(notification)
        });
        this.#health = new PluginHealth({
            lifecycle: this.lifecycle,
            clock,
            log,
            ...(healthEveryMs === undefined ? {} : { everyMs: healthEveryMs }),
            collect: (plugin) => collectChecks(ports.hooks, plugin)
        });
        const shared = {
            lifecycle: this.lifecycle,
            db,
            clock,
            pluginSettings: new PluginSettings(keyring),
            safeMode: () => this.#safeMode,
            services: new RecordedServices(ports.services),
            dropFragments: fragmentDrop(ports.fragments, log),
            hurry: (plugin: string) => ports.gateway.hurry(plugin)
        };
        this.service = new PluginService({
            ...shared,
            dataMoved: () => data.reload(),
            health: this.#health
        });
        this.installer = new Installer({
            ...shared,
            data,
            log,
            gateway: { park: (name) => ports.gateway.park(name) },
            tasks: ports.tasks,
            hosts: ports.hosts,
            recorder: ports.http.recorder,
            kept: options.kept,
            ...(options.reached === undefined ? {} : { reached: options.reached })
        });
    }

    /** Loads and starts the enabled plugins. Resolves when every start has ended, which may take as long as the slowest plugin hangs. Never rejects. */
    async open(): Promise<void> {
        try {
            await this.#open();
        } catch (error) {
            this.#options.log.error('Plugins could not be loaded', { error });
        }
    }

    /** The start of an enabled plugin that is under way, or about to begin; it resolves when it has ended. Null when there is none. */
    startOf(plugin: string): Promise<unknown> | null {
        const { lifecycle } = this;
        if (this.#safeMode === null && lifecycle.phase === 'new') {
            return lifecycle.records.of(plugin).some(({ enabled }) => enabled)
                ? lifecycle.inventoryReady.then(() => this.startOf(plugin))
                : null;
        }
        const runtime = lifecycle.runtime(plugin);
        return lifecycle.phase === 'open' &&
            runtime !== null &&
            !settledStates.has(runtime.state) &&
            lifecycle.recordOf(runtime)?.enabled !== false
            ? lifecycle.withPlugin(plugin, async () => undefined)
            : null;
    }

    /** Whether a plugin of this name is installed, or its data are kept. */
    has(name: string): boolean {
        const { lifecycle } = this;
        return (
            lifecycle.runtime(name) !== null ||
            lifecycle.records.of(name).length > 0 ||
            this.#data.holds(name)
        );
    }

    /** Why a path of a plugin is not served. */
    refusal(plugin: string): Error {
        const runtime = this.lifecycle.runtime(plugin);
        const safe = this.#safeMode;
        if (safe !== null || this.lifecycle.phase === 'new') {
            return fail.NOT_READY(safe === null ? { retryAfterSeconds: 1 } : null, {
                message: safe ?? 'The panel is still looking for its plugins'
            });
        }
        if (runtime === null) {
            return fail.PLUGIN_NOT_FOUND({ plugin });
        }
        switch (runtime.state) {
            case 'disabled':
                return fail.PLUGIN_DISABLED({ plugin });
            case 'failed':
            case 'quarantined':
                return fail.PLUGIN_FAILED({
                    plugin,
                    stage: runtime.failure?.stage ?? 'running',
                    cause: runtime.failure?.code ?? 'UNKNOWN'
                });
            default: {
                const isStarting = this.lifecycle.recordOf(runtime)?.enabled !== false;
                return fail.NOT_READY(isStarting ? { retryAfterSeconds: 1 } : null, {
                    message: `The plugin ${plugin} is ${isStarting ? 'starting' : 'stopping'}`
                });
            }
        }
    }

    /** Why no plugin serves the root of the site. */
    pagesState(): PagesState {
        if (this.#safeMode !== null) {
            return 'safe-mode';
        }
        const pages = this.lifecycle
            .runtimes()
            .filter(({ plugin }) => plugin?.manifest.capabilities?.pages === true);
        const isFailed = ({ state }: (typeof pages)[number]): boolean =>
            state === 'failed' || state === 'quarantined';
        if (pages.length === 0) {
            return this.lifecycle.phase === 'new' ? 'starting' : 'missing';
        }
        if (pages.every(({ state }) => state === 'disabled')) {
            return 'disabled';
        }
        return pages.some(isFailed) ? 'failed' : 'starting';
    }

    /** Whether an uncaught error came from a plugin; that plugin is then stopped. Must be called in the handler of the uncaught error. */
    handleUncaught(error: unknown): boolean {
        const plugin = this.#errorOwner.of(error);
        if (plugin !== null && isDeparture(error)) {
            this.#options.log.warn('A plugin does not handle that a client closed its request', {
                plugin,
                error
            });
        } else if (plugin !== null) {
            this.#errorOwner.outside(() => this.lifecycle.handleUncaught(plugin, error));
        }
        return plugin !== null;
    }

    /** Why no plugin is loaded; null when plugins are loaded. */
    safeMode(): string | null {
        return this.#safeMode;
    }

    /** Stops all plugins, each before the plugins that it requires. */
    async close(): Promise<void> {
        clearTimeout(this.#goodTimer);
        this.#health.close();
        await this.lifecycle.close();
        await this.#options.ports.services.close();
        await this.#watchdog?.close();
        if (this.#isOpen && this.#safeMode === null) {
            await this.#crashLoop.forgetStarts();
        }
    }

    async #open(): Promise<void> {
        const { log } = this.#options;
        void this.#options.ports.services.open(); // not awaited: services that hang must not keep plugins waiting
        await this.#host.recover();
        await this.#registry.collect();
        if (await this.#incidents.countEarlier()) {
            await this.#crashLoop.forgetStarts(); // it is known which plugin did it, so the others need not stay away
        }
        this.#safeMode = await this.#decideSafeMode();
        if (this.#safeMode === null) {
            await this.#crashLoop.countStart();
            this.#watches = this.#options.watch;
        } else {
            log.warn(this.#safeMode);
        }
        await this.lifecycle.open({ safe: this.#safeMode !== null });
        for (const { path, reason } of this.lifecycle.known.skipped) {
            log.warn('A folder of plugins was not searched', { path, reason });
        }
        if (this.#safeMode === null && this.lifecycle.phase === 'open') {
            this.#health.start();
            this.#goodTimer = setTimeout(
                () => this.#noteGoodStart(),
                this.#options.timing?.goodMs ?? usualGoodMs
            ).unref();
        }
        this.#isOpen = true;
    }

    async #decideSafeMode(): Promise<string | null> {
        if (this.#options.config.safeMode) {
            return 'Safe mode: no plugin is loaded, because PORTICO_SAFE_MODE is set. Start without it to load them again';
        }
        if (!(await this.#crashLoop.takeDetected())) {
            return null;
        }
        const text =
            'Safe mode: no plugin is loaded, because the last three starts with plugins did not become good. Disable the one that you suspect, and start again';
        this.#options.ports.notify({
            event: 'plugin.safeMode',
            severity: 'error',
            title: 'The panel started in safe mode',
            text
        });
        return text;
    }

    /** The watchdog begins with the first plugin: its thread takes a tenth of the time of a start. */
    #watch(plugin: WatchedPlugin): void {
        if (this.#watches) {
            this.#watchdog ??= this.#errorOwner.outside(() => this.#createWatchdog());
            this.#watchdog.watch(plugin);
        }
    }

    #createWatchdog(): Watchdog {
        const { config, log } = this.#options;
        return new Watchdog({
            folder: incidentsIn(config.dataDir),
            errorOwner: this.#errorOwner,
            noted: (incident) =>
                void this.#incidents
                    .count(incident)
                    .catch((error: unknown) =>
                        log.error('An incident of a plugin could not be counted', { error })
                    ),
            failed: (error) => log.error('Plugins are no longer watched', { error })
        });
    }

    #noteGoodStart(): void {
        this.#crashLoop
            .forgetStarts()
            .catch((error: unknown) => this.#options.log.error('A good start could not be noted', { error }));
    }
}

const incidentsIn = (dataDir: string): string => join(dataDir, 'plugin-incidents');
