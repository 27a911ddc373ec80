/**
 * Changes the code of a running plugin. The new code is tried on a copy of the data while the old code serves. Then new requests wait, the old code
 * ends its requests and stops, the data are copied, and the new code migrates its copy and starts. Then the lock names the new code, and the
 * waiting requests go on. A failure before the lock leaves code and data as they were, byte for byte, and no request was refused.
 */
import type { Found, PluginPackage } from '@portico/registry';
import { messageOf, type PluginDefinition } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import { type Generation, GenerationFault } from '../../runtime/generation/generation.ts';
import type { NextData } from '../data/next-data.ts';
import type { Decision, Runtime } from '../records/plugin.ts';
import { finishCommit } from './activate.ts';
import type { NextCode, SwapOptions, SwapPorts } from './ports.ts';
import { probe, refuse } from './probe.ts';

/** How a swap went. */
export interface Swapped {
    /** Requests that were cut. */
    readonly cut: number;
    /** Milliseconds for which new requests waited. */
    readonly parkedMs: number;
}

/** Milliseconds that requests under way may take to end. */
const usualDrainMs = 8_000;

/**
 * Replaces the code of a plugin that has a record. Only inside `Lifecycle.withPlugin`.
 *
 * @throws BUSY 40904 when requests do not end in time; PLUGIN_FAILED 50303 when the new code fails on the copy or at its start; STORAGE_FULL 50700;
 * the signal's reason
 */
export async function swap(
    ports: SwapPorts,
    runtime: Runtime,
    next: NextCode,
    options: SwapOptions
): Promise<Swapped> {
    const { force, signal, phase } = options;
    await phase('probe');
    await probe(ports, runtime, next, signal);
    signal.throwIfAborted();
    const began = performance.now();
    const parking = ports.gateway.park(runtime.name);
    try {
        await phase('parked');
        const inside = runtime.generation === null ? 0 : await parking.drain(ports.drainMs ?? usualDrainMs);
        if (inside > 0 && !force) {
            throw fail.BUSY(
                { plugin: runtime.name, inside },
                {
                    message: `${runtime.name} still had ${inside} ${inside === 1 ? 'request' : 'requests'} under way after ${(ports.drainMs ?? usualDrainMs) / 1000} s; nothing was changed. force: true cuts them`
                }
            );
        }
        signal.throwIfAborted();
        const cut = inside > 0 ? parking.cut() : 0;
        await replace(ports, runtime, next, options);
        return { cut, parkedMs: Math.round(performance.now() - began) };
    } finally {
        parking.open();
    }
}

/** Stops the old code and starts the new code; when that fails, the old code runs again on its own data. */
async function replace(
    ports: SwapPorts,
    runtime: Runtime,
    next: NextCode,
    { phase, also }: SwapOptions
): Promise<void> {
    const { lifecycle } = ports;
    const old =
        runtime.generation === null
            ? null
            : { found: runtime.found, plugin: runtime.plugin, definition: runtime.definition };
    await lifecycle.stop(runtime, 'another version takes its place');
    let data: NextData | null = null;
    let generation: Generation | null = null;
    try {
        await phase('stopped');
        data = await ports.data.next(
            { name: runtime.name, package: next.plugin.package },
            next.source,
            next.entry
        );
        await phase('copied');
        generation = await begin(ports, next, data, phase).catch(refuse(runtime, 'It could not take over'));
        await phase('started');
        await data.prepare(next.decision);
        await lifecycle.registry.lock.activate(next.entry);
    } catch (error) {
        await generation?.close('it could not take over');
        await data?.discard();
        if (old !== null) {
            await restart(ports, runtime, old as Parameters<typeof restart>[2]);
        }
        throw error;
    }
    await phase('committed');
    lifecycle.switchTo(runtime, {
        found: next.found,
        plugin: next.plugin,
        definition: next.definition,
        generation
    });
    await finishCommit(ports, runtime, data, next, also);
}

async function begin(
    { lifecycle }: SwapPorts,
    { found, plugin, definition, decision }: NextCode,
    data: NextData,
    phase: SwapOptions['phase']
): Promise<Generation> {
    const { records } = lifecycle;
    // The record has these grants only after the commit; from then on the record counts.
    const before = records.get(plugin.manifest.name, plugin.package);
    const grants = (): Decision['grants'] => {
        const now = records.get(plugin.manifest.name, plugin.package);
        return now === null || now === before ? decision.grants : now.grants;
    };
    const generation = await lifecycle.prepareGeneration(found, definition, {
        dataDir: data.path,
        settings: decision.settings,
        grants,
        accepted: () => data.accepted()
    });
    try {
        await phase('migrated');
        await generation.start();
        await generation.mount();
    } catch (error) {
        await generation.close('it could not be started');
        throw error;
    }
    return generation;
}

async function restart(
    { lifecycle, data, log }: SwapPorts,
    runtime: Runtime,
    old: { readonly found: Found; readonly plugin: PluginPackage; readonly definition: PluginDefinition }
): Promise<void> {
    const record = lifecycle.recordOf({ name: runtime.name, ...old });
    let generation: Generation | null = null;
    try {
        generation = await lifecycle.prepareGeneration(old.found, old.definition, {
            dataDir: await data.current(old.found),
            settings: record?.settings ?? {},
            grants: () => lifecycle.recordOf({ name: runtime.name, ...old })?.grants ?? {},
            accepted: data.acceptedOf(old.found)
        });
        await generation.start();
        await generation.mount();
        lifecycle.switchTo(runtime, { ...old, generation });
    } catch (error) {
        log.error('The version that ran before a swap does not start again', { plugin: runtime.name, error });
        await generation?.close('it could not be started again');
        const fault =
            error instanceof GenerationFault
                ? error
                : new GenerationFault('running', 'START_FAILED', messageOf(error));
        await lifecycle.markFailed(runtime, { stage: fault.stage, code: fault.code, message: fault.message });
    }
}
