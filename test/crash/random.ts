/** Random choices that are the same for the same seed. */
export interface Random {
    /** From 0 to below `below`. */
    integer(below: number): number;
    /** From `least` to `most`. */
    between(least: number, most: number): number;
    chance(share: number): boolean;
    pick<T>(list: readonly T[]): T;
    /** One of the keys, with a probability in proportion to its weight. */
    weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
}

/** The generator mulberry32, which is small and random enough for choices. */
export function createRandom(seed: number): Random {
    let state = seed >>> 0;
    const next = (): number => {
        state = (state + 0x6d2b79f5) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
    const integer = (below: number): number => Math.floor(next() * below);
    return {
        integer,
        between: (least, most) => least + integer(most - least + 1),
        chance: (share) => next() < share,
        pick(list) {
            if (list.length === 0) {
                throw new RangeError('There is nothing to pick from');
            }
            return list[integer(list.length)] as (typeof list)[number];
        },
        weighted(weights) {
            const entries = Object.entries(weights) as [keyof typeof weights, number][];
            let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
            for (const [key, weight] of entries) {
                left -= weight;
                if (left < 0) {
                    return key;
                }
            }
            return (entries[0] as (typeof entries)[number])[0];
        }
    };
}
