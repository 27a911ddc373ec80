/**
 * The plugins of a panel. One procedure, `reconcile`, compares what an admin decided with what runs, and takes the one step that is missing: it
 * starts the plugin, stops it, or marks it as failed. Every change edits a record or the disk, or ends a plugin, and then calls `reconcile`; the
 * plugins that require the changed one are reconciled after it. Work on one plugin runs one at a time.
 */
import type { Found, Place, PluginPackage, Registry } from '@portico/registry';
import { KeyedMutex, messageOf } from '@portico/sdk';

import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log/log.ts';
import type {
    Generation,
    GenerationOptions,
    GenerationTiming,
    PluginHost,
    ReleaseReport
} from '../../runtime/generation/generation.ts';
import type { ErrorOwner } from '../../runtime/isolation/error-owner.ts';
import { bindsSetup } from '../consent/capabilities.ts';
import type { DataFolders, PluginFailure, PluginRecord, PluginState, Runtime } from '../records/plugin.ts';
import { newRecord, type Records } from '../records/records.ts';
import { BackgroundWork } from './background.ts';
import { desiredStateOf, missingRequirement } from './desired-state.ts';
import { takeInventory } from './inventory.ts';
import { Runtimes } from './runtimes.ts';
import { interruptedCode, prepareGeneration, start, StartAborted, type StartPorts } from './start.ts';
import { isSameFailure, PluginStates, type StateOptions } from './states.ts';

/** Listeners for changes of plugins. They must not throw. */
export interface LifecycleEvents {
    readonly stateChanged: StateOptions['changed'];
    /** The plugin's routes were added or removed. */
    routesChanged(plugin: string): void;
    /** The set of known packages changed, so their permissions must be declared again. */
    inventoryChanged(plugins: readonly PluginRecord[]): void;
}

/** What the lifecycle is made of. */
export interface LifecycleOptions {
    readonly registry: Registry;
    readonly host: PluginHost;
    readonly records: Records;
    readonly data: DataFolders;
    readonly errorOwner: ErrorOwner;
    readonly clock: Clock;
    readonly log: Logger;
    readonly places: readonly Place[];
    readonly events: LifecycleEvents;
    /** Takes a plugin name's permissions out of roles and tokens, because another package had them. */
    readonly forgetArea: (tx: Transaction, area: string) => Promise<void>;
    readonly timing?: Partial<GenerationTiming>;
}

/** How long `close` waits for a plugin that is in the middle of its start. */
const closePatienceMs = 3_000;

/** Starts, stops and watches plugins. */
export class Lifecycle {
    readonly registry: Registry;
    readonly host: PluginHost;
    readonly records: Records;
    readonly forgetArea: LifecycleOptions['forgetArea'];
    /** All plugins by name, and who requires whom. */
    readonly known: Runtimes;
    readonly #options: LifecycleOptions;
    readonly #startPorts: StartPorts;
    readonly #states: PluginStates;
    readonly #mutex = new KeyedMutex();
    readonly #background: BackgroundWork;
    readonly #inventoryReady = Promise.withResolvers<void>();
    #phase: 'new' | 'open' | 'safe' | 'closing' = 'new';

    constructor(options: LifecycleOptions) {
        const { registry, host, records, data, errorOwner, clock, log, events, timing = {} } = options;
        this.registry = registry;
        this.host = host;
        this.records = records;
        this.forgetArea = options.forgetArea;
        this.#options = options;
        this.known = new Runtimes(records);
        this.#states = new PluginStates({ records, clock, log, changed: events.stateChanged });
        this.#background = new BackgroundWork((error) => log.error('Work on a plugin failed', { error }));
        this.#startPorts = {
            registry,
            host,
            timing,
            confine: (name, folder) => errorOwner.confine(name, folder),
            dataDir: (found) => data.current(found),
            accepted: (found) => data.acceptedOf(found),
            missingRequirement: (runtime) => missingRequirement(runtime, (name) => this.runtime(name)),
            record: (runtime) => this.recordOf(runtime) ?? newRecord(runtime.plugin as PluginPackage, 0),
            reached: (runtime, state) => this.#reached(runtime, state)
        };
    }

    /** `new`: the disk was not searched yet. `safe`: no plugin is loaded. */
    get phase(): 'new' | 'open' | 'safe' | 'closing' {
        return this.#phase;
    }

    /** Resolves when the disk was searched, so that all plugins are known. */
    get inventoryReady(): Promise<void> {
        return this.#inventoryReady.promise;
    }

    /** One plugin; null when the name is unknown. */
    runtime(name: string): Runtime | null {
        return this.known.get(name);
    }

    /** All plugins; each comes after the plugins that it requires. */
    runtimes(): readonly Runtime[] {
        return this.known.list();
    }

    /** The record that applies to a plugin now; null when its manifest was never readable. */
    recordOf(runtime: Pick<Runtime, 'name' | 'plugin' | 'found'>): PluginRecord | null {
        return this.known.recordOf(runtime);
    }

    /** Runs work when all earlier work on this plugin has ended. The work must not call `withPlugin` for the same name and wait for it. */
    withPlugin<T>(name: string, work: () => Promise<T>): Promise<T> {
        return this.#mutex.run(name, () => this.#options.errorOwner.outside(work));
    }

    /** Searches the disk again, and makes records for new packages. Running plugins go on as they are. */
    async refreshInventory(): Promise<void> {
        const { places, clock, events, records } = this.#options;
        const inventory = await takeInventory(this.registry, places);
        await records.enrol(
            inventory.named.flatMap(({ plugin, found }) =>
                plugin === null ? [] : [{ plugin, trusted: found.origin === 'folder' }]
            ),
            clock.now()
        );
        this.known.update(inventory);
        events.inventoryChanged(this.runtimes().flatMap((runtime) => this.recordOf(runtime) ?? []));
    }

    /** Reconciles all plugins for the first time, side by side as far as their requirements allow. @param mode - `safe`: load no plugin */
    async open({ safe }: { readonly safe: boolean }): Promise<void> {
        try {
            await this.refreshInventory();
            this.#phase = safe ? 'safe' : 'open';
            const reconciled = Promise.all(this.runtimes().map(({ name }) => this.reconcile(name)));
            await (safe ? reconciled : null);
            this.#inventoryReady.resolve();
            await reconciled;
            await this.idle();
        } finally {
            this.#inventoryReady.resolve(); // also when the disk cannot be read: no request may wait for ever
        }
    }

    /**
     * Brings one plugin to its desired state. A failure is noted on its record and does not reject.
     *
     * @param options - `retry`: start it again although its last start failed
     * @returns what the plugin held, when it was stopped; null otherwise
     */
    async reconcile(
        name: string,
        { retry = false }: { readonly retry?: boolean } = {}
    ): Promise<ReleaseReport | null> {
        const runtime = this.runtime(name);
        if (runtime === null || this.#phase === 'new' || this.#phase === 'closing') {
            return null;
        }
        // Waits only for work on required plugins that began earlier, so plugins never wait for each other in a circle.
        const required = Object.keys(runtime.plugin?.manifest.requires ?? {}).map((other) =>
            this.#mutex.idle(other)
        );
        const released = await this.withPlugin(name, async () => {
            await Promise.all(required);
            return this.#reconcile(runtime, retry);
        });
        if (runtime.isKnownToRun !== (runtime.state === 'running')) {
            this.reconcileDependants(name);
        }
        return released;
    }

    /** Reconciles the plugins that require this one, in the background: they fail when it stops, and start when it runs. */
    reconcileDependants(name: string): void {
        const runtime = this.runtime(name);
        if (runtime !== null) {
            runtime.isKnownToRun = runtime.state === 'running';
        }
        this.known.dependants(name).forEach((other) => this.#background.add(this.reconcile(other)));
    }

    /** Stops a plugin. Only inside `withPlugin`. @returns what it held; null when it did not run */
    async stop(runtime: Runtime, reason: string): Promise<ReleaseReport | null> {
        const { generation } = runtime;
        if (generation === null) {
            return null;
        }
        Object.assign(runtime, { generation: null, health: null });
        const report = await generation.close(reason);
        runtime.released = { at: this.#options.clock.now(), report };
        this.#options.events.routesChanged(runtime.name);
        return report;
    }

    /** Applies changed grants and settings to a running plugin, or starts it again when it does not accept them; then reconciles it. */
    async refresh(
        name: string,
        before: Pick<PluginRecord, 'grants' | 'settings'>,
        options: { readonly retry: boolean }
    ): Promise<void> {
        await this.withPlugin(name, async () => {
            const runtime = this.runtime(name);
            const record = runtime === null ? null : this.recordOf(runtime);
            if (runtime === null || runtime.generation === null || record === null) {
                return;
            }
            try {
                if (record.grants !== before.grants) {
                    await runtime.generation.revoke();
                }
                if (record.settings !== before.settings) {
                    await runtime.generation.apply(record.settings);
                }
                if (bindsSetup(before.grants, record.grants)) {
                    await this.stop(runtime, 'its grants changed');
                }
            } catch (error) {
                this.#options.log.warn('A running plugin did not accept a change, and is started again', {
                    plugin: name,
                    error
                });
                await this.stop(runtime, 'it did not accept a change');
            }
        });
        await this.reconcile(name, options);
    }

    /** Notes that another package, and its generation, took the plugin's place. Only inside `withPlugin`; call `reconcileDependants` afterwards. */
    switchTo(
        runtime: Runtime,
        next: {
            readonly found: Found;
            readonly plugin: PluginPackage;
            readonly definition: Runtime['definition'];
            readonly generation: Generation | null;
        }
    ): void {
        Object.assign(runtime, next, { importFailed: false, obstacle: null, health: null });
        if (next.generation !== null) {
            this.#states.set(runtime, 'running', null);
            this.#options.events.routesChanged(runtime.name);
        }
    }

    /** Makes a generation of imported code. It answers no request before `mount`. @throws GenerationFault */
    prepareGeneration(
        found: Found,
        definition: NonNullable<Runtime['definition']>,
        options: Pick<GenerationOptions, 'dataDir' | 'settings' | 'grants' | 'accepted'>
    ): Promise<Generation> {
        return prepareGeneration(found, definition, options, this.#startPorts);
    }

    /** Imports the code of a package. Errors that it throws later are assigned to the plugin. */
    load(name: string, found: Found, options?: { readonly fresh?: boolean }): ReturnType<Registry['load']> {
        return this.#options.errorOwner
            .confine(name, found.folder)
            .enter(() => this.registry.load(found, options));
    }

    /** Notes a failure on the plugin's record; after too many of them the plugin is in quarantine. Only inside `withPlugin`, when nothing of it runs. */
    markFailed(runtime: Runtime, failure: Omit<PluginFailure, 'at'>): Promise<void> {
        return this.#states.markFailed(runtime, this.recordOf(runtime), failure);
    }

    /** Stops a plugin that threw an error outside of every call, and marks it as failed. */
    handleUncaught(name: string, error: unknown): void {
        const message = messageOf(error);
        this.#options.log.error('A plugin threw an uncaught error', { plugin: name, error });
        this.end(name, 'it threw an uncaught error', { stage: 'running', code: 'UNCAUGHT', message });
    }

    /** Stops a plugin that does harm, and marks it as failed; in the background. */
    end(name: string, reason: string, failure: Omit<PluginFailure, 'at'>): void {
        this.#background.add(
            this.withPlugin(name, async () => {
                const runtime = this.runtime(name);
                if (runtime?.generation != null && this.#phase !== 'closing') {
                    await this.stop(runtime, reason);
                    await this.markFailed(runtime, failure);
                    this.reconcileDependants(name);
                }
            })
        );
    }

    /** Disables plugins on their records, as part of a transaction. Call `reconcile` for each afterwards. */
    async disable(tx: Transaction, names: readonly string[]): Promise<void> {
        for (const name of names) {
            const runtime = this.runtime(name);
            const record = runtime === null ? null : this.recordOf(runtime);
            if (record !== null) {
                await this.records.put(tx, { ...record, enabled: false, version: record.version + 1 });
            }
        }
    }

    /** Resolves when no work on any plugin is left. */
    async idle(): Promise<void> {
        await this.#background.idle();
        await this.#mutex.idle();
    }

    /** Stops all plugins, each before the plugins that it requires. */
    async close(): Promise<void> {
        this.#phase = 'closing';
        const closed = new Map<string, Promise<ReleaseReport | undefined>>();
        for (const runtime of [...this.runtimes()].reverse()) {
            const dependants = this.known
                .dependants(runtime.name)
                .flatMap((other) => closed.get(other) ?? []);
            runtime.interrupt?.();
            closed.set(
                runtime.name,
                Promise.all(dependants).then(() => runtime.generation?.close('the panel stops'))
            );
        }
        await Promise.all(closed.values());
        let timer: NodeJS.Timeout | undefined;
        await Promise.race([
            this.idle(),
            new Promise((resolve) => {
                timer = setTimeout(resolve, closePatienceMs);
            })
        ]);
        clearTimeout(timer);
    }

    /** Only inside `withPlugin`. */
    async #reconcile(runtime: Runtime, retry: boolean): Promise<ReleaseReport | null> {
        if (this.#phase === 'closing') {
            return null; // `close` ends what runs; that a requirement has ended is no fault of what stands on it
        }
        const record = this.recordOf(runtime);
        const idle = desiredStateOf(runtime, record, (name) => this.runtime(name), this.#phase === 'safe');
        if (idle !== null) {
            const report = await this.stop(runtime, idle.fault?.message ?? `it is ${idle.state}`);
            const isThere = idle.state === runtime.state && isSameFailure(idle.fault, runtime.failure);
            if (idle.state === 'failed' && idle.fault !== null && !isThere) {
                await this.markFailed(runtime, idle.fault);
            } else if (!isThere) {
                const { quarantinedAt, failure } = record ?? { quarantinedAt: null, failure: null };
                this.#states.set(runtime, idle.state, quarantinedAt === null ? null : failure);
            }
            return report;
        }
        // A missing requirement may be there by now; any other failure waits for an admin.
        const waits = runtime.state === 'failed' && !retry && runtime.failure?.stage !== 'resolved';
        if (runtime.generation === null && !waits) {
            await this.#start(runtime, record);
        }
        return null;
    }

    async #start(runtime: Runtime, record: PluginRecord | null): Promise<void> {
        await (record === null ? null : this.records.takeArea(record, this.forgetArea));
        try {
            await start(runtime, this.#startPorts);
            runtime.thrown = null;
            if (record !== null && record.failure !== null) {
                await this.records.note(record.name, record.package, { failure: null });
            }
            this.#options.events.routesChanged(runtime.name);
        } catch (error) {
            runtime.thrown = error;
            const failure =
                error instanceof StartAborted
                    ? error.failure
                    : { stage: 'running' as const, code: 'INTERNAL', message: String(error) };
            if (this.#phase !== 'closing' && failure.code !== interruptedCode) {
                await this.markFailed(runtime, failure);
            }
        }
    }

    #reached(runtime: Runtime, state: PluginState): void {
        if (this.#phase === 'closing') {
            throw new StartAborted({
                stage: 'running',
                code: 'PANEL_STOPPING',
                message: 'The panel stops'
            });
        }
        this.#states.set(runtime, state, null);
    }
}
