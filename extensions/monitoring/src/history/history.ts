/**
 * The history of all series in constant space. Every sample is added to the open bucket of each tier, and a bucket is written when the clock leaves it.
 * After a crash, open buckets of the coarser tiers are added up again from the rows of the finer ones.
 */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { type Aggregate, Bucket, merge, pick, single } from './bucket.ts';
import { HistoryRows } from './rows.ts';
import { SeriesTable } from './series.ts';
import { chooseTiers, type HistoryQuery, type Plan, planQuery, type Tier } from './tiers.ts';

/** One step of a series; values are null when nothing was measured. */
export interface Point {
    readonly at: string;
    readonly min: number | null;
    readonly avg: number | null;
    readonly max: number | null;
}

interface Limits {
    readonly retentionDays: number;
    readonly maxSeries: number;
}

/** Largest number of closed buckets that wait to be written. */
const mostUnsaved = 2_000;
const dayMs = 86_400_000;

/** Records samples, writes them, and answers queries. */
export class History {
    readonly series: SeriesTable;
    readonly #db: Db;
    readonly #rows: HistoryRows;
    #limits: Limits;
    #tiers: readonly Tier[];
    #open: (Bucket | null)[];
    /** Begin of the newest closed bucket, by tier: a bucket that begins no later may have a row already. */
    #newest: number[];
    #unsaved: { readonly tier: number; readonly bucket: Bucket }[] = [];

    constructor(db: Db, limits: Limits) {
        this.#db = db;
        this.#rows = new HistoryRows(db);
        this.series = new SeriesTable(db);
        this.#limits = limits;
        this.#tiers = chooseTiers(limits.retentionDays);
        this.#open = this.#tiers.map(() => null);
        this.#newest = this.#tiers.map(() => Infinity);
    }

    /** Loads what an earlier generation left, and adds up buckets that it did not write. */
    async load(now: number): Promise<void> {
        await this.series.load();
        await this.#rows.resize(this.#tiers, now);
        for (const tier of this.#tiers.keys()) {
            const current = this.#begin(tier, now);
            if (tier === 0) {
                this.#open[0] = await this.#rows.find(this.#tiers, 0, current);
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
            // The plugin also starts when the disk is full: the write is tried again with the next sample.
            await this.save().catch(() => undefined);
        }
    }

    /** Takes up other limits. */
    async resize(limits: Limits, now: number): Promise<void> {
        this.#limits = limits;
        const tiers = chooseTiers(limits.retentionDays);
        if (tiers.some(({ slots }, tier) => slots !== this.#slots(tier))) {
            await this.save();
            await this.#rows.resize(tiers, now);
            this.#tiers = tiers;
        }
    }

    /** Adds the values of one sample. Closed buckets wait for {@link History.save}. */
    async record(at: number, values: ReadonlyMap<string, number>): Promise<void> {
        const entries = [...values].flatMap(([name, value]) => {
            const id = this.series.touch(name, at, this.#limits.maxSeries);
            return id === null ? [] : [[id, value] as const];
        });
        for (const tier of this.#tiers.keys()) {
            const bucket = await this.#openBucket(tier, this.#begin(tier, at));
            entries.forEach(([id, value]) => bucket.add(id, single(value)));
        }
    }

    /**
     * Writes closed buckets. A bucket that could not be written is kept for the next time.
     *
     * @param more - `write`: work of the same transaction; `seen`: save also when each series last had a value
     * @throws STORAGE_FULL 50700
     */
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

    /** Writes the finest open bucket too, so that the next generation goes on from its row. */
    async flush(): Promise<void> {
        const [open] = this.#open;
        if (open !== null && open !== undefined) {
            this.#unsaved.push({ tier: 0, bucket: open });
        }
        await this.save({ seen: true });
    }

    /** Forgets series without a value for as long as history is kept. */
    expire(now: number): void {
        this.series.expire(now - this.#limits.retentionDays * dayMs);
    }

    /** Chooses tier and step for a query. */
    plan(query: HistoryQuery): Plan {
        return planQuery(this.#tiers, query);
    }

    /** Reads one point for each step of the plan, in order; a gap is a point without values. */
    async points(name: string, plan: Plan): Promise<Point[]> {
        const { step, from, to } = plan;
        const id = this.series.id(name);
        const found = id === null ? new Map<number, Aggregate>() : await this.#collect(id, plan);
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

    /** Adds up a series by steps of the plan. */
    async #collect(id: number, { tier, step, from, to }: Plan): Promise<Map<number, Aggregate>> {
        const found = new Map<number, Aggregate>();
        const seen = new Set<number>();
        const add = (at: number, aggregate: Aggregate | null | undefined): void => {
            if (aggregate !== null && aggregate !== undefined && at >= from && at < to) {
                const slot = Math.floor(at / step) * step;
                const known = found.get(slot);
                found.set(slot, known === undefined ? aggregate : merge(known, aggregate));
            }
        };
        const unsaved = this.#unsaved.filter((each) => each.tier === tier).map(({ bucket }) => bucket);
        // A bucket in memory is newer than its row, and a later one than an earlier one of the same time.
        for (const bucket of [this.#open[tier], ...unsaved.reverse()]) {
            if (bucket !== null && bucket !== undefined && !seen.has(bucket.at)) {
                seen.add(bucket.at);
                add(bucket.at, bucket.entries.get(id));
            }
        }
        await this.#rows.forEach(this.#tiers, tier, { from, to }, (at, data) => {
            if (!seen.has(at)) {
                add(at, pick(data, id));
            }
        });
        return found;
    }

    /** Opens the bucket of a tier that begins at `at`, and closes the one before. After a clock was set back, it goes on with the row of that time. */
    async #openBucket(tier: number, at: number): Promise<Bucket> {
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
              (await this.#rows.find(this.#tiers, tier, at)))
            : null;
        const bucket = new Bucket(at);
        if (known !== null) {
            bucket.merge(known);
        }
        this.#open[tier] = bucket;
        return bucket;
    }

    /** Adds up the buckets of a tier from the rows of the next finer tier. */
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
        await this.#rows.forEach(this.#tiers, tier - 1, span, (at, data) => {
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
