/** The continuous work: each interval it takes a sample, adds it to the history, evaluates the rules and publishes the events. */
import { messageOf, Mutex } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { RuleActions } from '../actions/actions.ts';
import { RuleEvaluator } from '../alerts/evaluator.ts';
import { AlertJournal } from '../alerts/journal.ts';
import { Notifier } from '../alerts/notifier.ts';
import { Rules } from '../alerts/rules.ts';
import { toAlertView } from '../alerts/schema.ts';
import { fail } from '../errors.ts';
import { History } from '../history/history.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { Silences } from '../silences/silences.ts';
import { EventFeed } from './event-feed.ts';
import { nameSeries, readValues } from './metrics.ts';
import type { Sample } from './sample.ts';
import { type Extras, Sampler, type TakenSample } from './sampler.ts';

/** Samples are taken this long after the full step of the clock: a timer that fires a little early must not measure the step before twice. */
const offsetMs = 100;
/** A sample that is due sooner than this is left to the next step: two samples so close together measure noise. */
const earlyMs = 500;
/** How often the time is saved at which each series last had a value. */
const seenMs = 3_600_000;

/** The state of the monitor itself. */
export interface MonitorStatus {
    /** Time of the newest sample, milliseconds since 1970; null before the first. */
    readonly sampledAt: number | null;
    /** How long the newest sample took. */
    readonly tookMs: number | null;
    readonly samples: number;
    /** Why the last write of history failed; null when it succeeded. */
    readonly writeError: string | null;
    readonly series: number;
    /** Number of series that there was no room for. */
    readonly refused: number;
}

/**
 * Takes samples from start to stop. Samples, changed settings and the end follow one another and never overlap.
 */
export class Monitor {
    readonly feed = new EventFeed();
    readonly history: History;
    readonly journal: AlertJournal;
    readonly rules: Rules;
    readonly silences: Silences;
    readonly actions: RuleActions;
    readonly #notifier: Notifier;
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #extras: () => Extras;
    readonly #sampler: Sampler;
    readonly #evaluator: RuleEvaluator;
    #taken: TakenSample | null = null;
    #sampledAt: number | null = null;
    #samples = 0;
    #writeError: string | null = null;
    #seenWritten = 0;
    #evaluated: number | null = null;
    #listener: (sample: Sample) => void = () => undefined;
    readonly #mutex = new Mutex();
    #loop: Promise<void> = Promise.resolve();
    #pause = new AbortController();
    readonly #end = new AbortController();
    /** To be called when the transaction that wrote the alerts is durable. */
    #confirmAlerts: () => void = () => undefined;

    /** @param extras - what samples hold that is not read with them: uptime checks, drives and graphics processors */
    constructor(
        ctx: Ctx,
        machine: Machine,
        extras: () => Extras = () => ({ checks: [], drives: [], gpus: [] })
    ) {
        this.#extras = extras;
        this.#ctx = ctx;
        this.#machine = machine;
        this.#sampler = new Sampler(machine);
        this.history = new History(ctx.db, ctx.settings);
        this.journal = new AlertJournal(ctx.db);
        this.#evaluator = new RuleEvaluator(ctx.db, this.journal);
        this.rules = new Rules(ctx, this.#evaluator, () => machine.now());
        this.silences = new Silences(ctx.db, () => machine.now());
        this.actions = new RuleActions(ctx, this.journal, () => machine.now());
        this.#notifier = new Notifier({
            ctx,
            journal: this.journal,
            silences: this.silences,
            rule: (id) => this.#evaluator.rule(id),
            now: () => machine.now()
        });
    }

    /** Says who gets each sample, right after it is taken. */
    onSample(listener: (sample: Sample) => void): void {
        this.#listener = listener;
    }

    /** Loads what an earlier generation left. Resolves when the first sample is taken. */
    async start(): Promise<void> {
        const now = this.#machine.now();
        await this.history.load(now);
        await this.#evaluator.load(now);
        await this.silences.load();
        await this.#mutex.run(() => this.#sample());
        await this.prune();
        this.#loop = this.#run();
    }

    /** Resolves when no work is left and everything known is written. */
    async stop(): Promise<void> {
        this.#end.abort();
        this.#pause.abort();
        await this.#loop;
        await this.actions.stop();
        await this.#mutex.run(async () => {
            this.#evaluator.markAllDirty();
            await this.#write(() => this.history.flush());
            await this.#write(() => this.history.save({ write: (em) => this.#writeAlerts(em) }));
        });
    }

    /** Takes up changed settings: the next sample comes after the new interval. */
    async applySettings(): Promise<void> {
        await this.#mutex.run(() =>
            this.#write(() => this.history.resize(this.#ctx.settings, this.#machine.now()))
        );
        this.#pause.abort();
    }

    /** Forgets series and alerts that are older than they are kept. */
    async prune(): Promise<void> {
        await this.#mutex.run(() =>
            this.#write(async () => {
                this.history.expire(this.#machine.now());
                await this.silences.prune();
                await this.history.save({
                    write: (em) => this.journal.prune(em, this.#ctx.settings.alertsKept)
                });
            })
        );
    }

    /** Writes alerts that changed between two samples. A failure is remembered, and they are written with the next sample. */
    async saveAlerts(): Promise<void> {
        await this.#mutex.run(() =>
            this.#write(() => this.history.save({ write: (em) => this.#writeAlerts(em) }))
        );
    }

    /** The newest sample. @throws NO_SAMPLE 50350 */
    get sample(): Sample {
        return this.taken.sample;
    }

    /** The newest sample with the counters that it was calculated from. @throws NO_SAMPLE 50350 */
    get taken(): TakenSample {
        if (this.#taken === null) {
            throw fail.NO_SAMPLE();
        }
        return this.#taken;
    }

    /** The state of the monitor itself. */
    status(): MonitorStatus {
        return {
            sampledAt: this.#sampledAt,
            tookMs: this.#taken?.tookMs ?? null,
            samples: this.#samples,
            writeError: this.#writeError,
            series: this.history.series.size,
            refused: this.history.series.refused.size
        };
    }

    /** Milliseconds since the newest sample, by the clock that does not jump; null before the first. */
    get silentMs(): number | null {
        return this.#taken === null ? null : this.#machine.monotonic() - this.#taken.reading.monotonic;
    }

    /** Milliseconds since 1970. */
    now(): number {
        return this.#machine.now();
    }

    /** Lists the instances for which a metric has a history, sorted. */
    instances(metric: string): string[] {
        return this.history.series
            .names()
            .filter((name) => name.startsWith(`${metric}:`))
            .map((name) => name.slice(metric.length + 1))
            .sort();
    }

    async #run(): Promise<void> {
        while (!this.#end.signal.aborted) {
            const interval = this.#ctx.settings.intervalSeconds * 1000;
            this.#pause = new AbortController();
            // Calculated anew each time: a clock that jumps shifts one sample, not all that follow.
            const due = interval - ((this.#machine.now() - offsetMs) % interval);
            const ended = await this.#machine
                .wait(due < earlyMs ? due + interval : due, this.#pause.signal)
                .then(
                    () => true,
                    () => false
                );
            if (ended && !this.#end.signal.aborted) {
                await this.#mutex
                    .run(() => this.#sample())
                    .catch((error: unknown) =>
                        this.#ctx.log.error('A sample failed', { error: String(error) })
                    );
            }
        }
    }

    async #sample(): Promise<void> {
        const { settings } = this.#ctx;
        const taken = await this.#sampler.take(settings, this.#extras());
        const at = taken.reading.at;
        this.#taken = taken;
        this.#sampledAt = at;
        this.#samples += 1;
        const values = readValues(taken.sample);
        const monotonic = taken.reading.monotonic;
        const { fired, ended } = this.#evaluator.evaluate({
            at,
            elapsed: this.#evaluated === null ? null : monotonic - this.#evaluated,
            interval: settings.intervalSeconds * 1000,
            values
        });
        this.#evaluated = monotonic;
        await this.#write(async () => {
            await this.history.record(
                at,
                new Map(
                    [...values].flatMap(([metric, instances]) =>
                        [...instances].map(
                            ([instance, value]) => [nameSeries(metric, instance), value] as const
                        )
                    )
                )
            );
            const seen = monotonic - this.#seenWritten >= seenMs;
            await this.history.save({
                seen,
                ...(this.#evaluator.dirty ? { write: (em) => this.#writeAlerts(em) } : {})
            });
            this.#seenWritten = seen ? monotonic : this.#seenWritten;
        });
        this.feed.publish('sample', taken.sample);
        this.#listener(taken.sample);
        [...fired, ...ended].forEach((row) => this.feed.publish('alert', toAlertView(row)));
        await this.#notifier.run();
        this.actions.begin((id) => this.#evaluator.rule(id));
    }

    async #writeAlerts(em: EntityManager): Promise<void> {
        this.#confirmAlerts = await this.#evaluator.write(em);
    }

    /** Writes; a failure is remembered and logged, and sampling goes on. */
    async #write(work: () => Promise<void>): Promise<void> {
        try {
            await work();
            this.#confirmAlerts();
            this.#writeError = null;
        } catch (error) {
            const reason = messageOf(error);
            if (this.#writeError !== reason) {
                this.#ctx.log.error('History could not be written', { error: reason });
            }
            this.#writeError = reason;
        } finally {
            this.#confirmAlerts = () => undefined;
        }
    }
}
