/** One run of a hook: it comes to each tap, waits for it, and says what its outcome means. */
import { AsyncResource } from 'node:async_hooks';
import type { TapOrder } from '../hooks.ts';
import { copyOf } from './snapshot.ts';
import { isThenable, TapCall, type TapDeadline } from './tap-call.ts';

/** Who taps: a plugin's generation. */
export interface TapOwner {
    readonly plugin: string;
    readonly version: string;
}

/**
 * The way to a plugin's taps while its generation is swapped: a run that comes to one of them waits and then asks the taps that are there, so
 * that none is skipped. Hooks of all four kinds do.
 */
export interface TapGate {
    readonly isParked: boolean;
    /** Goes in and counts until what it returns is called; null when one has to wait. */
    pass(): (() => void) | null;
    /** @throws Error when it takes too long; the signal's reason */
    wait(options: { readonly signal?: AbortSignal; readonly patienceMs?: number }): Promise<() => void>;
    /** Calls once, when the parked gate opens. */
    onOpen(listener: () => void): void;
}

export interface TapRecord {
    readonly owner: TapOwner;
    readonly plugin: string;
    readonly order: TapOrder;
    /** Null where nobody swaps. */
    readonly gate: TapGate | null;
    /** Null once the gate is closed: what the plugin handed over is let go of at once. */
    call: ((payload: unknown, call: { readonly signal: AbortSignal }) => unknown) | null;
}

/** What a run asks of its hook. */
export interface RunHost {
    readonly deadline: TapDeadline;
    /** How long a run waits for a plugin that is swapped, milliseconds; as long as the gate allows when it is not given. */
    readonly patienceMs?: number;
    /** The taps that a plugin has now. */
    tapsOf(plugin: string): readonly TapRecord[];
    failed(record: TapRecord, error: unknown, milliseconds: number): void;
}

/** What a tap's outcome means: gives what the next one is asked. Throws where the run ends with it. A tap that is gone gave nothing. */
export type Judge = (record: TapRecord, payload: unknown, isGood: boolean, value: unknown) => unknown;

/** Goes on with the run. */
export type Next = (error: Error | null, value?: unknown) => void;

export class TapRun {
    readonly #host: RunHost;
    readonly #judge: Judge;
    readonly #signal: AbortSignal | undefined;
    /** Plugins whose taps of now were asked in place of those that the run began with. */
    #served: Set<string> | null = null;
    /** Of whoever runs the hook. Taps that answer at once need none. */
    #context: AsyncResource | null = null;

    constructor(host: RunHost, judge: Judge, signal?: AbortSignal) {
        this.#host = host;
        this.#judge = judge;
        this.#signal = signal;
    }

    /**
     * Comes to one tap of the list that the run began with. Where the plugin is being swapped, or was since, its taps of now are asked in place
     * of that one, all of them and once.
     */
    visit(payload: unknown, record: TapRecord, next: Next): void {
        const { gate } = record;
        if (gate === null) {
            this.#ask(payload, record, next, null, false);
            return;
        }
        if (this.#served?.has(record.plugin) === true) {
            next(null, payload);
            return;
        }
        const wasParked = gate.isParked; // whoever passes then is led here by the plugin itself
        const leave = record.call === null ? null : gate.pass();
        if (leave === null) {
            this.#follow(gate, payload, record, next);
        }
        else {
            this.#ask(payload, record, next, leave, wasParked);
        }
    }

    /** One tap within its time. */
    #ask(payload: unknown, record: TapRecord, next: Next, leave: (() => void) | null, wasParked: boolean): void {
        const { call } = record;
        let given: unknown;
        if (call !== null) {
            const lent = new TapCall();
            try {
                given = call(payload, lent);
                if (isThenable(given)) {
                    this.#host.deadline.wait(given, lent, this.#context ??= new AsyncResource('HookRun'), (isGood, value, milliseconds) => this.#answered(payload, record, next, leave, wasParked, isGood, value, milliseconds), this.#signal);
                    return;
                }
            }
            catch (error) {
                this.#answered(payload, record, next, leave, wasParked, false, error, 0);
                return;
            }
        }
        this.#answered(payload, record, next, leave, wasParked, true, given, 0);
    }

    /** A gate that closed meanwhile makes the outcome that of a tap that was never there. */
    #answered(payload: unknown, record: TapRecord, next: Next, leave: (() => void) | null, wasParked: boolean, isGood: boolean, value: unknown, milliseconds: number): void {
        const isGone = record.call === null;
        let goesOn: unknown;
        try {
            leave?.();
            goesOn = isGone ? this.#judge(record, payload, true, undefined) : this.#judged(payload, record, isGood, value, milliseconds);
        }
        catch (error) {
            next(error as Error);
            return;
        }
        if (isGone && !wasParked && record.gate !== null && leave !== null) {
            this.#follow(record.gate, payload, record, next);
        }
        else {
            next(null, goesOn);
        }
    }

    #judged(payload: unknown, record: TapRecord, isGood: boolean, value: unknown, milliseconds: number): unknown {
        let given = value;
        let isPlain = isGood;
        if (isGood && typeof value === 'object' && value !== null) {
            // It could be changed later. What cannot be copied is not plain, which is the tap's failure.
            try {
                given = copyOf(value);
            }
            catch (error) {
                given = error;
                isPlain = false;
            }
        }
        if (!isPlain) {
            this.#host.failed(record, given, milliseconds);
        }
        return this.#judge(record, payload, isPlain, given);
    }

    #follow(gate: TapGate, payload: unknown, record: TapRecord, next: Next): void {
        this.#ofNow(gate, payload, record).then((value) => next(null, value), next);
    }

    /** Waits until the plugin is there, and asks its taps of now. */
    async #ofNow(gate: TapGate, payload: unknown, record: TapRecord): Promise<unknown> {
        const { patienceMs } = this.#host;
        let leave: () => void;
        try {
            leave = gate.pass() ?? await gate.wait({ ...(this.#signal === undefined ? {} : { signal: this.#signal }), ...(patienceMs === undefined ? {} : { patienceMs }) });
        }
        catch (error) {
            if (this.#served?.has(record.plugin) === true) {
                return payload;
            }
            this.#host.failed(record, error, 0);
            return this.#judge(record, payload, false, error);
        }
        try {
            let value = payload;
            this.#served ??= new Set();
            if (!this.#served.has(record.plugin)) {
                this.#served.add(record.plugin);
                for (const tap of this.#host.tapsOf(record.plugin)) {
                    value = await new Promise((resolve, reject) => this.#ask(value, tap, (error, given) => (error === null ? resolve(given) : reject(error)), null, false));
                }
            }
            return value;
        }
        finally {
            leave();
        }
    }
}
