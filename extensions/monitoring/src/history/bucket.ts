/** The samples of a span of time, added up by series, and their binary form in a row. */

/** Samples of one series, added up. */
export interface Aggregate {
    readonly min: number;
    readonly max: number;
    readonly sum: number;
    readonly count: number;
}

/** Bytes of one series in a row: id and count (32 bits each), then minimum, maximum and sum (64 bits each). */
const width = 32;

/** The samples of all series from one time to the next step. */
export class Bucket {
    /** Its begin, milliseconds since 1970. */
    readonly at: number;
    /** By the id of the series. */
    readonly entries = new Map<number, Aggregate>();

    constructor(at: number) {
        this.at = at;
    }

    /** Adds samples of a series. */
    add(series: number, { min, max, sum, count }: Aggregate): void {
        const has = this.entries.get(series);
        this.entries.set(
            series,
            has === undefined ? { min, max, sum, count } : merge(has, { min, max, sum, count })
        );
    }

    /** Adds the samples of another bucket. */
    merge(other: Bucket): void {
        other.entries.forEach((aggregate, series) => this.add(series, aggregate));
    }

    /** Writes the series in the order of their ids. */
    encode(): Uint8Array {
        const view = new DataView(new ArrayBuffer(this.entries.size * width));
        [...this.entries]
            .sort(([a], [b]) => a - b)
            .forEach(([series, { min, max, sum, count }], index) => {
                const at = index * width;
                view.setUint32(at, series);
                view.setUint32(at + 4, count);
                view.setFloat64(at + 8, min);
                view.setFloat64(at + 16, max);
                view.setFloat64(at + 24, sum);
            });
        return new Uint8Array(view.buffer);
    }

    /** Reads what {@link Bucket.encode} wrote. */
    static decode(at: number, data: Uint8Array): Bucket {
        const bucket = new Bucket(at);
        const view = viewOf(data);
        for (let offset = 0; offset + width <= data.byteLength; offset += width) {
            bucket.entries.set(view.getUint32(offset), aggregateAt(view, offset));
        }
        return bucket;
    }
}

/** The aggregate of one sample. */
export function single(value: number): Aggregate {
    return { min: value, max: value, sum: value, count: 1 };
}

/** The aggregate of two. */
export function merge(a: Aggregate, b: Aggregate): Aggregate {
    return {
        min: Math.min(a.min, b.min),
        max: Math.max(a.max, b.max),
        sum: a.sum + b.sum,
        count: a.count + b.count
    };
}

/** Reads one series of a row without decoding the others, by binary search; null when the row does not have it. */
export function pick(data: Uint8Array, series: number): Aggregate | null {
    const view = viewOf(data);
    let [low, high] = [0, Math.floor(data.byteLength / width) - 1];
    while (low <= high) {
        const middle = (low + high) >> 1;
        const id = view.getUint32(middle * width);
        if (id === series) {
            return aggregateAt(view, middle * width);
        }
        if (id < series) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return null;
}

function viewOf(data: Uint8Array): DataView {
    return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

function aggregateAt(view: DataView, offset: number): Aggregate {
    return {
        count: view.getUint32(offset + 4),
        min: view.getFloat64(offset + 8),
        max: view.getFloat64(offset + 16),
        sum: view.getFloat64(offset + 24)
    };
}
