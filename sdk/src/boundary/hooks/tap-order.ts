/** The order of taps, decided here and handed to tapable as plain positions: tapable's own `before` puts an unknown name in front of everything. */
import type { TapOrder } from '../../hooks.ts';

/** What the order of a tap depends on. */
export interface Ordered {
    readonly plugin: string;
    readonly order: TapOrder;
}

/** Sorts by stage, then by what `before` and `after` ask for, then by registration. A wish that would close a circle is left out. */
export function sortTaps<T extends Ordered>(taps: readonly T[]): T[] {
    const byStage = taps
        .map((tap, index) => ({ tap, index }))
        .sort((a, b) => (a.tap.order.stage ?? 0) - (b.tap.order.stage ?? 0) || a.index - b.index);
    const sorted: T[] = [];
    const placed = new Set<T>();
    const place = (tap: T, path: ReadonlySet<T>): void => {
        if (placed.has(tap) || path.has(tap)) {
            return;
        }
        const inside = new Set(path).add(tap);
        for (const { tap: other } of byStage) {
            if (
                other !== tap &&
                other.plugin !== tap.plugin &&
                (wants(tap.order.after, other) || wants(other.order.before, tap))
            ) {
                place(other, inside);
            }
        }
        placed.add(tap);
        sorted.push(tap);
    };
    for (const { tap } of byStage) {
        place(tap, new Set());
    }
    return sorted;
}

function wants(names: readonly string[] | undefined, tap: Ordered): boolean {
    return names?.includes(tap.plugin) === true;
}
