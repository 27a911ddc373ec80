/** History in the plugin's database: one row for each slot, with all series in it, so that a sample costs one small write. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { Bucket } from './bucket.ts';
import type { Tier } from './tiers.ts';

/** Ids of the slots of a tier begin at this number times the tier. */
const tierIds = 1_000_000;
/** Rows read at once, few enough that other readers do not wait long. */
const batch = 500;

interface Row {
    readonly at: number;
    readonly data: Uint8Array;
}

/** A bucket with the tier that it belongs to. */
export interface TierBucket {
    readonly tier: number;
    readonly bucket: Bucket;
}

/** Reads and writes the rows of the table `history`. */
export class HistoryRows {
    readonly #db: Db;

    constructor(db: Db) {
        this.#db = db;
    }

    /** Writes buckets, and replaces what their slots held. */
    async write(em: EntityManager, tiers: readonly Tier[], closed: readonly TierBucket[]): Promise<void> {
        for (const { tier, bucket } of closed) {
            await em.execute(
                'insert into history (id, at, data) values (?, ?, ?) on conflict (id) do update set at = excluded.at, data = excluded.data',
                [slotId(tiers, tier, bucket.at), bucket.at, Buffer.from(bucket.encode())],
                'run'
            );
        }
    }

    /** Reads the bucket of a tier that begins at `at`; null when it was not written. */
    async find(tiers: readonly Tier[], tier: number, at: number): Promise<Bucket | null> {
        const [row] = await this.#db.read((em) =>
            em.execute<Row[]>('select at, data from history where id = ? and at = ?', [
                slotId(tiers, tier, at),
                at
            ])
        );
        return row === undefined ? null : Bucket.decode(row.at, row.data);
    }

    /** Begin of the newest bucket of a tier that does not lie in the future; null when there is none. */
    async newest(tier: number, now: number): Promise<number | null> {
        const [row] = await this.#db.read((em) =>
            em.execute<{ at: number | null }[]>(
                'select max(at) as at from history where id >= ? and id < ? and at <= ?',
                [tier * tierIds, (tier + 1) * tierIds, now]
            )
        );
        return row?.at ?? null;
    }

    /** Calls `row` for each row of a tier that begins in a span, in no order. */
    async forEach(
        tiers: readonly Tier[],
        tier: number,
        span: { readonly from: number; readonly to: number },
        row: (at: number, data: Uint8Array) => void
    ): Promise<void> {
        for (const [first, last] of slotRanges(tiers, tier, span)) {
            for (let id = first; id <= last; id += batch) {
                const rows = await this.#db.read((em) =>
                    em.execute<Row[]>(
                        'select at, data from history where id between ? and ? and at >= ? and at < ?',
                        [id, Math.min(last, id + batch - 1), span.from, span.to]
                    )
                );
                rows.forEach(({ at, data }) => row(at, data));
                // The driver is synchronous: give other work a turn.
                await new Promise((resolve) => {
                    setImmediate(resolve);
                });
            }
        }
    }

    /** Moves the rows of tiers whose number of slots has changed to their new slots, and deletes those that no slot is left for. */
    async resize(tiers: readonly Tier[], now: number): Promise<void> {
        const known = new Map(
            (
                await this.#db.read((em) =>
                    em.execute<{ tier: number; slots: number }[]>('select tier, slots from tiers')
                )
            ).map(({ tier, slots }) => [tier, slots])
        );
        if (tiers.every(({ slots }, tier) => known.get(tier) === slots)) {
            return;
        }
        await this.#db.write(async (em) => {
            for (const [tier, { slots }] of tiers.entries()) {
                if (known.get(tier) !== slots) {
                    await this.#move(em, tiers, tier, now);
                    await em.execute(
                        'insert into tiers (tier, slots) values (?, ?) on conflict (tier) do update set slots = excluded.slots',
                        [tier, slots],
                        'run'
                    );
                }
            }
        });
    }

    async #move(em: EntityManager, tiers: readonly Tier[], tier: number, now: number): Promise<void> {
        const { step, slots } = tiers[tier] as Tier;
        const ids = [tier * tierIds, (tier + 1) * tierIds];
        const rows = await em.execute<Row[]>(
            'select at, data from history where id >= ? and id < ? and at > ? order by at',
            [...ids, now - step * slots]
        );
        await em.execute('delete from history where id >= ? and id < ?', ids, 'run');
        await this.write(
            em,
            tiers,
            rows.map(({ at, data }) => ({ tier, bucket: Bucket.decode(at, data) }))
        );
    }
}

function slotId(tiers: readonly Tier[], tier: number, at: number): number {
    const { step, slots } = tiers[tier] as Tier;
    return tier * tierIds + (((Math.floor(at / step) % slots) + slots) % slots);
}

/** The ids of the slots of a span: one range, or two when the span goes past the last slot and begins again at the first. */
function slotRanges(
    tiers: readonly Tier[],
    tier: number,
    { from, to }: { readonly from: number; readonly to: number }
): readonly (readonly [first: number, last: number])[] {
    const { step, slots } = tiers[tier] as Tier;
    const start = tier * tierIds;
    if (to <= from) {
        return [];
    }
    if (to - from >= step * (slots - 1)) {
        return [[start, start + slots - 1]];
    }
    const [first, last] = [slotId(tiers, tier, from), slotId(tiers, tier, to - 1)];
    return first <= last
        ? [[first, last]]
        : [
              [first, start + slots - 1],
              [start, last]
          ];
}
