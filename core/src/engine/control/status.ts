import { setTimeout as wait } from 'node:timers/promises';

import { hashOf } from '@portico/sdk';

import type { EngineOptions, EngineStatus } from '../service.ts';
import type { EngineState } from '../sync/engine-state.ts';

/** Milliseconds that a status waits for the engine, for each of two questions. */
const answerMs = 2000;

/** Reads how the engine is, and how far it is with the rows. It asks the engine, and does not wait for one that does not answer. */
export const readStatus = async (
    { driver, clock, settings }: Pick<EngineOptions, 'driver' | 'clock' | 'settings'>,
    engine: EngineState
): Promise<EngineStatus> => {
    const { state: known, version, pid, startedAt, message } = driver.process();
    const stalled = known === 'running' && !(await driver.answers(answerMs));
    const state = stalled ? 'failing' : known;
    const running = state === 'running' ? await runningHash(driver) : null;
    const { lastApply, memory, refused, problem } = engine;
    const { served } = engine.context;
    const why = state === 'running' ? problem : (message ?? problem);
    return {
        state,
        running: state === 'running',
        version: version?.text ?? null,
        pid,
        startedAt,
        uptimeSeconds:
            startedAt === null ? null : Math.max(0, Math.floor((clock.now() - startedAt.getTime()) / 1000)),
        message: stalled ? 'The engine does not answer' : why,
        wanted: memory.wanted,
        autoReload: settings.autoReload(),
        drifted: engine.drifted,
        configuration: { wanted: served.projection.configHash(), running },
        revision: memory.revision,
        appliedRevision: memory.applied,
        pending: memory.revision - memory.applied,
        pendingHosts: engine.behind.size,
        refused: Array.from(refused, ([id, text]) => ({ id, message: text })),
        lastApply,
        loads: served.loads
    };
};

/** Null when it runs nothing or does not answer in time, as while it loads. */
const runningHash = async (driver: EngineOptions['driver']): Promise<string | null> => {
    try {
        const config = await Promise.race([driver.config(), wait(answerMs, null, { ref: false })]);
        return config === null ? null : hashOf(config);
    } catch {
        return null;
    }
};
