/** Start, stop, restart, reload and overwrite: what an operator does to the engine, each put on record with the wish that it leaves. */
import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import { fail } from '../../platform/errors.ts';
import { translateError, translateErrors } from '../errors.ts';
import { EngineRejected } from '../port.ts';
import type { ControlResult, EngineOptions } from '../service.ts';
import type { EngineState } from '../sync/engine-state.ts';

/** The part of the service that controls the process. */
export interface Control {
    start(call: Call): Promise<Reply<ControlResult>>;
    stop(call: Call): Promise<Reply<ControlResult>>;
    restart(call: Call): Promise<Reply<ControlResult>>;
    reload(call: Call): Promise<Reply<ControlResult>>;
    overwriteDrift(call: Call): Promise<Reply<ControlResult>>;
}

/** @param alone - runs work in the apply queue */
export const createControl = (
    options: EngineOptions,
    keeper: EngineState,
    alone: <T>(work: () => Promise<T>) => Promise<T>
): Control => {
    const { driver, db } = options;

    const mustExist = (): void => {
        const { state, message } = driver.process();
        if (state === 'missing') {
            throw fail.TOOL_MISSING(
                { tool: 'caddy', install: 'apt-get install caddy' },
                message === null ? {} : { message }
            );
        }
    };

    const mustRun = (): void => {
        mustExist();
        const { state, message } = driver.process();
        if (state !== 'running') {
            throw fail.ENGINE_UNAVAILABLE(
                { engine: message ?? 'the engine is stopped' },
                state === 'stopped' ? { message: 'The proxy engine is stopped' } : {}
            );
        }
    };

    const record = (
        call: Call,
        action: string,
        changed: boolean,
        message: string,
        caughtUp = false
    ): Promise<Reply<ControlResult>> => {
        const { revision, applied } = keeper.memory;
        const refused = [...keeper.refused.values()][0] ?? null;
        const data: ControlResult = {
            changed,
            state: driver.process().state,
            pending: caughtUp ? 0 : revision - applied,
            error: caughtUp ? null : (refused ?? keeper.problem)
        };
        return db.write(async (tx) => {
            await keeper.remember(tx, caughtUp);
            return call.complete(tx, {
                action,
                resource: 'proxyengine',
                resourceId: null,
                after: { ...data },
                reply: reply.with(data, { message })
            });
        });
    };

    const raise = async (was: string): Promise<void> => {
        const before = keeper.memory.wanted;
        keeper.setWanted('running');
        await keeper.reconcile(false);
        const { state, message } = driver.process();
        if (state !== 'running') {
            await backTo(before);
            throw fail.ENGINE_UNAVAILABLE({ engine: message ?? keeper.problem ?? `the engine is ${was}` });
        }
    };

    /** What failed leaves no wish behind. */
    const backTo = async (wanted: 'running' | 'stopped'): Promise<void> => {
        keeper.setWanted(wanted);
        if (wanted === 'stopped') {
            await driver.stop();
        }
    };

    const orBackTo = async <T>(wanted: 'running' | 'stopped', work: () => Promise<T>): Promise<T> => {
        try {
            return await work();
        } catch (error) {
            await backTo(wanted);
            throw error;
        }
    };

    return {
        start: (call) =>
            alone(() =>
                translateErrors(async () => {
                    mustExist();
                    const was = driver.process().state;
                    const { wanted } = keeper.memory;
                    if (was === 'running' && wanted === 'running') {
                        return record(call, 'start', false, 'The engine is running already');
                    }

                    await raise(was);
                    return orBackTo(wanted, () =>
                        record(
                            call,
                            'start',
                            true,
                            keeper.refused.size === 0
                                ? 'The engine is running'
                                : 'The engine is running, without what it refuses'
                        )
                    );
                })
            ),

        stop(call) {
            const was = driver.process().state;
            // At once and not in line: whatever waits for an engine that hangs is let go by it.
            const stopped = driver.stop();
            stopped.catch(() => undefined);
            return alone(() =>
                translateErrors(async () => {
                    const { wanted } = keeper.memory;
                    await stopped;
                    keeper.setWanted('stopped');
                    keeper.context.served.invalidate();
                    const changed = was === 'running' || was === 'failing' || wanted === 'running';
                    try {
                        return await record(
                            call,
                            'stop',
                            changed,
                            changed ? 'The engine is stopped' : 'The engine is stopped already'
                        );
                    } catch (error) {
                        keeper.setWanted(wanted);
                        await keeper.reconcile(true);
                        throw error;
                    }
                })
            );
        },

        restart: (call) =>
            alone(() =>
                translateErrors(async () => {
                    mustExist();
                    const was = driver.process().state;
                    const { wanted } = keeper.memory;
                    await driver.stop();
                    await raise(was);
                    return orBackTo(wanted, () => record(call, 'restart', true, 'The engine was restarted'));
                })
            ),

        reload: (call) =>
            alone(() =>
                translateErrors(async () => {
                    mustRun();
                    const { context: works } = keeper;
                    const readmitted = works.readmit(keeper.rows);
                    try {
                        await keeper.sync(true);
                    } catch (error) {
                        readmitted.undo();
                        if (error instanceof EngineRejected) {
                            keeper.refuse(error.message);
                        }

                        throw translateError(error);
                    }

                    works.excluded.clear();
                    return record(call, 'reload', true, 'The engine was reloaded', true);
                })
            ),

        overwriteDrift: (call) =>
            alone(() =>
                translateErrors(async () => {
                    mustRun();
                    const changed = await keeper.context.served.repair({ reload: true });
                    return record(call, 'overwrite', changed, 'The engine runs again what it was given');
                })
            )
    };
};
