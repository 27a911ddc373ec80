/** Plugins, put together: the registry, the host, their records, the lifecycle, and what an admin sees of all that. */
import { createRegistry } from '@portico/registry';

import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { Log } from '../../platform/log.ts';
import type { GenerationTiming } from '../runtime/generation.ts';
import { createPluginHost } from '../runtime/host.ts';
import { Blame, isDeparture } from '../runtime/isolation/error-owner.ts';
import type { PluginHostPorts } from '../runtime/ports.ts';
import { PluginData } from './data/data-folders.ts';
import {
    createInstaller,
    type Installer,
    type InstallerPorts,
    type KeptSettings
} from './install/installer.ts';
import { npmSetting } from './install/npm-setting.ts';
import { CrashLoop } from './reconciler/crash-loop.ts';
import { fragmentDrop } from './reconciler/fragment-drop.ts';
import { checksOf, PluginHealth } from './reconciler/health.ts';
import { Lifecycle, type LifecycleEvents, type LifecycleOptions } from './reconciler/lifecycle.ts';
import { placesOf } from './reconciler/places.ts';
import { type DeclaredPermission, permissionsOf } from './records/permissions.ts';
import { Records } from './records/records.ts';
import { createPluginService, type PluginService } from './routes/service.ts';
import { PluginSettings } from './settings/plugin-settings.ts';

export interface PluginsOptions {
    readonly config: Pick<Config, 'dataDir' | 'pluginDirs' | 'nodeModules' | 'npmRegistry' | 'safeMode'>;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly clock: Clock;
    readonly log: Log;
    readonly ports: PluginHostPorts;
    /** The role catalogue. */
    readonly permissions: {
        register(plugin: string, permissions: readonly DeclaredPermission[]): () => void;
    };
    /** Takes a name's permissions out of roles and tokens. */
    readonly forgetArea: LifecycleOptions['forgetArea'];
    /** Names that no plugin may have. */
    readonly reserved: ReadonlySet<string>;
    /** Versions that plugins' ranges are held against. */
    readonly host: { readonly sdk: string; readonly node: string };
    /** Settings that an import brought before their plugin. */
    readonly kept: KeptSettings;
    readonly reached?: InstallerPorts['reached'];
    readonly changed: LifecycleEvents['stateChanged'];
    readonly routesChanged: LifecycleEvents['routesChanged'];
    readonly timing?: Partial<GenerationTiming> & {
        readonly importMs?: number;
        readonly goodMs?: number;
        readonly healthEveryMs?: number;
    };
}

export interface Plugins {
    readonly service: PluginService;
    readonly installer: Installer;
    readonly lifecycle: Lifecycle;
    /** Loads and starts what is enabled; resolves when every journey has ended, which may take as long as the slowest hangs. Never rejects. */
    open(): Promise<void>;
    /** Why a path of a plugin is not served. */
    refusal(plugin: string): Error;
    /** Whether an error that nobody caught came from a plugin, which then ends. To be asked in the handler. */
    blame(error: unknown): boolean;
    /** Why no plugin is loaded; null when they are. */
    safeMode(): string | null;
    /** Stops them all, in reverse. */
    close(): Promise<void>;
}

/** So long after the last journey the start was a good one. */
const usualGoodMs = 10_000;

export async function createPlugins({
    config,
    db,
    keyring,
    clock,
    log,
    ports,
    timing = {},
    ...options
}: PluginsOptions): Promise<Plugins> {
    const { importMs, goodMs = usualGoodMs, healthEveryMs, ...generationTiming } = timing;
    const places = placesOf(config);
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
    const blame = new Blame();
    const boots = new CrashLoop(db, clock);
    const data = await PluginData.open(
        { dataDir: config.dataDir, db, clock },
        registry.lock.current().map(({ folder }) => folder)
    ); // before the records are read: it may finish a swap that was killed
    const records = await Records.open(db);
    const registered = new Map<string, () => void>();
    const lifecycle = new Lifecycle({
        registry,
        host,
        records,
        data,
        blame,
        clock,
        log,
        places,
        timing: generationTiming,
        forgetArea: options.forgetArea,
        events: {
            stateChanged: options.changed,
            routesChanged: options.routesChanged,
            inventoryChanged(known) {
                const gone = new Set(registered.keys());
                for (const { name, seen } of known) {
                    gone.delete(name);
                    try {
                        registered.set(name, options.permissions.register(name, permissionsOf(seen)));
                    } catch (error) {
                        log.warn('The permissions of a plugin are not known', { plugin: name, error });
                    }
                }
                for (const name of gone) {
                    registered.get(name)?.();
                    registered.delete(name);
                }
            }
        }
    });
    let safe: string | null = null;
    let good: NodeJS.Timeout | undefined;
    let opened = false;
    const safeMode = (): string | null => safe;
    const prover = new PluginSettings(keyring);
    const health = new PluginHealth({
        lifecycle,
        clock,
        log,
        ...(healthEveryMs === undefined ? {} : { everyMs: healthEveryMs }),
        async collect(plugin) {
            for await (const outcome of ports.hooks.collect('health.collect', async () => ({}), {
                only: [plugin]
            })) {
                return outcome.ok
                    ? checksOf(outcome.result)
                    : [{ name: 'health.collect', state: 'failed', evidence: outcome.message }];
            }
            return [];
        }
    });
    const dropFragments = fragmentDrop(ports.fragments, log);
    const service = createPluginService({
        lifecycle,
        prover,
        db,
        clock,
        safeMode,
        dataMoved: () => data.reload(),
        dropFragments,
        health,
        hurry: (plugin) => ports.gateway.hurry(plugin)
    });

    const installer = createInstaller({
        lifecycle,
        data,
        db,
        clock,
        log,
        prover,
        safeMode,
        gateway: { park: (name) => ports.gateway.park(name) },
        tasks: ports.tasks,
        recorder: ports.http.recorder,
        kept: options.kept,
        runningDependants: (name) => service.runningDependants(name),
        dropFragments,
        hurry: (plugin) => ports.gateway.hurry(plugin),
        ...(options.reached === undefined ? {} : { reached: options.reached })
    });

    const load = async (): Promise<void> => {
        await host.recover();
        await registry.collect();
        if (config.safeMode) {
            safe =
                'Safe mode: no plugin is loaded, because PORTICO_SAFE_MODE is set. Start without it to load them again';
        } else if (await boots.takeDetected()) {
            safe =
                'Safe mode: no plugin is loaded, because the last three starts with plugins did not become good. Disable the one that you suspect, and start again';
            ports.notify({
                event: 'plugin.safeMode',
                severity: 'error',
                title: 'The panel started in safe mode',
                text: safe
            });
        }
        if (safe !== null) {
            log.warn(safe);
        } else {
            await boots.countStart();
        }
        await lifecycle.open({ safe: safe !== null });
        for (const { path, reason } of lifecycle.skipped) {
            log.warn('A folder of plugins was not looked into', { path, reason });
        }
        if (safe === null && lifecycle.phase === 'open') {
            health.start();
            good = setTimeout(
                () =>
                    void boots
                        .forgetStarts()
                        .catch((error: unknown) => log.error('A good start could not be noted', { error })),
                goodMs
            ).unref();
        }
        opened = true;
    };

    return {
        service,
        installer,
        lifecycle,
        safeMode,
        async open() {
            try {
                await load();
            } catch (error) {
                log.error('Plugins could not be loaded', { error });
            }
        },
        refusal(plugin) {
            const runtime = lifecycle.runtime(plugin);
            if (safe !== null || lifecycle.phase === 'new') {
                return fail.NOT_READY(safe === null ? { retryAfterSeconds: 1 } : null, {
                    message: safe ?? 'The panel still looks for its plugins'
                });
            }
            switch (runtime?.state) {
                case undefined:
                    return fail.PLUGIN_NOT_FOUND({ plugin });
                case 'disabled':
                    return fail.PLUGIN_DISABLED({ plugin });
                case 'failed':
                case 'quarantined':
                    return fail.PLUGIN_FAILED({
                        plugin,
                        stage: runtime?.failure?.stage ?? 'running',
                        cause: runtime?.failure?.code ?? 'UNKNOWN'
                    });
                default:
                    return fail.NOT_READY(
                        { retryAfterSeconds: 1 },
                        { message: `The plugin ${plugin} is starting` }
                    );
            }
        },
        blame(error) {
            const plugin = blame.of(error);
            if (plugin !== null && isDeparture(error)) {
                log.warn('A plugin does not heed that a request was given up', { plugin, error });
            } else if (plugin !== null) {
                blame.outside(() => lifecycle.handleUncaught(plugin, error));
            }
            return plugin !== null;
        },
        async close() {
            clearTimeout(good);
            health.close();
            await lifecycle.close();
            if (opened && safe === null) {
                await boots.forgetStarts();
            }
        }
    };
}
