/** One run of a hook: asks each tap, waits for it, and decides what its outcome means. */
import type { TapOrder } from '../../hooks.ts';
import { copyOf } from './snapshot.ts';
import { isThenable, TapCall, type TapDeadline, within } from './tap-call.ts';

/** The plugin generation that a tap belongs to. */
export interface TapOwner {
    readonly plugin: string;
    readonly version: string;
}

/**
 * Guards the taps of a plugin while its generation is replaced: a run that reaches one of them waits, and then asks the taps of the new generation, so
 * that no tap is skipped. This holds for all four kinds of hooks.
 */
export interface TapGate {
    readonly isParked: boolean;
    /** Enters, and counts as inside until the returned function is called; null when the gate is parked. */
    pass(): (() => void) | null;
    /** Enters when the gate is open, and counts as inside until `leave`. Cheaper than `pass`: no function is made. */
    enter(): boolean;
    leave(): void;
    /** @throws Error when it takes too long; the signal's reason */
    wait(options: { readonly signal?: AbortSignal; readonly patienceMs?: number }): Promise<() => void>;
    /** Calls once, when the parked gate opens. */
    onOpen(listener: () => void): void;
}

/** One tap of a hook. */
export interface TapRecord {
    readonly owner: TapOwner;
    readonly plugin: string;
    readonly order: TapOrder;
    /** Null for taps whose generation is never replaced. */
    readonly gate: TapGate | null;
    /** Null after the tap was removed, so that the plugin's code can be collected as garbage at once. */
    call: ((payload: unknown, call: { readonly signal: AbortSignal }) => unknown) | null;
}

/** What runs need from their hook. */
export interface RunHost {
    readonly deadline: TapDeadline;
    /** Milliseconds that a run waits for a plugin that is being replaced; default: as long as the gate allows. */
    readonly patienceMs?: number;
    /** The present taps of a plugin. */
    tapsOf(plugin: string): readonly TapRecord[];
    failed(record: TapRecord, error: unknown, milliseconds: number): void;
}

/** Decides what a tap's outcome means. Returns the payload for the next tap, or throws to end the run. A removed tap answered nothing. */
export type Judge = (record: TapRecord, payload: unknown, isGood: boolean, value: unknown) => unknown;

/** A run that checks the outcome of each tap before it asks the next one. */
export class TapRun {
    readonly #host: RunHost;
    readonly #judge: Judge;
    readonly #signal: AbortSignal | undefined;
    /** Plugins whose new taps were asked in place of those that the run began with. */
    readonly #served = new Set<string>();

    constructor(host: RunHost, judge: Judge, signal?: AbortSignal) {
        this.#host = host;
        this.#judge = judge;
        this.#signal = signal;
    }

    /**
     * Asks one tap of the list that the run began with. When the plugin is being replaced, or was replaced since, all its new taps are asked instead, once.
     */
    async visit(payload: unknown, record: TapRecord): Promise<unknown> {
        const { gate } = record;
        if (gate === null) {
            return this.#ask(payload, record);
        }
        if (this.#served.has(record.plugin)) {
            return payload;
        }
        const wasParked = gate.isParked; // then only a call that comes from the plugin itself passes
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

    /** Waits until the plugin is there again, and asks its present taps. */
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

    /** A tap answered. Its answer is copied, because the tap could change it later; an answer that is no plain data is a failure of the tap. */
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

    /** Asks one tap within its time limit. A tap that was removed meanwhile counts as one that answered nothing. */
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
