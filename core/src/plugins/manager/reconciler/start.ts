/** The journey of one plugin, on one screen: resolved → loaded → mounted → running. Whatever stops it has a stage, a code and a sentence. */
import type { Registry } from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import {
    type Generation,
    GenerationFault,
    type GenerationOptions,
    type GenerationTiming,
    type PluginHost
} from '../../runtime/generation.ts';
import type { Confine } from '../../runtime/isolation/error-owner.ts';
import type { PluginFailure, PluginRecord, PluginState, Runtime } from '../records/plugin.ts';

type Found = NonNullable<Runtime['found']>;

/** What a journey needs. */
export interface StartPorts {
    readonly registry: Pick<Registry, 'load'>;
    readonly host: Pick<PluginHost, 'prepare'>;
    readonly timing: Partial<GenerationTiming>;
    confine(name: string, folder: string): Confine;
    /** The folder of the plugin's data. */
    dataDir(found: Found): Promise<string>;
    /** What is told before the first change of its data. */
    accepted(found: Found): () => Promise<void>;
    /** What of its requirements does not run; null when all do. */
    lacking(runtime: Runtime): Omit<PluginFailure, 'at'> | null;
    /** As of now: an admin may change it while the plugin runs. */
    record(runtime: Runtime): PluginRecord;
    /** It passed a stage. @throws Stopped when it is not to go on */
    reached(runtime: Runtime, state: PluginState): void;
}

/** Somebody decided otherwise while it was under way: no failure. */
export const interruptedCode = 'INTERRUPTED';

/** The end of a journey before its time. */
export class StartAborted extends Error {
    readonly failure: Omit<PluginFailure, 'at'>;

    constructor(failure: Omit<PluginFailure, 'at'>, options: { readonly cause?: unknown } = {}) {
        super(failure.message, options);
        this.failure = failure;
    }
}

/** @throws Stopped; what was made until then is let go of */
export async function start(runtime: Runtime, road: StartPorts): Promise<void> {
    const began = performance.now();
    const { promise: interrupted, reject: interrupt } = Promise.withResolvers<never>();
    interrupted.catch(() => undefined);
    const unwanted = new AbortController();
    runtime.interrupt = () => {
        const reason = new StartAborted({
            stage: 'running',
            code: interruptedCode,
            message: 'It is no longer to run'
        });
        interrupt(reason);
        unwanted.abort(reason);
    };
    try {
        const found = resolve(runtime, road);
        const definition = await load(runtime, found, road);
        const generation = await mount(runtime, found, definition, unwanted.signal, road);
        await run(runtime, generation, interrupted, road);
        runtime.bootMs = Math.round(performance.now() - began);
    } catch (error) {
        const { generation } = runtime;
        runtime.generation = null;
        await generation?.close('it could not be started');
        throw unwanted.signal.aborted
            ? (unwanted.signal.reason as StartAborted)
            : error instanceof StartAborted
              ? error
              : new StartAborted(failureOf(error), { cause: error });
    } finally {
        runtime.interrupt = null;
    }
}

/** It fits this panel, and what it requires runs. */
function resolve(runtime: Runtime, { lacking, reached }: StartPorts): Found {
    const obstacle = runtime.obstacle ?? lacking(runtime);
    if (obstacle !== null || runtime.found === null) {
        throw new StartAborted(
            obstacle ?? {
                stage: 'discovered',
                code: 'PACKAGE_MISSING',
                message: `The package of ${runtime.name} is gone`
            }
        );
    }
    reached(runtime, 'resolved');
    return runtime.found;
}

/** Its code is imported: once in a process, unless that failed. */
async function load(
    runtime: Runtime,
    found: Found,
    { registry, confine, reached }: StartPorts
): Promise<PluginDefinition> {
    if (runtime.definition === null) {
        const loading = await confine(runtime.name, found.folder).enter(() =>
            registry.load(found, { fresh: runtime.importFailed })
        );
        runtime.importFailed = 'failure' in loading;
        if ('failure' in loading) {
            throw new StartAborted(loading.failure);
        }
        runtime.definition = loading.definition;
    }
    reached(runtime, 'loaded');
    return runtime.definition;
}

/** Its settings hold, its data is migrated, and `setup` has registered everything, behind a closed gate. */
async function mount(
    runtime: Runtime,
    found: Found,
    definition: PluginDefinition,
    signal: AbortSignal,
    road: StartPorts
): Promise<Generation> {
    runtime.generation = await prepareGeneration(
        found,
        definition,
        {
            dataDir: await road.dataDir(found),
            accepted: road.accepted(found),
            settings: road.record(runtime).settings,
            grants: () => road.record(runtime).grants,
            signal
        },
        road
    );
    road.reached(runtime, 'mounted');
    return runtime.generation;
}

/** Its work has begun; then the gate opens. */
async function run(
    runtime: Runtime,
    generation: Generation,
    interrupted: Promise<never>,
    { reached }: StartPorts
): Promise<void> {
    await Promise.race([generation.start(), interrupted]);
    await generation.mount();
    reached(runtime, 'running');
}

/** Makes a generation of code that was imported. @throws GenerationFault */
export function prepareGeneration(
    found: Found,
    definition: PluginDefinition,
    options: Pick<GenerationOptions, 'dataDir' | 'settings' | 'grants' | 'accepted' | 'signal'>,
    { host, timing, confine }: Pick<StartPorts, 'host' | 'timing' | 'confine'>
): Promise<Generation> {
    if ('fault' in found.result) {
        return Promise.reject(
            new GenerationFault('loaded', found.result.fault.code, found.result.fault.message)
        );
    }
    const { plugin } = found.result;
    return host.prepare({
        plugin,
        folder: found.folder,
        definition,
        timing,
        confine: confine(plugin.manifest.name, found.folder),
        ...options
    });
}

function failureOf(error: unknown): Omit<PluginFailure, 'at'> {
    if (error instanceof GenerationFault) {
        return { stage: error.stage, code: error.code, message: error.message };
    }
    return {
        stage: 'mounted',
        code: 'INTERNAL',
        message: error instanceof Error ? error.message : String(error)
    };
}
