/** Latencies are counted in classes, so that they can be added up over time and hosts. */

/** Upper bounds of the classes in milliseconds; a last class is above them. */
export const latencyBounds = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000
] as const;

/** The class of a latency in milliseconds: an index from 0 to the number of bounds. */
export function latencyClass(ms: number): number {
    const index = latencyBounds.findIndex((bound) => ms <= bound);
    return index < 0 ? latencyBounds.length : index;
}

/**
 * Estimates the latency that a part of the requests did not exceed, on the line between the bounds of its class.
 *
 * @param counts - requests by class
 * @param part - 0 to 1
 * @returns milliseconds; the last bound stands for everything above it. Null without requests
 */
export function percentile(counts: readonly number[], part: number): number | null {
    const total = counts.reduce((sum, count) => sum + count, 0);
    let before = 0;
    for (const [index, count] of counts.entries()) {
        if (count > 0 && before + count >= total * part) {
            const low = latencyBounds[index - 1] ?? 0;
            const high = latencyBounds[index] ?? low;
            return Math.round((low + ((high - low) * (total * part - before)) / count) * 10) / 10;
        }
        before += count;
    }
    return null;
}
