/** Requests, statuses and latencies of the hosts, counted from the engine's access log. */
import { setTimeout as wait } from 'node:timers/promises';

import { Mutex } from '@portico/sdk';

import type { Requests } from '../logs/requests.ts';
import type { Ctx } from '../settings.ts';
import { Counts } from './counts.ts';
import { minuteMs, type Row, type Span, TrafficRows } from './rows.ts';
import { TopCounts, type TopQuestion, type TopValue } from './top.ts';

/** After the log could not be read, for example without the capability, it is tried again so much later. */
const retryMs = 60_000;
/** While nothing can be written, so many rows wait; further minutes are not counted. */
const mostWaiting = 20_000;

/** Counts from start to stop. No record is counted twice, also after a crash; those of the millisecond of a crash may be missing. */
export class Traffic {
    readonly #ctx: Ctx;
    readonly #requests: Requests;
    readonly #rows: TrafficRows;
    readonly #top = new TopCounts();
    readonly #end = new AbortController();
    readonly #writes = new Mutex();
    #waiting = new Map<string, Row>();
    #readUntil: number | null = null;
    #loop: Promise<void> = Promise.resolve();

    /** @param requests - gets each request, also one that is not counted */
    constructor(ctx: Ctx, requests: Requests) {
        this.#ctx = ctx;
        this.#requests = requests;
        this.#rows = new TrafficRows(ctx.db);
    }

    /** Begins to read where the generation before ended. */
    async start(): Promise<void> {
        this.#readUntil = await this.#rows.readUntil();
        await this.#top.load(this.#ctx.db);
        this.#loop = this.#run();
    }

    /** Resolves when everything that was read is written. */
    async stop(): Promise<void> {
        this.#end.abort();
        await this.#loop;
        await this.save().catch((error: unknown) => this.#warn(error));
    }

    /** Writes what was counted. What cannot be written waits for the next time. @throws STORAGE_FULL 50700 */
    async save(): Promise<void> {
        await this.#writes.run(async () => {
            const [rows, readUntil] = [this.#waiting, this.#readUntil];
            if (rows.size === 0 || readUntil === null) {
                return;
            }
            this.#waiting = new Map();
            try {
                await this.#rows.add([...rows.values()], readUntil, (em) => this.#top.write(em));
                this.#top.confirm(true);
            } catch (error) {
                this.#top.confirm(false);
                for (const [key, row] of this.#waiting) {
                    const before = rows.get(key);
                    rows.set(key, before === undefined ? row : sumOf(before, row));
                }
                this.#waiting = rows;
                throw error;
            }
        });
    }

    /** The counts by step and host, oldest first, with everything that was read by now. */
    async find(span: Span, most: number): Promise<readonly Row[]> {
        await this.save().catch((error: unknown) => this.#warn(error));
        return this.#rows.find(span, most);
    }

    /** The most frequent values of the requests, with everything that was read by now. */
    async top(asked: TopQuestion, most: number): Promise<readonly TopValue[]> {
        return this.#top.find(this.#ctx.db, asked, most);
    }

    /** Forgets what is older than it is kept. */
    async prune(now: number): Promise<void> {
        await this.#rows.prune(now, this.#ctx.settings.trafficDays);
    }

    async #run(): Promise<void> {
        const { signal } = this.#end;
        while (!signal.aborted) {
            await this.#read(signal).catch((error: unknown) => {
                if (!signal.aborted) {
                    this.#warn(error);
                }
            });
            await wait(retryMs, undefined, { signal, ref: false }).catch(() => undefined);
        }
    }

    async #read(signal: AbortSignal): Promise<void> {
        const from = this.#readUntil === null ? null : new Date(this.#readUntil);
        const readBefore = this.#readUntil ?? Number.NEGATIVE_INFINITY;
        for await (const record of this.#ctx.accessLog({ from, signal })) {
            this.#requests.add(record);
            const time = record.at.getTime();
            if (this.#ctx.settings.trafficDays === 0 || time <= readBefore) {
                continue;
            }
            this.#readUntil = Math.max(time, this.#readUntil ?? 0);
            const at = Math.floor(time / minuteMs) * minuteMs;
            const key = `${at} ${record.hostId}`;
            let row = this.#waiting.get(key);
            if (row === undefined && this.#waiting.size < mostWaiting) {
                row = { at, hostId: record.hostId, counts: new Counts() };
                this.#waiting.set(key, row);
            }
            row?.counts.add(record);
            this.#top.add(record, this.#ctx.settings.trafficAddresses);
        }
    }

    #warn(error: unknown): void {
        this.#ctx.log.warn('The traffic of the hosts could not be read or written', { error });
    }
}

function sumOf(row: Row, more: Row): Row {
    const values = row.counts.values.map((value, column) => value + (more.counts.values[column] ?? 0));
    return { ...row, counts: new Counts(values) };
}
