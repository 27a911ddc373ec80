/** The report of a bench: one line for each figure, compared with its floor and its goal. */
export interface Figure {
    /** Number of the target, as in docs/measurements.md; empty for a figure without a target. */
    readonly target: string;
    readonly what: string;
    readonly value: number;
    readonly unit?: string;
    /** The smallest value that is allowed, and the one to aim at. */
    readonly least?: readonly [floor: number, goal: number];
    /** The largest value that is allowed, and the one to aim at. */
    readonly most?: readonly [floor: number, goal: number];
    /** The measurements from which the value was computed. */
    readonly of?: string;
}

export interface Report {
    add(figure: Figure): void;
    readonly failed: number;
    /** Prints how many figures passed. */
    close(): void;
}

export function createReport(): Report {
    const counts = { goal: 0, floor: 0, failed: 0 };
    return {
        get failed() {
            return counts.failed;
        },
        add({ target, what, value, unit = '×', least, most, of }) {
            const bounds = least ?? most;
            const holds = (bound: number): boolean => (least === undefined ? value <= bound : value >= bound);
            const verdict =
                bounds === undefined ? '' : holds(bounds[1]) ? 'goal' : holds(bounds[0]) ? 'floor' : 'failed';
            if (verdict !== '') {
                counts[verdict] += 1;
            }
            const sign = least === undefined ? '≤' : '≥';
            const wanted = bounds === undefined ? '' : `${sign} ${bounds[0]} (${sign} ${bounds[1]})`;
            console.log(
                `${target.padStart(4)}  ${what.padEnd(66)} ${number(value).padStart(9)} ${unit.padEnd(4)} ${wanted.padEnd(20)} ${(verdict === 'failed' ? 'FAILED' : verdict).padEnd(6)} ${of ?? ''}`.trimEnd()
            );
        },
        close() {
            console.log(
                `\n${counts.goal} reach their goal, ${counts.floor} only their floor, ${counts.failed} miss it`
            );
        }
    };
}

/** Formats a number with three significant digits. */
export function number(value: number): string {
    const size = Math.abs(value);
    return size >= 1_000
        ? Math.round(value).toString()
        : size >= 100
          ? value.toFixed(0)
          : size >= 10
            ? value.toFixed(1)
            : size >= 1
              ? value.toFixed(2)
              : value.toFixed(3);
}

export function median(values: readonly number[]): number {
    const sorted = values.toSorted((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 === 1
        ? (sorted[middle] ?? NaN)
        : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}
