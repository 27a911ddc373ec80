/** How intervals that overlap and end at different times lie in a set of the kernel, where elements may not overlap. */
import type { Interval } from './interval.ts';

/** A part of a kernel's set. */
export interface Piece<O = unknown> extends Interval {
    /** Milliseconds since 1970; null: it stays. */
    readonly until: number | null;
    /** The interval that it comes from: the one that lasts longest. */
    readonly owner: O;
}

const lasting = (until: number | null): number => until ?? Infinity;

/** Cuts intervals of one family into pieces that do not overlap; each lasts as long as the longest interval above it. */
export function layOut<O>(all: readonly Piece<O>[]): Piece<O>[] {
    const starting = [...all].sort((one, other) =>
        one.from < other.from ? -1 : one.from > other.from ? 1 : 0
    );
    const pieces: Piece<O>[] = [];
    let active: Piece<O>[] = [];
    let next = 0;
    let at = 0n;
    while (next < starting.length || active.length > 0) {
        if (active.length === 0) {
            at = (starting[next] as Piece<O>).from;
        }
        for (let each = starting[next]; each !== undefined && each.from <= at; each = starting[(next += 1)]) {
            active.push(each);
        }
        active = active.filter(({ to }) => to >= at);
        const best = active.reduce<Piece<O> | null>(
            (found, each) => (found === null || lasting(each.until) > lasting(found.until) ? each : found),
            null
        );
        if (best === null) {
            continue;
        }
        // Up to where a longer interval begins, or the best one ends.
        const interruption = starting[next]?.from;
        const to = interruption !== undefined && interruption <= best.to ? interruption - 1n : best.to;
        append(pieces, { ...best, from: at, to });
        at = to + 1n;
    }
    return pieces;
}

/** Appends a piece, and joins it with the one before where both belong to the same interval. */
function append<O>(pieces: Piece<O>[], piece: Piece<O>): void {
    const last = pieces.at(-1);
    if (last !== undefined && last.owner === piece.owner && last.to + 1n === piece.from) {
        pieces[pieces.length - 1] = { ...last, to: piece.to };
    } else {
        pieces.push(piece);
    }
}
