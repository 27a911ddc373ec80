import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import { fail } from '../../platform/errors.ts';
import { translateError, translateErrors } from '../errors.ts';
import { EngineRejected } from '../port.ts';
import type { ControlResult, EngineOptions } from '../service.ts';
import type { EngineState } from '../sync/engine-state.ts';

/** What is recorded about a control. */
interface Done {
    readonly action: 'start' | 'stop' | 'restart' | 'reload' | 'overwrite';
    readonly changed: boolean;
    /** For the user. */
    readonly message: string;
    /** The engine serves everything that waited. */
    readonly caughtUp?: boolean;
}

/** Start, stop, restart, reload and overwrite. Each is recorded in one transaction with whether the engine should run from now on. */
export class EngineControl {
    readonly #options: EngineOptions;
    readonly #state: EngineState;
    readonly #exclusive: <T>(work: () => Promise<T>) => Promise<T>;

    /** @param exclusive - runs work on its own in the sync queue */
    constructor(
        options: EngineOptions,
        state: EngineState,
        exclusive: <T>(work: () => Promise<T>) => Promise<T>
    ) {
        this.#options = options;
        this.#state = state;
        this.#exclusive = exclusive;
    }

    start(call: Call): Promise<Reply<ControlResult>> {
        return this.#run(async () => {
            this.#mustExist();
            const before = this.#options.driver.process().state;
            const { wanted } = this.#state.memory;
            if (before === 'running' && wanted === 'running') {
                return this.#record(call, {
                    action: 'start',
                    changed: false,
                    message: 'The engine is running already'
                });
            }

            await this.#startWithPending(before);
            return this.#orRestoreWanted(wanted, () =>
                this.#record(call, {
                    action: 'start',
                    changed: true,
                    message:
                        this.#state.refused.size === 0
                            ? 'The engine is running'
                            : 'The engine is running, without what it refuses'
                })
            );
        });
    }

    stop(call: Call): Promise<Reply<ControlResult>> {
        const before = this.#options.driver.process().state;
        // Stops at once, outside the queue: work in the queue that waits for an engine that hangs is freed by it.
        const stopped = this.#options.driver.stop();
        stopped.catch(() => undefined);
        return this.#run(async () => {
            const { wanted } = this.#state.memory;
            await stopped;
            this.#state.setWanted('stopped');
            this.#state.context.served.invalidate();
            const changed = before === 'running' || before === 'failing' || wanted === 'running';
            try {
                return await this.#record(call, {
                    action: 'stop',
                    changed,
                    message: changed ? 'The engine is stopped' : 'The engine is stopped already'
                });
            } catch (error) {
                this.#state.setWanted(wanted);
                await this.#state.reconcile(true);
                throw error;
            }
        });
    }

    restart(call: Call): Promise<Reply<ControlResult>> {
        return this.#run(async () => {
            this.#mustExist();
            const before = this.#options.driver.process().state;
            const { wanted } = this.#state.memory;
            await this.#options.driver.stop();
            await this.#startWithPending(before);
            return this.#orRestoreWanted(wanted, () =>
                this.#record(call, { action: 'restart', changed: true, message: 'The engine was restarted' })
            );
        });
    }

    reload(call: Call): Promise<Reply<ControlResult>> {
        return this.#run(async () => {
            this.#mustRun();
            const { context } = this.#state;
            const readmitted = context.readmit(this.#state.rows);
            try {
                await this.#state.sync(true);
            } catch (error) {
                readmitted.undo();
                if (error instanceof EngineRejected) {
                    this.#state.refuse(error.message);
                }

                throw translateError(error);
            }

            context.excluded.clear();
            return this.#record(call, {
                action: 'reload',
                changed: true,
                message: 'The engine was reloaded',
                caughtUp: true
            });
        });
    }

    overwriteDrift(call: Call): Promise<Reply<ControlResult>> {
        return this.#run(async () => {
            this.#mustRun();
            const changed = await this.#state.repair(true);
            return this.#record(call, {
                action: 'overwrite',
                changed,
                message: 'The engine runs again what it was given'
            });
        });
    }

    #run(work: () => Promise<Reply<ControlResult>>): Promise<Reply<ControlResult>> {
        return this.#exclusive(() => translateErrors(work));
    }

    #mustExist(): void {
        const { state, message } = this.#options.driver.process();
        if (state === 'missing') {
            throw fail.TOOL_MISSING(
                { tool: 'caddy', install: 'apt-get install caddy' },
                message === null ? {} : { message }
            );
        }
    }

    #mustRun(): void {
        this.#mustExist();
        const { state, message } = this.#options.driver.process();
        if (state !== 'running') {
            throw fail.ENGINE_UNAVAILABLE(
                { engine: message ?? 'the engine is stopped' },
                state === 'stopped' ? { message: 'The proxy engine is stopped' } : {}
            );
        }
    }

    /** Starts the engine with everything that waits. @param before - the process's state before, for the message */
    async #startWithPending(before: string): Promise<void> {
        const { wanted } = this.#state.memory;
        this.#state.setWanted('running');
        await this.#state.reconcile(false);
        const { state, message } = this.#options.driver.process();
        if (state !== 'running') {
            await this.#restoreWanted(wanted);
            throw fail.ENGINE_UNAVAILABLE({
                engine: message ?? this.#state.problem ?? `the engine is ${before}`
            });
        }
    }

    async #orRestoreWanted<T>(wanted: 'running' | 'stopped', work: () => Promise<T>): Promise<T> {
        try {
            return await work();
        } catch (error) {
            await this.#restoreWanted(wanted);
            throw error;
        }
    }

    /** A control that failed changes nothing about whether the engine should run. */
    async #restoreWanted(wanted: 'running' | 'stopped'): Promise<void> {
        this.#state.setWanted(wanted);
        if (wanted === 'stopped') {
            await this.#options.driver.stop();
        }
    }

    #record(call: Call, { action, changed, message, caughtUp = false }: Done): Promise<Reply<ControlResult>> {
        const { revision, applied } = this.#state.memory;
        const refused = [...this.#state.refused.values()][0] ?? null;
        const data: ControlResult = {
            changed,
            state: this.#options.driver.process().state,
            pending: caughtUp ? 0 : revision - applied,
            error: caughtUp ? null : (refused ?? this.#state.problem)
        };
        return this.#options.db.write(async (tx) => {
            await this.#state.remember(tx, caughtUp);
            return call.complete(tx, {
                action,
                resource: 'proxyengine',
                resourceId: null,
                after: { ...data },
                reply: reply.with(data, { message })
            });
        });
    }
}
