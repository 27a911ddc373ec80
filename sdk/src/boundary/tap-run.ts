/** One run of a hook: it comes to each tap, waits for it, and says what its outcome means. */
import type { TapOrder } from '../hooks.ts';
import { copyOf } from './snapshot.ts';
import { isThenable, TapCall, type TapDeadline, within } from './tap-call.ts';

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
    /** Goes in where nobody has to wait, and counts until `leave`, which is to be called once for each: nothing is made for it. */
    enter(): boolean;
    leave(): void;
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

/** What runs need of their hook. */
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

/** A run that goes from tap to tap and looks at each outcome at once. */
export class TapRun {
    readonly #host: RunHost;
    readonly #judge: Judge;
    readonly #signal: AbortSignal | undefined;
    /** Plugins whose taps of now were asked in place of those that the run began with. */
    readonly #served = new Set<string>();

    constructor(host: RunHost, judge: Judge, signal?: AbortSignal) {
        this.#host = host;
        this.#judge = judge;
        this.#signal = signal;
    }

    /**
     * Comes to one tap of the list that the run began with. Where the plugin is being swapped, or was since, its taps of now are asked in place
     * of that one, all of them and once.
     */
    async visit(payload: unknown, record: TapRecord): Promise<unknown> {
        const { gate } = record;
        if (gate === null) {
            return this.#ask(payload, record);
        }
        if (this.#served.has(record.plugin)) {
            return payload;
        }
        const wasParked = gate.isParked; // whoever passes then is led here by the plugin itself
        const leave = record.call === null ? null : gate.pass();
        if (leave !== null) {
            try {
                const result = await this.#ask(payload, record);
                if (record.call !== null || wasParked) {
                    return result;
                }
            } finally {
                leave();
            }
        }
        return this.follow(gate, payload, record);
    }

    /** Waits until the plugin is there, and asks its taps of now. */
    async follow(gate: TapGate, payload: unknown, record: TapRecord): Promise<unknown> {
        const { patienceMs } = this.#host;
        let leave: () => void;
        try {
            leave =
                gate.pass() ??
                (await gate.wait({
                    ...(this.#signal === undefined ? {} : { signal: this.#signal }),
                    ...(patienceMs === undefined ? {} : { patienceMs })
                }));
        } catch (error) {
            return this.#served.has(record.plugin) ? payload : this.failed(payload, record, error, 0);
        }
        try {
            let value = payload;
            if (!this.#served.has(record.plugin)) {
                this.#served.add(record.plugin);
                for (const tap of this.#host.tapsOf(record.plugin)) {
                    value = await this.#ask(value, tap);
                }
            }
            return value;
        } finally {
            leave();
        }
    }

    failed(payload: unknown, record: TapRecord, error: unknown, milliseconds: number): unknown {
        this.#host.failed(record, error, milliseconds);
        return this.#judge(record, payload, false, error);
    }

    /** A tap gave something. It is copied: it could be changed later. What cannot be copied is not plain, which is the tap's failure. */
    gave(payload: unknown, record: TapRecord, result: unknown, milliseconds: number): unknown {
        let copy = result;
        if (typeof result === 'object' && result !== null) {
            try {
                copy = copyOf(result);
            } catch (error) {
                return this.failed(payload, record, error, milliseconds);
            }
        }
        return this.#judge(record, payload, true, copy);
    }

    /** One tap within its time. A gate that closed meanwhile makes the outcome that of a tap that was never there. */
    async #ask(payload: unknown, record: TapRecord): Promise<unknown> {
        const { call } = record;
        const began = performance.now();
        let [result, error]: [unknown, unknown] = [undefined, undefined];
        let isGood = true;
        if (call !== null) {
            const lent = new TapCall();
            try {
                const given = call(payload, lent);
                result = isThenable(given)
                    ? await within(given, this.#host.deadline, lent, this.#signal)
                    : given;
            } catch (thrown) {
                isGood = false;
                error = thrown;
            }
        }
        if (record.call === null) {
            return this.#judge(record, payload, true, undefined);
        }
        return isGood
            ? this.gave(payload, record, result, performance.now() - began)
            : this.failed(payload, record, error, performance.now() - began);
    }
}
