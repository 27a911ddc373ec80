/**
 * The history of all series in constant space. Every sample is added to one open bucket for each tier; a bucket is written when the clock
 * leaves it. What a crash loses of the coarser ones is added up again from the finer ones.
 */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { type Aggregate, Bucket, merge, pick, single } from './bucket.ts';
import { Rows } from './rows.ts';
import { SeriesTable } from './series.ts';
import { type Plan, planOf, type Tier, tiersOf } from './tiers.ts';

/** A span of a series; without a value, nothing was measured. */
export interface Point {
    readonly at: string;
    readonly min: number | null;
    readonly avg: number | null;
    readonly max: number | null;
}

export interface HistoryAsked {
    readonly from: number;
    readonly to: number;
    /** Milliseconds; null: what suits the span. */
    readonly step: number | null;
    readonly now: number;
    /** Milliseconds between samples. */
    readonly interval: number;
}

interface Bounds {
    readonly retentionDays: number;
    readonly maxSeries: number;
}

/** Buckets that wait for the disk to take them. */
const mostUnsaved = 2_000;
const dayMs = 86_400_000;

export class History {
    readonly series: SeriesTable;
    readonly #db: Db;
    readonly #rows: Rows;
    #bounds: Bounds;
    #tiers: readonly Tier[];
    #open: (Bucket | null)[];
    /** Begin of the newest bucket that was ever closed, by tier: before it, a row may be there already. */
    #newest: number[];
    #unsaved: { readonly tier: number; readonly bucket: Bucket }[] = [];

    constructor(db: Db, bounds: Bounds) {
        this.#db = db;
        this.#rows = new Rows(db);
        this.series = new SeriesTable(db);
        this.#bounds = bounds;
        this.#tiers = tiersOf(bounds.retentionDays);
        this.#open = this.#tiers.map(() => null);
        this.#newest = this.#tiers.map(() => Infinity);
    }

    /** Takes up what an earlier generation left, and adds up what it could not. */
    async load(now: number): Promise<void> {
        await this.series.load();
        await this.#rows.fit(this.#tiers, now);
        for (const tier of this.#tiers.keys()) {
            const current = this.#begin(tier, now);
            if (tier === 0) {
                this.#open[0] = await this.#rows.one(this.#tiers, 0, current);
                continue;
            }
            const newest = await this.#rows.newest(tier, now);
            const buckets = await this.#addUp(tier, {
                from: newest === null ? 0 : newest + this.#step(tier),
                to: now + 1
            });
            this.#open[tier] = buckets.get(current) ?? null;
            buckets.delete(current);
            this.#unsaved.push(...[...buckets.values()].map((bucket) => ({ tier, bucket })));
            // A disk that is full is no reason not to start: what could not be written is tried again with the next sample.
            await this.save().catch(() => undefined);
        }
    }

    /** Other bounds from now on. */
    async resize(bounds: Bounds, now: number): Promise<void> {
        this.#bounds = bounds;
        const tiers = tiersOf(bounds.retentionDays);
        if (tiers.some(({ slots }, tier) => slots !== this.#slots(tier))) {
            await this.save();
            await this.#rows.fit(tiers, now);
            this.#tiers = tiers;
        }
    }

    /** Adds the values of one moment. What is to be written waits for {@link History.save}. */
    async record(at: number, values: ReadonlyMap<string, number>): Promise<void> {
        const entries = [...values].flatMap(([name, value]) => {
            const id = this.series.touch(name, at, this.#bounds.maxSeries);
            return id === null ? [] : [[id, value] as const];
        });
        for (const tier of this.#tiers.keys()) {
            const bucket = await this.#bucket(tier, this.#begin(tier, at));
            entries.forEach(([id, value]) => bucket.add(id, single(value)));
        }
    }

    /** Writes what is closed. @throws STORAGE_FULL 50700, and keeps it for the next time */
    async save(
        more: { readonly write?: (em: EntityManager) => Promise<void>; readonly seen?: boolean } = {}
    ): Promise<void> {
        const closed = this.#unsaved.slice();
        if (closed.length === 0 && more.seen !== true && more.write === undefined && !this.series.dirty) {
            return;
        }
        await this.#db.write(async (em) => {
            await this.series.write(em, more.seen === true);
            await this.#rows.write(em, this.#tiers, closed);
            await more.write?.(em);
        });
        this.series.saved();
        this.#unsaved = this.#unsaved.slice(closed.length);
    }

    /** Before an end: the finest open bucket becomes a row, from which the next generation goes on. */
    async flush(): Promise<void> {
        const [open] = this.#open;
        if (open !== null && open !== undefined) {
            this.#unsaved.push({ tier: 0, bucket: open });
        }
        await this.save({ seen: true });
    }

    /** Forgets series that have been gone for as long as history is kept. */
    expire(now: number): void {
        this.series.expire(now - this.#bounds.retentionDays * dayMs);
    }

    plan(asked: HistoryAsked): Plan {
        return planOf(this.#tiers, asked);
    }

    /** One point for each step of the plan, in order; gaps are points without values. */
    async points(name: string, { tier, step, from, to }: Plan): Promise<Point[]> {
        const id = this.series.id(name);
        const found = new Map<number, Aggregate>();
        const seen = new Set<number>();
        const put = (at: number, aggregate: Aggregate | null | undefined): void => {
            if (aggregate !== null && aggregate !== undefined && at >= from && at < to) {
                const slot = Math.floor(at / step) * step;
                const has = found.get(slot);
                found.set(slot, has === undefined ? aggregate : merge(has, aggregate));
            }
        };
        if (id !== null) {
            // What is still in memory is newer than its row.
            for (const bucket of [
                this.#open[tier],
                ...this.#unsaved
                    .filter((each) => each.tier === tier)
                    .map(({ bucket }) => bucket)
                    .reverse()
            ]) {
                if (bucket !== null && bucket !== undefined && !seen.has(bucket.at)) {
                    seen.add(bucket.at);
                    put(bucket.at, bucket.entries.get(id));
                }
            }
            await this.#rows.each(this.#tiers, tier, { from, to }, (at, data) => {
                if (!seen.has(at)) {
                    put(at, pick(data, id));
                }
            });
        }
        return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_none, index) => {
            const at = from + index * step;
            const aggregate = found.get(at);
            return {
                at: new Date(at).toISOString(),
                min: aggregate?.min ?? null,
                avg: aggregate === undefined ? null : aggregate.sum / aggregate.count,
                max: aggregate?.max ?? null
            };
        });
    }

    /** The open bucket of a tier. Leaving one closes it; a clock that was set back finds the row of that time and goes on with it. */
    async #bucket(tier: number, at: number): Promise<Bucket> {
        const open = this.#open[tier] ?? null;
        if (open?.at === at) {
            return open;
        }
        if (open !== null) {
            this.#unsaved.push({ tier, bucket: open });
            this.#unsaved = this.#unsaved.slice(-mostUnsaved);
            const newest = this.#newest[tier] ?? Infinity;
            this.#newest[tier] = newest === Infinity ? open.at : Math.max(newest, open.at);
        }
        const mayExist = at <= (this.#newest[tier] ?? Infinity);
        const known = mayExist
            ? (this.#unsaved.findLast((each) => each.tier === tier && each.bucket.at === at)?.bucket ??
              (await this.#rows.one(this.#tiers, tier, at)))
            : null;
        const bucket = new Bucket(at);
        if (known !== null) {
            bucket.merge(known);
        }
        this.#open[tier] = bucket;
        return bucket;
    }

    /** Buckets of a tier out of the rows of the next finer one. */
    async #addUp(
        tier: number,
        span: { readonly from: number; readonly to: number }
    ): Promise<Map<number, Bucket>> {
        const buckets = new Map<number, Bucket>();
        const finer = this.#open[tier - 1] ?? null;
        const put = (part: Bucket): void => {
            const at = this.#begin(tier, part.at);
            const bucket = buckets.get(at) ?? new Bucket(at);
            bucket.merge(part);
            buckets.set(at, bucket);
        };
        await this.#rows.each(this.#tiers, tier - 1, span, (at, data) => {
            if (at !== finer?.at) {
                put(Bucket.decode(at, data));
            }
        });
        if (finer !== null && finer.at >= span.from) {
            put(finer);
        }
        return buckets;
    }

    #begin(tier: number, at: number): number {
        const step = this.#step(tier);
        return Math.floor(at / step) * step;
    }

    #step(tier: number): number {
        return (this.#tiers[tier] as Tier).step;
    }

    #slots(tier: number): number {
        return (this.#tiers[tier] as Tier).slots;
    }
}
