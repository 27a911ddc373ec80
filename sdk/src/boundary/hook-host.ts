/**
 * The one facade over tapable. Every tap is attributed, timed, time-boxed and gone with its owner: its gate closes first, which is instant
 * and safe for calls under way, then the hook is rebuilt from the taps that are left. No tapable object leaves this file.
 */
import { AsyncParallelHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable';
import { createFailure } from '../errors.ts';
import type { HookKind, HookName, Hooks, Outcome, Tap, TapOrder } from '../hooks.ts';
import { isThenable, TapCall, within } from './tap-call.ts';
import { sortTaps } from './tap-order.ts';

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

/** A tap that failed, was too slow, or refused by failing. */
export interface TapFailure extends TapOwner {
    readonly hook: string;
    readonly error: unknown;
    readonly milliseconds: number;
}

export interface HookOptions {
    /** Time for each tap, seconds; default 10. */
    readonly timeoutSeconds?: number;
    /** A guard only: a tap that fails lets pass and is reported. */
    readonly failOpen?: boolean;
}

export interface HookHost {
    /** Publishes a hook. @throws TypeError when the name is published already */
    define<K extends HookName>(name: K, kind: Hooks[K]['kind'], options?: HookOptions): Published<K>;
    /** Taps a hook; one that nobody publishes is waited for. Returns how to take the tap back. */
    tap<K extends HookName>(owner: TapOwner & { readonly gate?: TapGate }, name: K, tap: Tap<K>, order?: TapOrder): () => void;
    /** Runs a published collecting hook with a payload for each plugin; outcomes come as they are there. @throws TypeError when nobody publishes it */
    collect(name: string, payload: (plugin: string) => Promise<unknown>, options?: CollectOptions): AsyncIterable<Outcome<unknown>>;
    /** Takes a published hook back; its taps wait for the next publisher. */
    withdraw(name: string): void;
    /** The kind of a published hook; null when nobody publishes it. */
    kindOf(name: string): HookKind | null;
    /** Takes back every tap of a plugin; tells from which hooks. */
    release(plugin: string): readonly string[];
    /** Every tap there is, in the order in which it runs. */
    taps(): readonly (TapOwner & { readonly hook: string })[];
}

export interface CollectOptions {
    /** Only these plugins. */
    readonly only?: readonly string[] | null;
    /** Taps that did not end when it aborts count as failed. */
    readonly signal?: AbortSignal;
}

/** The publisher's side of a hook. */
export interface Published<K extends HookName> {
    /** Whether anybody taps: an unused hook costs its caller this one look. */
    readonly used: boolean;
    /** @throws REFUSED_BY_PLUGIN 40920 when a guard refuses */
    run(payload: Hooks[K]['payload']): Promise<Run<K>>;
}

type Run<K extends HookName> = Hooks[K]['kind'] extends 'waterfall' ? Hooks[K]['payload'] : Hooks[K]['kind'] extends 'collect' ? readonly Outcome<Hooks[K]['result']>[] : void;

interface TapRecord {
    readonly owner: TapOwner;
    readonly plugin: string;
    readonly order: TapOrder;
    /** Null where nobody swaps. */
    readonly gate: TapGate | null;
    /** Null once the gate is closed: what the plugin handed over is let go of at once. */
    call: ((payload: unknown, call: { readonly signal: AbortSignal }) => unknown) | null;
}

/** Asks one tap; `lost` is why it could not be asked. */
type Step = (payload: unknown, record: TapRecord, lost?: unknown) => Promise<unknown>;

/** Plugins whose taps of now were asked in place of those that the run began with. */
type Served = Set<string>;

const defaultTimeoutSeconds = 10;

/** Makes an empty host. `report` hears of every tap that failed. */
export function createHookHost(report: (failure: TapFailure) => void): HookHost {
    const hooks = new Map<string, Hook>();
    const hookOf = (name: string): Hook => {
        let hook = hooks.get(name);
        if (hook === undefined) {
            hook = new Hook(name, report);
            hooks.set(name, hook);
        }
        return hook;
    };
    return {
        define: (name, kind, options = {}) => hookOf(name).publish(kind, options) as never,
        tap({ gate = null, ...owner }, name, tap, order = {}) {
            return hookOf(name).add({ owner, plugin: owner.plugin, order, gate, call: tap as TapRecord['call'] });
        },
        collect: (name, payload, options = {}) => hookOf(name).collect(payload, options),
        withdraw: (name) => hooks.get(name)?.withdraw(),
        kindOf: (name) => hooks.get(name)?.kind ?? null,
        release: (plugin) => [...hooks.values()].filter((hook) => hook.release(plugin)).map((hook) => hook.name),
        taps: () => [...hooks.values()].flatMap((hook) => hook.owners().map((owner) => ({ ...owner, hook: hook.name })))
    };
}

class Hook {
    readonly name: string;
    readonly #report: (failure: TapFailure) => void;
    #kind: HookKind | null = null;
    #options: HookOptions = {};
    #taps: TapRecord[] = [];
    #call: ((payload: unknown) => Promise<unknown>) | null = null;

    constructor(name: string, report: (failure: TapFailure) => void) {
        this.name = name;
        this.#report = report;
    }

    get kind(): HookKind | null {
        return this.#kind;
    }

    get used(): boolean {
        return this.#taps.length > 0;
    }

    publish(kind: Hooks[HookName]['kind'], options: HookOptions): object {
        if (this.#kind !== null) {
            throw new TypeError(`The hook ${this.name} is published already`);
        }
        this.#kind = kind;
        this.#options = options;
        const run = (payload: unknown): Promise<unknown> => (this.#call ??= this.#compile())(payload);
        return Object.defineProperty({ run }, 'used', { get: () => this.used });
    }

    withdraw(): void {
        this.#kind = null;
        this.#call = null;
    }

    async* collect(payload: (plugin: string) => Promise<unknown>, { only = null, signal }: CollectOptions): AsyncGenerator<Outcome<unknown>> {
        if (this.#kind !== 'collect') {
            throw new TypeError(`Nobody publishes the collecting hook ${this.name}`);
        }
        const done: Outcome<unknown>[] = [];
        let wake = (): void => undefined;
        const hook = new AsyncParallelHook<[]>([]);
        const taps = this.#taps.filter(({ plugin }) => only?.includes(plugin) ?? true);
        const served: Served = new Set();
        let ended = 0;
        taps.forEach((record, stage) => hook.tapPromise({ name: record.plugin, stage }, async () => {
            const outcomes: Outcome<unknown>[] = [];
            try {
                await this.#visit(frozen(await payload(record.plugin)), record, served, this.#collecting(outcomes, signal), signal);
            }
            catch (error) {
                outcomes.push(failed(record, error));
            }
            done.push(...outcomes);
            ended += 1;
            wake();
        }));
        const all = hook.promise();
        while (ended < taps.length || done.length > 0) {
            if (done.length === 0) {
                await new Promise<void>((resolve) => {
                    wake = resolve;
                });
            }
            const outcome = done.shift();
            if (outcome !== undefined) {
                yield outcome;
            }
        }
        await all;
    }

    add(record: TapRecord): () => void {
        this.#taps = sortTaps([...this.#taps, record]);
        this.#call = null;
        return () => this.#drop([record]);
    }

    release(plugin: string): boolean {
        const own = this.#taps.filter((record) => record.plugin === plugin);
        this.#drop(own);
        return own.length > 0;
    }

    owners(): TapOwner[] {
        return this.#taps.filter(({ call }) => call !== null).map((record) => record.owner);
    }

    /** While its gate is parked, the place of a tap is kept: runs that come to it wait for the one that follows. */
    #drop(records: readonly TapRecord[]): void {
        for (const record of records) {
            record.call = null;
            if (record.gate?.isParked === true) {
                record.gate.onOpen(() => this.#forget([record]));
            }
        }
        this.#forget(records.filter(({ gate }) => gate?.isParked !== true));
    }

    #forget(records: readonly TapRecord[]): void {
        this.#taps = this.#taps.filter((record) => !records.includes(record));
        this.#call = null;
    }

    /** A fresh tapable hook over the taps of now; calls under way keep the one they began with. */
    #compile(): (payload: unknown) => Promise<unknown> {
        const taps = this.#taps;
        if (this.#kind === 'collect') {
            const hook = new AsyncParallelHook<[unknown, Served, Outcome<unknown>[]]>(['payload', 'served', 'outcomes']);
            taps.forEach((record, stage) => hook.tapPromise({ name: record.plugin, stage }, (payload, served, outcomes) => this.#visit(payload, record, served, this.#collecting(outcomes)).then(() => undefined)));
            return async (payload) => {
                const outcomes: Outcome<unknown>[] = [];
                await hook.promise(frozen(payload), new Set(), outcomes);
                return outcomes;
            };
        }
        if (this.#kind === 'waterfall') {
            const hook = new AsyncSeriesWaterfallHook<[unknown, Served]>(['payload', 'served']);
            taps.forEach((record, stage) => hook.tapPromise({ name: record.plugin, stage }, (payload, served) => this.#visit(payload, record, served, this.#pass)));
            return (payload) => hook.promise(frozen(payload), new Set());
        }
        const hook = new AsyncSeriesHook<[unknown, Served]>(['payload', 'served']);
        const step = this.#kind === 'guard' ? this.#guard : this.#notify;
        taps.forEach((record, stage) => hook.tapPromise({ name: record.plugin, stage }, (payload, served) => this.#visit(payload, record, served, step) as Promise<void>));
        return (payload) => hook.promise(frozen(payload), new Set());
    }

    readonly #notify: Step = async (payload, record, lost) => {
        await this.#attempt(payload, record, lost);
    };

    readonly #guard: Step = async (payload, record, lost) => {
        const attempt = await this.#attempt(payload, record, lost);
        if (!attempt.ok) {
            if (this.#options.failOpen === true) {
                return;
            }
            throw this.#refusal(record, `The plugin ${record.plugin} failed while it was asked, so nothing was done`, attempt.error);
        }
        const refuse = (attempt.result as { refuse?: unknown } | undefined)?.refuse;
        if (typeof refuse === 'string') {
            throw this.#refusal(record, refuse);
        }
    };

    readonly #pass: Step = async (payload, record, lost) => {
        const attempt = await this.#attempt(payload, record, lost);
        return attempt.ok && attempt.result !== undefined && attempt.result !== null ? frozen(attempt.result) : payload;
    };

    #collecting(outcomes: Outcome<unknown>[], signal?: AbortSignal): Step {
        return async (payload, record, lost) => {
            const attempt = await this.#attempt(payload, record, lost, signal);
            outcomes.push(attempt.ok ? { ...record.owner, ok: true, result: attempt.result } : failed(record, attempt.error));
        };
    }

    /**
     * Comes to one tap of the list that the run began with. Where the plugin is being swapped, or was since, its taps of now are asked in place
     * of that one, all of them and once.
     */
    #visit(payload: unknown, record: TapRecord, served: Served, step: Step, signal?: AbortSignal): Promise<unknown> {
        const { gate, call } = record;
        return gate === null ? step(payload, record) : this.#visitGated(gate, call !== null, payload, record, served, step, signal);
    }

    async #visitGated(gate: TapGate, isThere: boolean, payload: unknown, record: TapRecord, served: Served, step: Step, signal?: AbortSignal): Promise<unknown> {
        if (served.has(record.plugin)) {
            return payload;
        }
        const wasParked = gate.isParked; // whoever passes then is led here by the plugin itself
        const leave = isThere ? gate.pass() : null;
        if (leave !== null) {
            try {
                const result = await step(payload, record);
                if (record.call !== null || wasParked) {
                    return result;
                }
            }
            finally {
                leave();
            }
        }
        let leaveNow: () => void;
        try {
            leaveNow = gate.pass() ?? await gate.wait({ ...(signal === undefined ? {} : { signal }), ...(this.#options.failOpen === true ? { patienceMs: this.#timeoutMs } : {}) });
        }
        catch (error) {
            return served.has(record.plugin) ? payload : step(payload, record, error);
        }
        try {
            let value = payload;
            if (!served.has(record.plugin)) {
                served.add(record.plugin);
                for (const tap of this.#taps.filter(({ plugin, call }) => plugin === record.plugin && call !== null)) {
                    value = await step(value, tap);
                }
            }
            return value;
        }
        finally {
            leaveNow();
        }
    }

    get #timeoutMs(): number {
        return (this.#options.timeoutSeconds ?? defaultTimeoutSeconds) * 1000;
    }

    /** One tap within its time. A gate that closed meanwhile makes the outcome that of a tap that was never there. */
    async #attempt(payload: unknown, record: TapRecord, lost: unknown, outer?: AbortSignal): Promise<{ ok: true; result: unknown } | { ok: false; error: unknown }> {
        const { call } = record;
        if (lost !== undefined) {
            this.#report({ ...record.owner, hook: this.name, error: lost, milliseconds: 0 });
            return { ok: false, error: lost };
        }
        if (call === null) {
            return { ok: true, result: undefined };
        }
        const began = performance.now();
        const lent = new TapCall();
        try {
            const given = call(payload, lent);
            const result = isThenable(given) ? await within(given, this.#timeoutMs, lent, outer) : given;
            return { ok: true, result: record.call === null ? undefined : plain(result) };
        }
        catch (error) {
            if (record.call === null) {
                return { ok: true, result: undefined };
            }
            this.#report({ ...record.owner, hook: this.name, error, milliseconds: performance.now() - began });
            return { ok: false, error };
        }
    }

    #refusal(record: TapRecord, message: string, cause?: unknown): Error {
        return createFailure({ code: 40920, reason: 'REFUSED_BY_PLUGIN', message, data: { plugin: record.plugin, hook: this.name } }, cause);
    }
}

function failed(record: TapRecord, error: unknown): Outcome<unknown> {
    return { ...record.owner, ok: false, reason: 'TAP_FAILED', message: error instanceof Error ? error.message : String(error) };
}

/** What a tap returns is copied: it could be changed later. What cannot be copied is not plain, which is the tap's failure. */
function plain(value: unknown): unknown {
    return typeof value === 'object' && value !== null ? structuredClone(value) : value;
}

function frozen<T>(value: T): T {
    return freeze(structuredClone(value));
}

function freeze<T>(value: T): T {
    if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
        Object.values(value).forEach(freeze);
        Object.freeze(value);
    }
    return value;
}
