/**
 * Starts one plugin: resolve → load → mount → run. Each step that succeeds sets the plugin's state; a step that fails ends the start with
 * `StartAborted`, which has the stage, a code and a sentence. What happens then is in `Lifecycle.markFailed`.
 */
import type { Registry } from '@portico/registry';
import { messageOf, type PluginDefinition } from '@portico/sdk';

import {
    type Generation,
    GenerationFault,
    type GenerationOptions,
    type GenerationTiming,
    type PluginHost
} from '../../runtime/generation/generation.ts';
import type { Confine } from '../../runtime/isolation/error-owner.ts';
import type { PluginFailure, PluginRecord, PluginState, Runtime } from '../records/plugin.ts';

type Found = NonNullable<Runtime['found']>;
type Fault = Omit<PluginFailure, 'at'>;

/** What a start needs. */
export interface StartPorts {
    readonly registry: Pick<Registry, 'load'>;
    readonly host: Pick<PluginHost, 'prepare'>;
    readonly timing: Partial<GenerationTiming>;
    /** Runs code in the name of a plugin. @param folder - real path of its package */
    confine(name: string, folder: string): Confine;
    /** The folder of the plugin's data; it is created for a plugin that has none. */
    dataDir(found: Found): Promise<string>;
    /** The function that the plugin calls before it accepts the first change to its data. */
    accepted(found: Found): () => Promise<void>;
    /** The first required plugin that does not run, as a failure; null when all of them run. */
    missingRequirement(runtime: Runtime): Fault | null;
    /** The plugin's record as of now: an admin may change it while the plugin runs. */
    record(runtime: Runtime): PluginRecord;
    /** Sets the state after a step. @throws StartAborted when the start must not go on */
    reached(runtime: Runtime, state: PluginState): void;
}

/** The code of a start that an admin's decision ended: it is no failure. */
export const interruptedCode = 'INTERRUPTED';

/** A start that ended before the plugin ran. */
export class StartAborted extends Error {
    readonly failure: Fault;

    constructor(failure: Fault, options: { readonly cause?: unknown } = {}) {
        super(failure.message, options);
        this.failure = failure;
    }
}

/**
 * Starts a plugin that does not run.
 *
 * @throws StartAborted; the generation that was made until then is closed
 */
export async function start(runtime: Runtime, ports: StartPorts): Promise<void> {
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
        const found = resolve(runtime, ports);
        const definition = await load(runtime, found, ports);
        const generation = await mount(runtime, found, definition, unwanted.signal, ports);
        await run(runtime, generation, interrupted, ports);
        runtime.bootMs = Math.round(performance.now() - began);
    } catch (error) {
        const { generation } = runtime;
        runtime.generation = null;
        await generation?.close('it could not be started');
        unwanted.signal.throwIfAborted();
        throw error instanceof StartAborted ? error : new StartAborted(failureOf(error), { cause: error });
    } finally {
        runtime.interrupt = null;
    }
}

/** The package fits this panel, and every plugin that it requires runs. */
function resolve(runtime: Runtime, { missingRequirement, reached }: StartPorts): Found {
    const obstacle = runtime.obstacle ?? missingRequirement(runtime);
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

/** The code is imported: once in a process, and again only after an import that failed. */
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
            throw new StartAborted(loading.failure, { cause: loading.cause });
        }
        runtime.definition = loading.definition;
    }
    reached(runtime, 'loaded');
    return runtime.definition;
}

/** The settings are valid, the data is migrated, and `setup` has registered everything. The plugin answers no request yet. */
async function mount(
    runtime: Runtime,
    found: Found,
    definition: PluginDefinition,
    signal: AbortSignal,
    ports: StartPorts
): Promise<Generation> {
    runtime.generation = await prepareGeneration(
        found,
        definition,
        {
            dataDir: await ports.dataDir(found),
            accepted: ports.accepted(found),
            settings: ports.record(runtime).settings,
            grants: () => ports.record(runtime).grants,
            signal
        },
        ports
    );
    ports.reached(runtime, 'mounted');
    return runtime.generation;
}

/** `onStart` has ended; then the plugin answers requests. */
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

/** Makes a generation of imported code. It answers no request before `mount`. @throws GenerationFault */
export function prepareGeneration(
    found: Found,
    definition: PluginDefinition,
    options: Pick<GenerationOptions, 'dataDir' | 'settings' | 'grants' | 'accepted' | 'signal'>,
    { host, timing, confine }: Pick<StartPorts, 'host' | 'timing' | 'confine'>
): Promise<Generation> {
    if ('fault' in found.result) {
        const { code, message } = found.result.fault;
        return Promise.reject(new GenerationFault('loaded', code, message));
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

function failureOf(error: unknown): Fault {
    if (error instanceof GenerationFault) {
        return { stage: error.stage, code: error.code, message: error.message };
    }
    return {
        stage: 'mounted',
        code: 'INTERNAL',
        message: messageOf(error)
    };
}
