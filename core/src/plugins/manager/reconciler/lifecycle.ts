/**
 * The plugins of a panel: what is there, what is to run, and bringing the one to the other. There is one procedure, `settle`: it holds what was
 * decided against what runs and takes the one step that is missing. Every change is a change of a record, a disk or a plugin's own end,
 * followed by `settle`; those that require the plugin are settled after it. All that is done to one plugin is done in turn.
 */
import type { Found, Place, PluginPackage, Registry, Skipped } from '@portico/registry';
import { KeyedMutex } from '@portico/sdk';

import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import type { Logger } from '../../../platform/log.ts';
import type {
    Generation,
    GenerationOptions,
    GenerationTiming,
    PluginHost,
    ReleaseReport
} from '../../runtime/generation.ts';
import type { Blame } from '../../runtime/isolation/error-owner.ts';
import { bindsSetup } from '../consent/capabilities.ts';
import {
    type DataFolders,
    emptyRuntime,
    type PluginFailure,
    type PluginRecord,
    type PluginState,
    type Runtime
} from '../records/plugin.ts';
import { newRecord, type Records } from '../records/records.ts';
import { BackgroundWork } from './background.ts';
import { desiredStateOf, missingRequirement } from './desired-state.ts';
import { type PassedOver, takeInventory } from './inventory.ts';
import { count } from './quarantine.ts';
import { interruptedCode, prepareGeneration, start, StartAborted, type StartPorts } from './start.ts';

/** What others hear of. Must not throw. */
export interface LifecycleEvents {
    stateChanged(
        plugin: string,
        state: PluginState,
        before: PluginState,
        failure: PluginFailure | null
    ): void;
    /** Routes came or went. */
    routesChanged(plugin: string): void;
    /** What is known changed: permissions are to be declared anew. */
    inventoryChanged(plugins: readonly PluginRecord[]): void;
}

export interface LifecycleOptions {
    readonly registry: Registry;
    readonly host: PluginHost;
    readonly records: Records;
    readonly data: DataFolders;
    readonly blame: Blame;
    readonly clock: Clock;
    readonly log: Logger;
    readonly places: readonly Place[];
    readonly events: LifecycleEvents;
    /** Takes a name's permissions out of roles and tokens: they were given to another package. */
    readonly forgetArea: (tx: Transaction, area: string) => Promise<void>;
    readonly timing?: Partial<GenerationTiming>;
}

/** How long the end of the panel waits for a plugin that is just being made. */
const closePatienceMs = 3_000;

export class Lifecycle {
    readonly registry: Registry;
    readonly host: PluginHost;
    readonly records: Records;
    readonly forgetArea: LifecycleOptions['forgetArea'];
    readonly #options: LifecycleOptions;
    readonly #startPorts: StartPorts;
    readonly #runtimes = new Map<string, Runtime>();
    readonly #mutex = new KeyedMutex();
    readonly #background: BackgroundWork;
    readonly #inventoryReady = Promise.withResolvers<void>();
    /** Names in an order in which each comes after what it requires. */
    #order: readonly string[] = [];
    #passedOver: readonly PassedOver[] = [];
    #skipped: readonly Skipped[] = [];
    #phase: 'new' | 'open' | 'safe' | 'closing' = 'new';

    constructor(options: LifecycleOptions) {
        const { registry, host, records, data, blame, timing = {} } = options;
        this.registry = registry;
        this.host = host;
        this.records = records;
        this.forgetArea = options.forgetArea;
        this.#options = options;
        this.#background = new BackgroundWork((error) =>
            options.log.error('Work on a plugin failed', { error })
        );
        this.#startPorts = {
            registry,
            host,
            timing,
            confine: (name, folder) => blame.confine(name, folder),
            dataDir: (found) => data.current(found),
            accepted: (found) => data.acceptedOf(found),
            lacking: (runtime) => missingRequirement(runtime, (name) => this.runtime(name)),
            record: (runtime) => this.recordOf(runtime) ?? newRecord(runtime.plugin as PluginPackage, 0),
            reached: (runtime, state) => {
                if (this.#phase === 'closing') {
                    throw new StartAborted({
                        stage: 'running',
                        code: 'PANEL_STOPPING',
                        message: 'The panel stops'
                    });
                }
                this.#show(runtime, state, null);
            }
        };
    }

    /** `safe`: nothing is loaded. `new`: nothing is known yet. */
    get phase(): 'new' | 'open' | 'safe' | 'closing' {
        return this.#phase;
    }

    /** One plugin; null when nobody has heard of it. */
    runtime(name: string): Runtime | null {
        return this.#runtimes.get(name) ?? null;
    }

    /** All of them, each after what it requires. */
    runtimes(): readonly Runtime[] {
        return [...this.#runtimes.values()].sort(
            (one, two) => this.#placeOf(one.name) - this.#placeOf(two.name) || (one.name < two.name ? -1 : 1)
        );
    }

    /** Packages that lie there and cannot be used under a name of their own. */
    get passedOver(): readonly PassedOver[] {
        return this.#passedOver;
    }

    /** Places that were not looked into. */
    get skipped(): readonly Skipped[] {
        return this.#skipped;
    }

    /** The record that counts for a plugin now; null when its manifest was never readable. */
    recordOf({ name, plugin, found }: Pick<Runtime, 'name' | 'plugin' | 'found'>): PluginRecord | null {
        const packageName = plugin?.package ?? found?.lock?.package;
        return packageName === undefined
            ? found === null
                ? (this.records.of(name).at(-1) ?? null)
                : null
            : this.records.get(name, packageName);
    }

    /** Runs something when all that was begun before with this plugin has ended. Not to be nested with the same name. */
    withPlugin<T>(name: string, work: () => Promise<T>): Promise<T> {
        return this.#mutex.run(name, () => this.#options.blame.outside(work));
    }

    /** Looks at what lies on the disk, and makes records of what is new. What runs goes on as it is. */
    async refreshInventory(): Promise<void> {
        const { places, clock, events, records } = this.#options;
        const { named: seen, order, passedOver, skipped } = await takeInventory(this.registry, places);
        this.#order = order;
        this.#passedOver = passedOver;
        this.#skipped = skipped;
        await records.enrol(
            seen.flatMap(({ plugin, found }) =>
                plugin === null ? [] : [{ plugin, trusted: found.origin === 'folder' }]
            ),
            clock.now()
        );
        for (const each of seen) {
            const runtime = this.#runtimes.get(each.name) ?? emptyRuntime(each.name);
            this.#runtimes.set(each.name, runtime);
            runtime.obstacle = each.obstacle;
            if (runtime.generation === null && runtime.found?.folder !== each.found.folder) {
                Object.assign(runtime, { definition: null, importFailed: false, bootMs: null });
            }
            if (runtime.generation === null) {
                Object.assign(runtime, { found: each.found, plugin: each.plugin });
            }
        }
        this.#forget(new Set(seen.map(({ name }) => name)));
        events.inventoryChanged(this.runtimes().flatMap((runtime) => this.recordOf(runtime) ?? []));
    }

    /** Brings every plugin to where it should be, side by side as far as their requirements allow. `safe`: loads nothing. */
    async open({ safe }: { readonly safe: boolean }): Promise<void> {
        try {
            await this.refreshInventory();
            this.#phase = safe ? 'safe' : 'open';
            const settling = Promise.all(this.runtimes().map(({ name }) => this.reconcile(name)));
            await (safe ? settling : null);
            this.#inventoryReady.resolve();
            await settling;
            await this.idle();
        } finally {
            this.#inventoryReady.resolve(); // nobody waits for a disk that cannot be read
        }
    }

    /**
     * Brings one plugin to where it should be.
     *
     * @param options - `retry`: also when it failed before
     * @returns what was let go of, when it was stopped; whatever fails stands on its record
     */
    async reconcile(
        name: string,
        { retry = false }: { readonly retry?: boolean } = {}
    ): Promise<ReleaseReport | null> {
        const runtime = this.#runtimes.get(name);
        if (runtime === undefined || this.#phase === 'new' || this.#phase === 'closing') {
            return null;
        }
        // Only what was begun before is waited for, so nothing ever waits in a circle.
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

    /** Whatever requires a plugin follows it, in the background: falls when it is gone, comes back when it runs. */
    reconcileDependants(name: string): void {
        const runtime = this.#runtimes.get(name);
        if (runtime !== undefined) {
            runtime.isKnownToRun = runtime.state === 'running';
        }
        this.dependants(name).forEach((other) => this.#background.add(this.reconcile(other)));
    }

    /** Names of those that require a plugin, directly. */
    dependants(name: string): readonly string[] {
        return this.runtimes()
            .filter(({ plugin }) => Object.hasOwn(plugin?.manifest.requires ?? {}, name))
            .map((runtime) => runtime.name);
    }

    /** Stops what runs of a plugin. Only inside `withPlugin`. */
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

    /** Resolves when it is known what there is. */
    get inventoryReady(): Promise<void> {
        return this.#inventoryReady.promise;
    }

    /** What was decided reaches what runs; a generation that does not take it is replaced by a new one. */
    async refresh(
        name: string,
        before: Pick<PluginRecord, 'grants' | 'settings'>,
        options: { readonly retry: boolean }
    ): Promise<void> {
        await this.withPlugin(name, async () => {
            const runtime = this.#runtimes.get(name);
            const record = runtime === undefined ? null : this.recordOf(runtime);
            if (runtime === undefined || runtime.generation === null || record === null) {
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
                this.#options.log.warn('A plugin did not take a change while it ran, and is started anew', {
                    plugin: name,
                    error
                });
                await this.stop(runtime, 'it did not take a change');
            }
        });
        await this.reconcile(name, options);
    }

    /** Another generation took its place, or none did. Only inside `withPlugin`; to be followed by `settleDependants`. */
    switchTo(
        runtime: Runtime,
        by: {
            readonly found: Found;
            readonly plugin: PluginPackage;
            readonly definition: Runtime['definition'];
            readonly generation: Generation | null;
        }
    ): void {
        Object.assign(runtime, by, { importFailed: false, obstacle: null, health: null });
        if (by.generation !== null) {
            this.#show(runtime, 'running', null);
            this.#options.events.routesChanged(runtime.name);
        }
    }

    /** Makes a generation, its gate closed. @throws GenerationFault */
    prepareGeneration(
        found: Found,
        definition: NonNullable<Runtime['definition']>,
        options: Pick<GenerationOptions, 'dataDir' | 'settings' | 'grants' | 'accepted'>
    ): Promise<Generation> {
        return prepareGeneration(found, definition, options, this.#startPorts);
    }

    /** Imports what was found, in the plugin's name. */
    load(name: string, found: Found, options?: { readonly fresh?: boolean }): ReturnType<Registry['load']> {
        return this.#options.blame
            .confine(name, found.folder)
            .enter(() => this.registry.load(found, options));
    }

    /** Imports the code of a plugin that is to run, if that was not done yet: its settings are judged by it. */
    async ensureLoaded(name: string): Promise<void> {
        await this.withPlugin(name, async () => {
            const runtime = this.#runtimes.get(name);
            if (
                runtime?.found != null &&
                runtime.definition === null &&
                runtime.obstacle === null &&
                this.#phase === 'open'
            ) {
                const loading = await this.load(name, runtime.found, { fresh: runtime.importFailed });
                runtime.importFailed = 'failure' in loading;
                runtime.definition = 'failure' in loading ? null : loading.definition;
            }
        });
    }

    /** It failed: counted, kept on its record, told. Only inside `withPlugin`, with nothing of it running. */
    async markFailed(runtime: Runtime, failure: Omit<PluginFailure, 'at'>): Promise<void> {
        const { clock, records, log } = this.#options;
        const at = clock.now();
        const record = this.recordOf(runtime);
        const { failures, quarantinedAt } = count(record?.failures ?? [], failure, at);
        const kept = { ...failure, at };
        log.warn('A plugin failed', {
            plugin: runtime.name,
            ...failure,
            quarantined: quarantinedAt !== null
        });
        if (record !== null) {
            await records
                .note(record.name, record.package, { failure: kept, failures, quarantinedAt })
                .catch((error: unknown) =>
                    log.error('A failure of a plugin could not be kept', { plugin: runtime.name, error })
                );
        }
        this.#show(runtime, quarantinedAt === null ? 'failed' : 'quarantined', kept);
    }

    /** An error of its own that nobody caught: it ends, and falls. */
    handleUncaught(name: string, error: unknown): void {
        const message = error instanceof Error ? error.message : String(error);
        this.#options.log.error('An error of a plugin that nobody caught', { plugin: name, error });
        this.#background.add(
            this.withPlugin(name, async () => {
                const runtime = this.#runtimes.get(name);
                if (runtime?.generation != null && this.#phase !== 'closing') {
                    await this.stop(runtime, 'it threw an error that nobody caught');
                    await this.markFailed(runtime, { stage: 'running', code: 'UNCAUGHT', message });
                    this.reconcileDependants(name);
                }
            })
        );
    }

    /** Resolves when nothing is under way. */
    async idle(): Promise<void> {
        await this.#background.idle();
        await this.#mutex.idle();
    }

    /** Stops everything, each before what it requires. */
    async close(): Promise<void> {
        this.#phase = 'closing';
        const ends = new Map<string, Promise<ReleaseReport | undefined>>();
        for (const runtime of [...this.runtimes()].reverse()) {
            const after = this.dependants(runtime.name).flatMap((other) => ends.get(other) ?? []);
            runtime.interrupt?.();
            ends.set(
                runtime.name,
                Promise.all(after).then(() => runtime.generation?.close('the panel stops'))
            );
        }
        await Promise.all(ends.values());
        let timer: NodeJS.Timeout | undefined;
        await Promise.race([
            this.idle(),
            new Promise((resolve) => {
                timer = setTimeout(resolve, closePatienceMs);
            })
        ]);
        clearTimeout(timer);
    }

    /** The one step that is missing. */
    async #reconcile(runtime: Runtime, retry: boolean): Promise<ReleaseReport | null> {
        const rest = desiredStateOf(
            runtime,
            this.recordOf(runtime),
            (name) => this.runtime(name),
            this.#phase === 'safe'
        );
        if (rest !== null) {
            const record = this.recordOf(runtime);
            const report = await this.stop(runtime, rest.fault?.message ?? `it is ${rest.state}`);
            const stays = rest.state === runtime.state && isSame(rest.fault, runtime.failure);
            if (rest.state === 'failed' && rest.fault !== null && !stays) {
                await this.markFailed(runtime, rest.fault);
            } else if (!stays) {
                this.#show(
                    runtime,
                    rest.state,
                    record?.quarantinedAt === null ? null : (record?.failure ?? null)
                );
            }
            return report;
        }
        const waits = runtime.state === 'failed' && !retry && runtime.failure?.stage !== 'resolved';
        if (runtime.generation === null && !waits) {
            await this.#start(runtime);
        }
        return null;
    }

    async #start(runtime: Runtime): Promise<void> {
        const record = this.recordOf(runtime);
        await (record === null ? null : this.records.takeArea(record, this.forgetArea));
        try {
            await start(runtime, this.#startPorts);
            if (record !== null && record.failure !== null) {
                await this.records.note(record.name, record.package, { failure: null });
            }
            this.#options.events.routesChanged(runtime.name);
        } catch (error) {
            const fault =
                error instanceof StartAborted
                    ? error.failure
                    : { stage: 'running' as const, code: 'INTERNAL', message: String(error) };
            if (this.#phase !== 'closing' && fault.code !== interruptedCode) {
                await this.markFailed(runtime, fault);
            }
        }
    }

    #show(runtime: Runtime, state: PluginState, failure: PluginFailure | null): void {
        const { state: before } = runtime;
        runtime.state = state;
        runtime.failure = failure;
        if (before !== state) {
            this.#options.events.stateChanged(runtime.name, state, before, failure);
        }
    }

    /** What is gone from the disk: only its record is left, if there is one. */
    #forget(seen: ReadonlySet<string>): void {
        for (const record of this.records.all()) {
            if (!this.#runtimes.has(record.name)) {
                this.#runtimes.set(record.name, emptyRuntime(record.name));
            }
        }
        for (const runtime of this.#runtimes.values()) {
            if (!seen.has(runtime.name) && runtime.generation === null) {
                Object.assign(runtime, { found: null, plugin: null, obstacle: null, definition: null });
                if (this.records.of(runtime.name).length === 0) {
                    this.#runtimes.delete(runtime.name);
                }
            }
        }
    }

    #placeOf(name: string): number {
        const place = this.#order.indexOf(name);
        return place < 0 ? this.#order.length : place;
    }
}

function isSame(one: Omit<PluginFailure, 'at'> | null, two: PluginFailure | null): boolean {
    return one?.stage === two?.stage && one?.code === two?.code && one?.message === two?.message;
}
