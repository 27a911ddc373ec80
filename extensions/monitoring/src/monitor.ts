/** The continuous work: a sample each interval becomes history, moves the rules and goes to whoever listens. */
import type { Notification } from '@portico/sdk';

import { AlertJournal } from './alerts/journal.ts';
import { Rules } from './alerts/rules.ts';
import { alertView } from './alerts/schema.ts';
import { Watch } from './alerts/evaluator.ts';
import { nameOf, valuesOf } from './metrics.ts';
import { failures } from './errors.ts';
import { Feed } from './event-feed.ts';
import { History } from './history/history.ts';
import type { Sample } from './sampling/sample.ts';
import { Sampler, type Taken } from './sampling/sampler.ts';
import type { Ctx } from './settings.ts';
import type { Machine } from './sampling/sources/machine.ts';
import type { AlertRow } from './entities.ts';

/** After the full step of the clock, so that a timer that is a little early does not measure the step before twice. */
const offsetMs = 100;
/** Two samples closer together would measure noise. */
const earlyMs = 500;
/** How often it is written when each series was seen last. */
const seenMs = 3_600_000;

/** How the monitor itself is. */
export interface Vitals {
    /** Milliseconds since 1970; null before the first. */
    readonly sampledAt: number | null;
    readonly tookMs: number | null;
    readonly samples: number;
    /** Why history was not written; null when it was. */
    readonly unwritten: string | null;
    readonly series: number;
    /** Series that there was no room for. */
    readonly refused: number;
}

export class Monitor {
    readonly feed = new Feed();
    readonly history: History;
    readonly journal: AlertJournal;
    readonly rules: Rules;
    readonly #ctx: Ctx;
    readonly #machine: Machine;
    readonly #sampler: Sampler;
    readonly #watch: Watch;
    #taken: Taken | null = null;
    #sampledAt: number | null = null;
    #samples = 0;
    #unwritten: string | null = null;
    #seenWritten = 0;
    #evaluated: number | null = null;
    #turn: Promise<unknown> = Promise.resolve();
    #loop: Promise<void> = Promise.resolve();
    #pause = new AbortController();
    readonly #end = new AbortController();
    /** Called when the alerts of a transaction are durable. */
    #settleAlerts: () => void = () => undefined;

    constructor(ctx: Ctx, machine: Machine) {
        this.#ctx = ctx;
        this.#machine = machine;
        this.#sampler = new Sampler(machine);
        this.history = new History(ctx.db, ctx.settings);
        this.journal = new AlertJournal(ctx.db);
        this.#watch = new Watch(ctx.db, this.journal);
        this.rules = new Rules(ctx.db, this.#watch, () => machine.now());
    }

    /** Resolves with the first sample taken. */
    async start(): Promise<void> {
        const now = this.#machine.now();
        await this.history.load(now);
        await this.#watch.load(now);
        await this.#inTurn(() => this.#sample());
        await this.prune();
        this.#loop = this.#run();
    }

    /** Resolves when nothing is under way any more and all that is known is written. */
    async stop(): Promise<void> {
        this.#end.abort();
        this.#pause.abort();
        await this.#loop;
        await this.#inTurn(async () => {
            this.#watch.settle();
            await this.#write(() => this.history.flush());
            await this.#write(() => this.history.save({ write: (em) => this.#writeAlerts(em) }));
        });
    }

    /** Settings have changed: the next sample comes by the new interval. */
    async refit(): Promise<void> {
        await this.#inTurn(() =>
            this.#write(() => this.history.resize(this.#ctx.settings, this.#machine.now()))
        );
        this.#pause.abort();
    }

    /** At a start and now and then: what is too old goes. */
    async prune(): Promise<void> {
        await this.#inTurn(() =>
            this.#write(async () => {
                this.history.expire(this.#machine.now());
                await this.history.save({
                    write: (em) => this.journal.prune(em, this.#ctx.settings.alertsKept)
                });
            })
        );
    }

    /** The newest sample. @throws NO_SAMPLE 50350 */
    get sample(): Sample {
        return this.taken.sample;
    }

    /** The newest sample with the counters that it was made of. @throws NO_SAMPLE 50350 */
    get taken(): Taken {
        if (this.#taken === null) {
            throw failures.NO_SAMPLE();
        }
        return this.#taken;
    }

    vitals(): Vitals {
        return {
            sampledAt: this.#sampledAt,
            tookMs: this.#taken?.tookMs ?? null,
            samples: this.#samples,
            unwritten: this.#unwritten,
            series: this.history.series.size,
            refused: this.history.series.refused.size
        };
    }

    /** Since the newest sample, by the clock that does not jump; null before the first. */
    get silentMs(): number | null {
        return this.#taken === null ? null : this.#machine.monotonic() - this.#taken.reading.monotonic;
    }

    now(): number {
        return this.#machine.now();
    }

    /** Names of the instances that a metric has a history of. */
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
            // Counted anew each time: a clock that jumps shifts one sample, not all that follow. A timer that was early is not followed by its own time.
            const due = interval - ((this.#machine.now() - offsetMs) % interval);
            const ended = await this.#machine
                .wait(due < earlyMs ? due + interval : due, this.#pause.signal)
                .then(
                    () => true,
                    () => false
                );
            if (ended && !this.#end.signal.aborted) {
                await this.#inTurn(() => this.#sample()).catch((error: unknown) =>
                    this.#ctx.log.error('A sample failed', { error: String(error) })
                );
            }
        }
    }

    async #sample(): Promise<void> {
        const { settings } = this.#ctx;
        const taken = await this.#sampler.take(settings);
        const at = taken.reading.at;
        this.#taken = taken;
        this.#sampledAt = at;
        this.#samples += 1;
        const values = valuesOf(taken.sample);
        const monotonic = taken.reading.monotonic;
        const { fired, ended } = this.#watch.evaluate({
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
                        [...instances].map(([instance, value]) => [nameOf(metric, instance), value] as const)
                    )
                )
            );
            const seen = monotonic - this.#seenWritten >= seenMs;
            await this.history.save({
                seen,
                ...(this.#watch.dirty ? { write: (em) => this.#writeAlerts(em) } : {})
            });
            this.#seenWritten = seen ? monotonic : this.#seenWritten;
        });
        this.feed.publish('sample', taken.sample);
        [...fired, ...ended].forEach((row) => this.feed.publish('alert', alertView(row)));
        await this.#tell();
    }

    /** People are told also when nothing can be written: a full disk is what they must hear of. Told twice after a crash is better than never. */
    async #tell(): Promise<void> {
        for (const row of this.journal.untold()) {
            const over = row.endedAt !== null;
            try {
                await this.#ctx.notify(noticeOf(row));
                this.journal.told(row, over ? 2 : 1);
            } catch (error) {
                this.#ctx.log.warn(
                    'Nobody could be told of an alert; it is tried again with the next sample',
                    { alert: row.id, error: String(error) }
                );
            }
        }
    }

    async #writeAlerts(em: Parameters<Watch['write']>[0]): Promise<void> {
        this.#settleAlerts = await this.#watch.write(em);
    }

    /** A write that may fail without an end of the work. */
    async #write(work: () => Promise<void>): Promise<void> {
        try {
            await work();
            this.#settleAlerts();
            this.#settleAlerts = () => undefined;
            this.#unwritten = null;
        } catch (error) {
            const why = error instanceof Error ? error.message : String(error);
            this.#settleAlerts = () => undefined;
            if (this.#unwritten !== why) {
                this.#ctx.log.error('History could not be written', { error: why });
            }
            this.#unwritten = why;
        }
    }

    /** One after the other: samples, settings, the end. */
    #inTurn<T>(work: () => Promise<T>): Promise<T> {
        const run = this.#turn.then(work);
        this.#turn = run.catch(() => undefined);
        return run;
    }
}

function noticeOf({
    name,
    metric,
    instance,
    severity,
    operator,
    threshold,
    value,
    last,
    endedAt,
    endedBy,
    firedAt
}: AlertRow): Notification {
    const what = plain(nameOf(metric, instance));
    const title = plain(instance === '' ? name : `${name}: ${instance}`);
    if (endedAt === null || endedAt === undefined) {
        return {
            event: 'alert-fired',
            severity: severity === 'critical' ? 'error' : severity === 'warning' ? 'warning' : 'info',
            title,
            text: `${what} is ${rounded(value)} (${operator} ${threshold}) since ${new Date(firedAt).toISOString()}`
        };
    }
    const minutes = Math.round((endedAt - firedAt) / 60_000);
    return {
        event: 'alert-ended',
        severity: 'info',
        title: `Over: ${title}`,
        text:
            endedBy === 'gone'
                ? `${what} has not been measured for an hour`
                : `${what} is ${rounded(last)}, after ${minutes} min`
    };
}

/** Mount points may hold any character; what is sent to people is one line. */
function plain(text: string): string {
    return text.replace(/\p{Cc}+/gu, ' ');
}

function rounded(value: number): string {
    return String(Math.round(value * 100) / 100);
}
