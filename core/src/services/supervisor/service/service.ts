/** One service: what is wanted of it, which process it is, and when it is started again. */
import { isDeepStrictEqual } from 'node:util';

import {
    type ServiceCommand,
    type ServiceExit,
    ServiceNotReloadable,
    type ServiceStatus
} from '../../port.ts';
import type { Spec, State, Store } from '../store.ts';
import { OutputLog } from './output-log.ts';
import { bootId, commandHash, killLeftBehind, Run } from './run.ts';

/** Milliseconds, and bytes of output. */
export interface ServiceTiming {
    /** Before the first restart; it doubles with each further failure. */
    readonly backoffMs: number;
    readonly backoffCapMs: number;
    /** A run that lasted as long is no failure. */
    readonly stableMs: number;
    readonly outputBytes: number;
}

/** Looks after one service. `reconcile` compares what is wanted with what runs, and takes the next step. */
export class Service {
    readonly name: string;
    readonly #store: Store;
    readonly #timing: ServiceTiming;
    readonly #log: OutputLog;
    #spec: Spec;
    #state: State;
    #run: Run | null = null;
    /** The command with which the run was started. */
    #runs: ServiceCommand | null = null;
    #last: Promise<void> = Promise.resolve();
    #retry: NodeJS.Timeout | null = null;
    #isClosed = false;

    /** Finds the run that an earlier supervisor left. @param store - a folder that exists */
    constructor(name: string, store: Store, timing: ServiceTiming) {
        this.name = name;
        this.#store = store;
        this.#timing = timing;
        this.#log = new OutputLog(store.outputFile, timing.outputBytes);
        this.#spec = store.readSpec();
        this.#state = store.readState();
        const { run } = this.#state;
        this.#run = run === null ? null : Run.adopt(this.#parts(), run);
        if (run !== null && this.#run !== null) {
            // Another command may have been put before the supervisor was killed.
            this.#runs = run.command === commandHash(this.#spec.command) ? this.#spec.command : null;
            this.#watch(this.#run);
        }
    }

    /** Ends what is left of a run whose program is gone, and starts what should run. Calls that come meanwhile wait for it. */
    open(): Promise<void> {
        return this.#exclusive(async () => {
            const { run, done } = this.#state;
            if (this.#run === null) {
                await killLeftBehind(this.#parts(), run).catch((error: unknown) => this.#note(error));
                if (run?.boot === bootId) {
                    await this.#ended({ code: null, signal: null, at: Date.now() });
                } else if (run !== null || (done !== null && done !== 'ever' && done !== bootId)) {
                    this.#write({ run: null, done: null });
                }
            }
            await this.#takeSteps();
        });
    }

    get status(): ServiceStatus {
        const { wanted, done, exits, lastExit, failures } = this.#state;
        const run = this.#run?.record ?? null;
        const isFulfilled = !wanted || (done !== null && isClean(lastExit));
        return {
            name: this.name,
            state: run !== null ? 'running' : isFulfilled ? 'stopped' : 'failed',
            pid: run?.pid ?? null,
            startedAt: run?.startedAt ?? null,
            exits,
            lastExit,
            grants: this.#spec.command.grants,
            failures: run !== null && Date.now() - run.startedAt > this.#timing.stableMs ? 0 : failures
        };
    }

    /** Takes another command. */
    async put(command: ServiceCommand): Promise<void> {
        if (!isDeepStrictEqual(command, this.#spec.command)) {
            const spec = { ...this.#spec, command };
            this.#store.create(spec);
            this.#spec = spec;
            if (this.#state.wanted) {
                this.#write({ done: null, failures: 0 });
            }
            await this.#reconcile();
        }
    }

    async start(): Promise<void> {
        if (this.#run === null || !this.#state.wanted) {
            this.#write({ wanted: true, done: null, failures: 0 });
            await this.#reconcile();
        }
    }

    async stop(): Promise<void> {
        this.#write({ wanted: false, done: null, failures: 0 });
        await this.#reconcile();
    }

    async restart(): Promise<void> {
        this.#write({ wanted: true, done: null, failures: 0 });
        this.#runs = null;
        await this.#reconcile();
    }

    reload(): void {
        const { reloadSignal } = this.#spec.command;
        if (reloadSignal === null || this.#run?.signal(reloadSignal) !== true) {
            throw new ServiceNotReloadable(
                reloadSignal === null ? 'It has no reloadSignal' : 'It does not run'
            );
        }
    }

    /** Ends it and forgets it. */
    async remove(): Promise<void> {
        await this.stop();
        this.#isClosed = true;
        await this.#log.flush();
        this.#store.remove();
    }

    /** Keeps it in another folder from now on. Its program goes on. */
    move(folder: string): Promise<void> {
        return this.#exclusive(async () => {
            this.#store.move(folder);
            this.#log.moved(this.#store.outputFile);
        });
    }

    /** Lets go of it. Its program goes on. */
    async release(): Promise<void> {
        this.#isClosed = true;
        this.#cancelRetry();
        this.#run?.release();
        await this.#log.flush();
    }

    async #reconcile(): Promise<void> {
        this.#cancelRetry();
        return this.#exclusive(() => this.#takeSteps());
    }

    /** Runs work on the processes of this service when all earlier work on them has ended. Not the SDK's `Mutex`: the supervisor loads nothing of the SDK. */
    #exclusive(work: () => Promise<void>): Promise<void> {
        const done = this.#last.then(work);
        this.#last = done.catch(() => undefined);
        return done;
    }

    async #takeSteps(): Promise<void> {
        const { wanted, done } = this.#state;
        if (this.#isClosed) {
            return;
        }
        if (this.#run !== null && (!wanted || this.#runs !== this.#spec.command)) {
            await this.#stop(this.#run);
        }
        if (this.#run === null && this.#state.wanted && done === null) {
            await this.#start();
        }
    }

    async #start(): Promise<void> {
        const { command } = this.#spec;
        try {
            const run = await Run.start(this.#parts(), (record) => this.#write({ run: record }));
            this.#run = run;
            this.#runs = command;
            this.#watch(run);
        } catch (error) {
            this.#log.note(
                `It could not be started: ${error instanceof Error ? error.message : String(error)}`
            );
            try {
                this.#write({ run: null, failures: this.#state.failures + 1 });
            } finally {
                this.#planRetry();
            }
        }
    }

    async #stop(run: Run): Promise<void> {
        const { stopSignal, stopSeconds } = this.#runs ?? this.#spec.command;
        this.#run = null;
        try {
            await run.stop(stopSignal, stopSeconds * 1000);
        } catch (error) {
            this.#run = run;
            throw error;
        }
        this.#write({ run: null, lastExit: await run.ended });
    }

    #watch(run: Run): void {
        void run.ended
            .then((exit) =>
                this.#exclusive(async () => {
                    if (this.#run === run && !this.#isClosed) {
                        this.#run = null;
                        await run.clear().catch((error: unknown) => this.#note(error));
                        await this.#ended(exit);
                    }
                })
            )
            .catch((error: unknown) => this.#note(error))
            .finally(() => this.#planRetry());
    }

    /** A run ended by itself: the policy says what follows. */
    async #ended(exit: ServiceExit): Promise<void> {
        const { restart } = this.#spec.command;
        const { run, exits, failures } = this.#state;
        const wasStable = run !== null && exit.at - run.startedAt > this.#timing.stableMs;
        const isOver =
            restart === 'never' || restart === 'once' || (restart === 'on-failure' && isClean(exit));
        this.#write({
            run: null,
            exits: exits + 1,
            lastExit: exit,
            failures: isClean(exit) && isOver ? 0 : (wasStable ? 0 : failures) + 1,
            done: !isOver ? null : restart === 'once' ? 'ever' : bootId
        });
        await this.#log.flush();
    }

    /** Starts it again after a while, if it should run and does not. */
    #planRetry(): void {
        const { wanted, done, failures } = this.#state;
        if (this.#run !== null || !wanted || done !== null || this.#isClosed) {
            return;
        }
        const { backoffMs, backoffCapMs } = this.#timing;
        const delay = Math.min(backoffCapMs, backoffMs * 2 ** Math.min(Math.max(failures - 1, 0), 20));
        this.#cancelRetry();
        this.#retry = setTimeout(() => {
            this.#retry = null;
            this.#reconcile().catch((error: unknown) => this.#note(error));
        }, delay);
    }

    #note(error: unknown): void {
        this.#log.note(error instanceof Error ? error.message : String(error));
    }

    #cancelRetry(): void {
        if (this.#retry !== null) {
            clearTimeout(this.#retry);
            this.#retry = null;
        }
    }

    #write(change: Partial<State>): void {
        const next = { ...this.#state, ...change };
        this.#store.writeState(next);
        this.#state = next;
    }

    #parts() {
        return { spec: this.#spec, store: this.#store, log: this.#log };
    }
}

function isClean(exit: ServiceExit | null): boolean {
    return exit !== null && exit.code === 0;
}
