/**
 * Changes the code of a plugin while the panel runs. The new code is proven on a copy of the data while the old one serves; then the gate is
 * parked, the old one drains and stops, the data are copied, the new one migrates its copy and starts; then the lock names it, and only then does
 * the gate open. Whatever fails before that leaves code and data as they were, byte for byte, and nobody who came meanwhile was sent away.
 */
import type { Found, LockEntry, PluginPackage } from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import type { Logger } from '../../../platform/log.ts';
import type { Parking } from '../../../server/gateway/gateway.ts';
import { type Generation, GenerationFault, type HealthReport } from '../../runtime/generation.ts';
import type { Decision, NextData, PluginData } from '../data/data-folders.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import type { PluginDataRow } from '../records/entities.ts';
import type { Runtime } from '../records/plugin.ts';
import { newRecord } from '../records/records.ts';

/** Where a swap is; in this order. */
export const swapPhases = [
    'probe',
    'parked',
    'stopped',
    'copied',
    'migrated',
    'started',
    'committed'
] as const;
export type SwapPhase = (typeof swapPhases)[number];

export interface SwapPorts {
    readonly lifecycle: Lifecycle;
    readonly data: PluginData;
    readonly db: Database;
    readonly clock: Clock;
    readonly gateway: { park(name: string): Parking };
    readonly log: Logger;
    /** Milliseconds that requests inside may take to end; default 8,000. */
    readonly drainMs?: number;
}

/** What takes the place of what runs. */
export interface NextCode {
    readonly found: Found;
    readonly plugin: PluginPackage;
    readonly definition: PluginDefinition;
    readonly entry: LockEntry;
    /** The data that it begins with; null when there are none. */
    readonly source: PluginDataRow | null;
    readonly decision: Decision;
}

export interface SwapOptions {
    /** Cuts what has not ended in time. */
    readonly force: boolean;
    /** Heard until the old one is stopped. */
    readonly signal: AbortSignal;
    /** Awaited: a test ends the process in it. */
    phase(phase: SwapPhase): void | Promise<void>;
    /** Belongs to the commit. */
    also?(tx: Transaction): Promise<void>;
}

export interface Swapped {
    /** Requests that were cut. */
    readonly cut: number;
    /** Milliseconds during which newcomers waited. */
    readonly parkedMs: number;
}

const drainMs = 8_000;

/**
 * To be called inside `Lifecycle.withPlugin`, with a record that exists.
 *
 * @throws BUSY 40904 when what is inside does not end in time; PLUGIN_FAILED 50303 when the new code does not stand the probe or the start;
 * STORAGE_FULL 50700; the signal's reason
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
        const inside = runtime.generation === null ? 0 : await parking.drain(ports.drainMs ?? drainMs);
        if (inside > 0 && !force) {
            throw fail.BUSY(
                { plugin: runtime.name, inside },
                {
                    message: `${runtime.name} still had ${inside} ${inside === 1 ? 'request' : 'requests'} under way after ${(ports.drainMs ?? drainMs) / 1000} s; nothing was changed. force: true cuts them`
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

/** Another version of a plugin that does not run: its data are copied, so that going back finds them as they were. */
export async function activateStopped(
    ports: SwapPorts,
    runtime: Runtime,
    next: Omit<NextCode, 'definition'>,
    { phase, also }: Pick<SwapOptions, 'phase' | 'also'>
): Promise<void> {
    const data =
        next.source === null
            ? null
            : await ports.data.next(
                  { name: runtime.name, package: next.plugin.package },
                  next.source,
                  next.entry
              );
    try {
        await phase('copied');
        await data?.prepare(next.decision);
        await ports.lifecycle.registry.lock.activate(next.entry);
    } catch (error) {
        await data?.discard();
        throw error;
    }
    await phase('committed');
    ports.lifecycle.switchTo(runtime, {
        found: next.found,
        plugin: next.plugin,
        definition: null,
        generation: null
    });
    await finishCommit(ports, runtime, data, next, also);
}

/** Migrates a copy of the data, sets up and asks every health check, and starts nothing. A check that fails under the old one too keeps nobody out. */
export async function probe(
    { lifecycle, data }: SwapPorts,
    runtime: Runtime,
    { found, definition, source, decision }: NextCode,
    signal: AbortSignal
): Promise<void> {
    const copy = await data.probe(runtime.name, source, signal);
    try {
        signal.throwIfAborted();
        const generation = await lifecycle
            .prepareGeneration(found, definition, {
                dataDir: copy.path,
                settings: decision.settings,
                grants: () => decision.grants
            })
            .catch(refused(runtime, 'It was tried on a copy of its data'));
        let reports: readonly HealthReport[];
        try {
            signal.throwIfAborted();
            reports = await generation.health();
        } finally {
            await generation.close('it was tried');
        }
        const failed = reports.filter(({ state }) => state === 'failed');
        const known =
            failed.length === 0
                ? []
                : ((await runtime.generation?.health()) ?? [])
                      .filter(({ state }) => state === 'failed')
                      .map(({ name }) => name);
        const fresh = failed.find(({ name }) => !known.includes(name));
        if (fresh !== undefined) {
            throw fail.PLUGIN_FAILED(
                { plugin: runtime.name, stage: 'mounted', cause: 'HEALTH_FAILED', check: fresh.name },
                {
                    message: `Its health check ${fresh.name} failed on a copy of the data: ${fresh.evidence ?? 'it says no more'}; nothing was changed`
                }
            );
        }
    } finally {
        await copy.discard();
    }
}

/** Stops the old one and starts the new one; when that fails, the old one runs again on its own data. */
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
        generation = await begin(ports, next, data, phase).catch(refused(runtime, 'It could not take over'));
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
    // Those of the decision, until that has become the record.
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

/** The lock has decided. What cannot be written now is written by the next start. */
async function finishCommit(
    { lifecycle, db, clock, log }: SwapPorts,
    runtime: Runtime,
    data: NextData | null,
    { plugin, decision }: Pick<NextCode, 'plugin' | 'decision'>,
    also: SwapOptions['also']
): Promise<void> {
    const finish = async (tx: Transaction): Promise<void> => {
        const record = lifecycle.records.get(runtime.name, plugin.package) ?? {
            ...newRecord(plugin, clock.now()),
            version: 0
        };
        const after = { ...record, ...decision, seen: plugin, failure: null, version: record.version + 1 };
        await (runtime.generation === null
            ? lifecycle.records.put(tx, after)
            : lifecycle.records.putRunning(tx, after, lifecycle.forgetArea));
        await also?.(tx);
    };
    try {
        await (data === null ? db.write(finish) : data.commit(finish));
    } catch (error) {
        log.error(
            'A version of a plugin runs, and not all that belongs to that could be written; the next start does it',
            { plugin: runtime.name, error }
        );
    }
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
                : new GenerationFault(
                      'running',
                      'START_FAILED',
                      error instanceof Error ? error.message : String(error)
                  );
        await lifecycle.markFailed(runtime, { stage: fault.stage, code: fault.code, message: fault.message });
    }
}

function refused(runtime: Runtime, when: string): (error: unknown) => never {
    return (error) => {
        if (error instanceof GenerationFault) {
            throw fail.PLUGIN_FAILED(
                {
                    plugin: runtime.name,
                    stage: error.stage,
                    cause: error.code,
                    ...(error.data === null ? {} : { detail: error.data })
                },
                {
                    message: `${when}, and failed (${error.code}): ${error.message}; nothing was changed`,
                    cause: error
                }
            );
        }
        throw error;
    };
}
