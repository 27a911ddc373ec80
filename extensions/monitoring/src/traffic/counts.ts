/** What is counted of the requests of one minute to one host. */
import type { AccessRecord } from '@portico/sdk';

import { latencyBounds, latencyClass } from './latency.ts';

/** Classes of a status: 0 for a visitor who left before there was an answer, then 1xx to 5xx. */
export const statusClasses = [0, 1, 2, 3, 4, 5] as const;

const statusColumns = statusClasses.map((each) => `status${each}`);
const latencyColumns = [...latencyBounds, null].map((_bound, index) => `latency${index}`);
/** The columns of the tables, in the order of {@link Counts.values}. */
export const columns: readonly string[] = [
    'requests',
    'bytes',
    'missed',
    ...statusColumns,
    ...latencyColumns
];

/** The sums of some requests. */
export class Counts {
    readonly values: number[];

    /** @param values - by column */
    constructor(values: readonly number[] = columns.map(() => 0)) {
        this.values = [...values];
    }

    /** Adds a request, and those that are missing before it. */
    add({ status, bytes, ms, dropped }: AccessRecord): void {
        const { values } = this;
        const statusClass = Math.min(Math.floor(status / 100), statusClasses.length - 1);
        const more: readonly (readonly [column: number, count: number])[] = [
            [0, 1],
            [1, bytes],
            [2, dropped],
            [3 + statusClass, 1],
            [3 + statusClasses.length + latencyClass(ms), 1]
        ];
        for (const [column, count] of more) {
            values[column] = (values[column] ?? 0) + count;
        }
    }

    get requests(): number {
        return this.values[0] ?? 0;
    }

    get bytes(): number {
        return this.values[1] ?? 0;
    }

    /** Requests that were not read. */
    get missed(): number {
        return this.values[2] ?? 0;
    }

    /** Requests by the class of their status. */
    get statuses(): readonly number[] {
        return this.values.slice(3, 3 + statusClasses.length);
    }

    /** Requests by the class of their latency. */
    get latencies(): readonly number[] {
        return this.values.slice(3 + statusClasses.length);
    }
}
