/** History in the plugin's database: one row for each slot, with all series in it, so that a sample costs one small write. */
import type { Db } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { Bucket } from './bucket.ts';
import type { Tier } from './tiers.ts';

/** Slots of a tier have ids of their own range. */
const tierIds = 1_000_000;
/** Rows read at once: nobody waits long behind it. */
const batch = 500;

interface Row {
    readonly at: number;
    readonly data: Uint8Array;
}

/** A bucket with the tier that it belongs to. */
export interface Closed {
    readonly tier: number;
    readonly bucket: Bucket;
}

export class Rows {
    readonly #db: Db;

    constructor(db: Db) {
        this.#db = db;
    }

    /** Writes buckets over whatever lay in their slots. */
    async write(em: EntityManager, tiers: readonly Tier[], closed: readonly Closed[]): Promise<void> {
        for (const { tier, bucket } of closed) {
            await em.execute(
                'insert into history (id, at, data) values (?, ?, ?) on conflict (id) do update set at = excluded.at, data = excluded.data',
                [idOf(tiers, tier, bucket.at), bucket.at, Buffer.from(bucket.encode())],
                'run'
            );
        }
    }

    /** The bucket that begins there, as far as it was written. */
    async one(tiers: readonly Tier[], tier: number, at: number): Promise<Bucket | null> {
        const [row] = await this.#db.read((em) =>
            em.execute<Row[]>('select at, data from history where id = ? and at = ?', [
                idOf(tiers, tier, at),
                at
            ])
        );
        return row === undefined ? null : Bucket.decode(row.at, row.data);
    }

    /** When the newest bucket of a tier begins that is not of the future; null when there is none. */
    async newest(tier: number, now: number): Promise<number | null> {
        const [row] = await this.#db.read((em) =>
            em.execute<{ at: number | null }[]>(
                'select max(at) as at from history where id >= ? and id < ? and at <= ?',
                [tier * tierIds, (tier + 1) * tierIds, now]
            )
        );
        return row?.at ?? null;
    }

    /** Hands over every row of a tier that begins in a span, in no order. */
    async each(
        tiers: readonly Tier[],
        tier: number,
        span: { readonly from: number; readonly to: number },
        row: (at: number, data: Uint8Array) => void
    ): Promise<void> {
        for (const [first, last] of idsOf(tiers, tier, span)) {
            for (let id = first; id <= last; id += batch) {
                const rows = await this.#db.read((em) =>
                    em.execute<Row[]>(
                        'select at, data from history where id between ? and ? and at >= ? and at < ?',
                        [id, Math.min(last, id + batch - 1), span.from, span.to]
                    )
                );
                rows.forEach(({ at, data }) => row(at, data));
                // The driver answers without letting others run.
                await new Promise((resolve) => {
                    setImmediate(resolve);
                });
            }
        }
    }

    /** Puts the rows of tiers whose number of slots has changed where they belong now, and drops those that no slot is left for. */
    async fit(tiers: readonly Tier[], now: number): Promise<void> {
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

function idOf(tiers: readonly Tier[], tier: number, at: number): number {
    const { step, slots } = tiers[tier] as Tier;
    return tier * tierIds + (((Math.floor(at / step) % slots) + slots) % slots);
}

/** One range of ids, or two where the round begins anew in between. */
function idsOf(
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
    const [first, last] = [idOf(tiers, tier, from), idOf(tiers, tier, to - 1)];
    return first <= last
        ? [[first, last]]
        : [
              [first, start + slots - 1],
              [start, last]
          ];
}
