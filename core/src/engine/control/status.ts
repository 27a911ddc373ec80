import { hashOf } from '../../platform/canonical-json.ts';
import type { EngineOptions, EngineStatus } from '../service.ts';
import type { EngineState } from '../sync/engine-state.ts';

/** Reads how the engine is, and how far it is with the rows. */
export const readStatus = async (
    { driver, clock, settings }: Pick<EngineOptions, 'driver' | 'clock' | 'settings'>,
    engine: EngineState
): Promise<EngineStatus> => {
    const { state, version, pid, startedAt, message } = driver.process();
    const running = state === 'running' ? await runningHash(driver) : null;
    const { lastApply, memory, refused, problem } = engine;
    const { served } = engine.context;
    return {
        state,
        running: state === 'running',
        version: version?.text ?? null,
        pid,
        startedAt,
        uptimeSeconds:
            startedAt === null ? null : Math.max(0, Math.floor((clock.now() - startedAt.getTime()) / 1000)),
        message: state === 'running' ? problem : (message ?? problem),
        wanted: memory.wanted,
        autoReload: settings.autoReload(),
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

/** Null when it runs nothing or does not answer. */
const runningHash = async (driver: EngineOptions['driver']): Promise<string | null> => {
    try {
        const config = await driver.config();
        return config === null ? null : hashOf(config);
    } catch {
        return null;
    }
};
