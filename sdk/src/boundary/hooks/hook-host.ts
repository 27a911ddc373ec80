/**
 * The only file that uses tapable. Each tap belongs to a plugin, has a time limit, and goes with its plugin: its gate closes first, which takes effect
 * at once and is safe for calls under way; then the hook is built again from the other taps. No tapable object leaves this file.
 */
import { AsyncParallelHook, AsyncSeriesWaterfallHook } from 'tapable';

import { createFailure, isFailure, messageOf } from '../../errors.ts';
import type { HookKind, HookName, Hooks, Outcome, Tap, TapOrder } from '../../hooks.ts';
import { deepFreeze } from '../plain.ts';
import { type QuickCourse, runQuickly } from './quick-run.ts';
import { snapshotOf } from './snapshot.ts';
import { TapDeadline } from './tap-call.ts';
import { sortTaps } from './tap-order.ts';
import { type Judge, type RunHost, type TapGate, type TapOwner, type TapRecord, TapRun } from './tap-run.ts';

export type { TapGate, TapOwner } from './tap-run.ts';

/** A tap that failed or was too slow. In a guard, that is a refusal. */
export interface TapFailure extends TapOwner {
    readonly hook: string;
    readonly error: unknown;
    /** How long the run waited for it, about; 0 when it failed at once. */
    readonly milliseconds: number;
}

/** How a hook treats its taps. */
export interface HookOptions {
    /** Time for each tap, seconds; default 10. */
    readonly timeoutSeconds?: number;
    /** For guards: a tap that fails does not refuse. It is reported only. */
    readonly failOpen?: boolean;
}

/** All hooks of a panel: publishers and taps meet here by the name of the hook. */
export interface HookHost {
    /** Publishes a hook. @throws TypeError when the name is published already */
    define<K extends HookName>(name: K, kind: Hooks[K]['kind'], options?: HookOptions): Published<K>;
    /** Adds a tap. The hook may be published later. Returns the function that removes the tap. */
    tap<K extends HookName>(
        owner: TapOwner & { readonly gate?: TapGate },
        name: K,
        tap: Tap<K>,
        order?: TapOrder
    ): () => void;
    /** Runs a published collecting hook with a payload for each plugin; each outcome comes as soon as its tap has ended. @throws TypeError when the hook is not published */
    collect(
        name: string,
        payload: (plugin: string) => Promise<unknown>,
        options?: CollectOptions
    ): AsyncIterable<Outcome<unknown>>;
    /** Ends the publication of a hook; its taps wait for the next publisher. */
    withdraw(name: string): void;
    /** The kind of a published hook; null when it is not published. */
    kindOf(name: string): HookKind | null;
    /** Removes every tap of a plugin; returns the names of the hooks. */
    release(plugin: string): readonly string[];
    /** All taps, in the order in which they run. */
    taps(): readonly (TapOwner & { readonly hook: string })[];
}

/** Which taps of a collecting hook run, and for how long. */
export interface CollectOptions {
    /** Only these plugins. */
    readonly only?: readonly string[] | null;
    /** When it aborts, taps that have not ended count as failed. */
    readonly signal?: AbortSignal;
}

/** The publisher's side of a hook. */
export interface Published<K extends HookName> {
    /** Whether the hook has taps: without taps it costs the publisher only this look. */
    readonly used: boolean;
    /** @throws REFUSED_BY_PLUGIN 40920 when a guard refuses */
    run(payload: Hooks[K]['payload']): Promise<RunResult<K>>;
}

type RunResult<K extends HookName> = Hooks[K]['kind'] extends 'waterfall'
    ? Hooks[K]['payload']
    : Hooks[K]['kind'] extends 'collect'
      ? readonly Outcome<Hooks[K]['result']>[]
      : void;

const defaultTimeoutSeconds = 10;

/** Makes a host without hooks. @param report - is called for every tap that failed */
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
        define<K extends HookName>(name: K, kind: Hooks[K]['kind'], options: HookOptions = {}) {
            return hookOf(name).publish(kind, options) as Published<K>;
        },
        tap({ gate = null, ...owner }, name, tap, order = {}) {
            return hookOf(name).add({
                owner,
                plugin: owner.plugin,
                order,
                gate,
                call: tap as TapRecord['call']
            });
        },
        collect: (name, payload, options = {}) => hookOf(name).collect(payload, options),
        withdraw: (name) => hooks.get(name)?.withdraw(),
        kindOf: (name) => hooks.get(name)?.kind ?? null,
        release: (plugin) =>
            [...hooks.values()].filter((hook) => hook.release(plugin)).map((hook) => hook.name),
        taps: () =>
            [...hooks.values()].flatMap((hook) =>
                hook.owners().map((owner) => ({ ...owner, hook: hook.name }))
            )
    };
}

class Hook {
    readonly name: string;
    readonly #report: (failure: TapFailure) => void;
    #kind: HookKind | null = null;
    #failOpen = false;
    #host: RunHost | null = null;
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
        const { timeoutSeconds = defaultTimeoutSeconds, failOpen = false } = options;
        this.#kind = kind;
        this.#failOpen = failOpen;
        this.#host = {
            deadline: new TapDeadline(timeoutSeconds * 1000),
            ...(failOpen ? { patienceMs: timeoutSeconds * 1000 } : {}),
            tapsOf: (plugin) =>
                this.#taps.filter((record) => record.plugin === plugin && record.call !== null),
            failed: (record, error, milliseconds) =>
                this.#report({ ...record.owner, hook: this.name, error, milliseconds })
        };
        return new Publication(this);
    }

    run(payload: unknown): Promise<unknown> {
        return (this.#call ??= this.#compile())(payload);
    }

    withdraw(): void {
        this.#kind = null;
        this.#call = null;
    }

    async *collect(
        payload: (plugin: string) => Promise<unknown>,
        { only = null, signal }: CollectOptions
    ): AsyncGenerator<Outcome<unknown>> {
        if (this.#kind !== 'collect') {
            throw new TypeError(`The collecting hook ${this.name} is not published`);
        }
        const host = this.#host as RunHost;
        const done: Outcome<unknown>[] = [];
        let wake = (): void => undefined;
        const hook = new AsyncParallelHook<[]>([]);
        const taps = this.#taps.filter(({ plugin }) => only?.includes(plugin) ?? true);
        const run = new TapRun(host, collecting(done), signal);
        let ended = 0;
        taps.forEach((record, stage) =>
            hook.tapPromise({ name: record.plugin, stage }, async () => {
                try {
                    await run.visit(snapshotOf(await payload(record.plugin)), record);
                } catch (error) {
                    done.push(failed(record, error));
                }
                ended += 1;
                wake();
            })
        );
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

    /** While the gate of a tap is parked, the tap keeps its place: runs that reach it wait for the tap that replaces it. */
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

    /** Builds the way through the present taps. Runs under way keep the hook that they began with. */
    #compile(): (payload: unknown) => Promise<unknown> {
        const taps = this.#taps;
        const host = this.#host as RunHost;
        if (this.#kind === 'collect') {
            const hook = new AsyncParallelHook<[unknown, TapRun]>(['payload', 'run']);
            taps.forEach((record, stage) =>
                hook.tapPromise(
                    { name: record.plugin, stage },
                    (payload, run) => run.visit(payload, record) as Promise<void>
                )
            );
            return async (payload) => {
                const outcomes: Outcome<unknown>[] = [];
                await hook.promise(snapshotOf(payload), new TapRun(host, collecting(outcomes)));
                return outcomes;
            };
        }
        if (this.#kind === 'waterfall') {
            const hook = new AsyncSeriesWaterfallHook<[unknown, TapRun]>(['payload', 'run']);
            taps.forEach((record, stage) =>
                hook.tapPromise({ name: record.plugin, stage }, (payload, run) => run.visit(payload, record))
            );
            return (payload) => hook.promise(snapshotOf(payload), new TapRun(host, passing));
        }
        const judge = this.#kind === 'guard' ? this.#guarding : hearing;
        const course: QuickCourse = {
            taps,
            deadline: host.deadline,
            careful: () => new TapRun(host, judge)
        };
        return (payload) => runQuickly(snapshotOf(payload), course);
    }

    readonly #guarding: Judge = (record, payload, isGood, value) => {
        if (!isGood) {
            if (this.#failOpen) {
                return payload;
            }
            throw this.#refusal(
                record,
                `The plugin ${record.plugin} failed while it was asked, so nothing was done`,
                value
            );
        }
        const refuse = (value as { refuse?: unknown } | undefined)?.refuse;
        if (typeof refuse === 'string') {
            throw this.#refusal(record, refuse);
        }
        return payload;
    };

    #refusal(record: TapRecord, message: string, cause?: unknown): Error {
        return createFailure(
            {
                code: 40920,
                reason: 'REFUSED_BY_PLUGIN',
                message,
                data: { plugin: record.plugin, hook: this.name }
            },
            cause
        );
    }
}

function failed(record: TapRecord, error: unknown): Outcome<unknown> {
    return {
        ...record.owner,
        ok: false,
        reason: isFailure(error) ? error.reason : 'TAP_FAILED',
        message: messageOf(error)
    };
}

const hearing: Judge = (_record, payload) => payload;

const passing: Judge = (_record, payload, isGood, value) =>
    isGood && value !== undefined && value !== null && value !== payload ? deepFreeze(value) : payload; // the copy is the run's own

function collecting(outcomes: Outcome<unknown>[]): Judge {
    return (record, payload, isGood, value) => {
        outcomes.push(isGood ? { ...record.owner, ok: true, result: value } : failed(record, value));
        return payload;
    };
}

/** The publisher's handle of a hook. */
class Publication {
    readonly #hook: Hook;

    constructor(hook: Hook) {
        this.#hook = hook;
    }

    get used(): boolean {
        return this.#hook.used;
    }

    readonly run = (payload: unknown): Promise<unknown> => this.#hook.run(payload);
}
