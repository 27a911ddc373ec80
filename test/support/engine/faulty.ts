import { setTimeout as wait } from 'node:timers/promises';

import {
    type EngineConfig,
    type EngineDriver,
    type EngineProcess,
    EngineRejected,
    EngineUnavailable,
    type EngineUpstream,
    type ProcessState
} from '../../../core/src/engine/port.ts';

/** What an operation does instead of its work. `hang` lasts until `release`, `stop` or `close`. */
export type Fault =
    | { readonly reject: string }
    | { readonly unavailable: string }
    | { readonly hang: true }
    | { readonly delayMs: number };

export type FaultyOperation = 'start' | 'stop' | 'load' | 'validate' | 'config' | 'upstreams';

export interface FaultyEngine extends EngineDriver {
    /** Every call so far, oldest first. */
    readonly calls: readonly { readonly operation: FaultyOperation; readonly config: EngineConfig | null }[];
    /** The configuration that it runs, regardless of faults. */
    readonly running: EngineConfig | null;
    /** Gives the next calls of `operation` one fault each. */
    next(operation: FaultyOperation, ...faults: readonly Fault[]): void;
    /** Gives every call of `operation` a fault, until it is set to null. Faults of `next` come first. */
    always(operation: FaultyOperation, fault: Fault | null): void;
    /** Judges each configuration of `load` and `validate`. A message refuses the configuration. */
    judge(rule: (config: EngineConfig) => string | null): void;
    /** Lets every hanging call go on. It succeeds; with a text, it fails as unavailable. */
    release(unavailable?: string): void;
    /** Ends the engine, which reports it. */
    crash(message: string): void;
    /** Starts the engine again with its configuration, which it reports. */
    recover(): void;
    /** Changes what it runs, as another client would. */
    drift(config: EngineConfig): void;
    say(line: string): void;
    setUpstreams(upstreams: readonly EngineUpstream[]): void;
}

/** Makes an engine in memory that fails on demand. Without a fault, it keeps the contract of the port. */
export const createFaultyEngine = (): FaultyEngine => new InMemoryEngine();

class InMemoryEngine implements FaultyEngine {
    readonly calls: { readonly operation: FaultyOperation; readonly config: EngineConfig | null }[] = [];
    readonly #next = new Map<FaultyOperation, Fault[]>();
    readonly #always = new Map<FaultyOperation, Fault>();
    readonly #hanging = new Set<(unavailable: string | null) => void>();
    readonly #listeners = new Set<(process: EngineProcess) => void>();
    readonly #lines: string[] = [];
    readonly #waiting = new Set<() => void>();
    #rule: (config: EngineConfig) => string | null = () => null;
    #state: ProcessState = 'stopped';
    #message: string | null = null;
    #running: EngineConfig | null = null;
    #last: EngineConfig | null = null;
    #startedAt: Date | null = null;
    #upstreams: readonly EngineUpstream[] = [];
    #turn: Promise<unknown> = Promise.resolve();

    get running(): EngineConfig | null {
        return this.#running;
    }

    answers(): Promise<boolean> {
        return Promise.resolve(this.#state === 'running');
    }

    process(): EngineProcess {
        const running = this.#state === 'running';
        return {
            state: this.#state,
            version: { text: '2.6.2', major: 2, minor: 6, patch: 2 },
            pid: running ? 4242 : null,
            startedAt: running ? this.#startedAt : null,
            message: this.#message
        };
    }

    start(base: EngineConfig): Promise<boolean> {
        return this.#exclusive(async () => {
            await this.#fault('start', base);
            if (this.#state === 'running') {
                return false;
            }

            this.#take(this.#last ?? base);
            this.#become('running', null);
            return true;
        });
    }

    stop(): Promise<boolean> {
        this.release('the engine was stopped');
        return this.#exclusive(async () => {
            await this.#fault('stop', null);
            const ran = this.#state === 'running';
            this.#running = null;
            this.#become('stopped', null);
            return ran;
        });
    }

    load(config: EngineConfig): Promise<void> {
        return this.#exclusive(async () => {
            await this.#fault('load', config);
            this.#check(config);
            if (this.#state !== 'running') {
                throw new EngineUnavailable(this.#message ?? 'the engine is stopped');
            }

            this.#take(config);
        });
    }

    async validate(config: EngineConfig): Promise<void> {
        await this.#fault('validate', config);
        this.#check(config);
    }

    async config(): Promise<EngineConfig | null> {
        await this.#fault('config', null);
        if (this.#state === 'failing') {
            throw new EngineUnavailable(this.#message ?? 'the engine fails');
        }

        return this.#running;
    }

    async upstreams(): Promise<readonly EngineUpstream[]> {
        await this.#fault('upstreams', null);
        return this.#upstreams;
    }

    async *logs(options: {
        readonly lines: number;
        readonly follow: boolean;
        readonly signal: AbortSignal;
    }): AsyncIterable<string> {
        let at = Math.max(0, this.#lines.length - options.lines);
        while (!options.signal.aborted) {
            while (at < this.#lines.length) {
                yield this.#lines[at] ?? '';
                at += 1;
            }

            if (!options.follow) {
                return;
            }

            await new Promise<void>((done) => {
                this.#waiting.add(done);
                options.signal.addEventListener('abort', () => done(), { once: true });
            });
        }
    }

    onChange(listener: (process: EngineProcess) => void): void {
        this.#listeners.add(listener);
    }

    async close(): Promise<void> {
        this.release('the driver was closed');
        this.#listeners.clear();
        await this.#turn;
    }

    next(operation: FaultyOperation, ...faults: readonly Fault[]): void {
        this.#next.set(operation, [...(this.#next.get(operation) ?? []), ...faults]);
    }

    always(operation: FaultyOperation, fault: Fault | null): void {
        if (fault === null) {
            this.#always.delete(operation);
        } else {
            this.#always.set(operation, fault);
        }
    }

    judge(rule: (config: EngineConfig) => string | null): void {
        this.#rule = rule;
    }

    release(unavailable?: string): void {
        for (const done of this.#hanging) {
            done(unavailable ?? null);
        }

        this.#hanging.clear();
    }

    crash(message: string): void {
        this.#running = null;
        this.#become('failing', message);
    }

    recover(): void {
        this.#running = this.#last;
        this.#become('running', this.#message);
    }

    drift(config: EngineConfig): void {
        this.#running = config;
    }

    say(line: string): void {
        this.#lines.push(line);
        for (const wake of this.#waiting) {
            wake();
        }

        this.#waiting.clear();
    }

    setUpstreams(upstreams: readonly EngineUpstream[]): void {
        this.#upstreams = upstreams;
    }

    async #fault(operation: FaultyOperation, config: EngineConfig | null): Promise<void> {
        this.calls.push({ operation, config });
        const fault = this.#next.get(operation)?.shift() ?? this.#always.get(operation);
        if (fault === undefined) {
            return;
        }

        if ('reject' in fault) {
            throw new EngineRejected(fault.reject);
        }

        if ('unavailable' in fault) {
            throw new EngineUnavailable(fault.unavailable);
        }

        if ('delayMs' in fault) {
            await wait(fault.delayMs);
            return;
        }

        const unavailable = await new Promise<string | null>((done) => this.#hanging.add(done));
        if (unavailable !== null) {
            throw new EngineUnavailable(unavailable);
        }
    }

    #check(config: EngineConfig): void {
        const refusal = this.#rule(config);
        if (refusal !== null) {
            throw new EngineRejected(refusal);
        }
    }

    #take(config: EngineConfig): void {
        this.#running = config;
        this.#last = config;
        this.say('{"level":"info","msg":"load complete"}');
    }

    #become(state: ProcessState, message: string | null): void {
        this.#state = state;
        this.#message = message;
        this.#startedAt = state === 'running' ? new Date() : null;
        for (const listener of this.#listeners) {
            listener(this.process());
        }
    }

    #exclusive<Result>(work: () => Promise<Result>): Promise<Result> {
        const result = this.#turn.then(work);
        this.#turn = result.catch(() => undefined);
        return result;
    }
}
