/** The samples of a span of time, added up by series, and their binary form in a row. */

/** Samples of one series, added up. */
export interface Aggregate {
    readonly min: number;
    readonly max: number;
    readonly sum: number;
    readonly count: number;
}

/**
 * Bytes of one series in a row: id (24 bits), count (16), minimum and maximum (32 each, seven digits), mean (the first 40 of its 64, eight digits). A
 * row begins with this number. At most two pages of the database for 226 series: 0.4 MB for each and a year, however many there are.
 */
const width = 18;
/** Bytes of a mean that is written whole, and of the part that is kept. */
const [whole, kept] = [8, 5];
const mostCount = 0xffff;
/** Bytes of one series in rows of before: id and count (32 bits each), minimum, maximum and sum (64 bits each). They begin with a zero. */
const earlierWidth = 32;

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
        const view = new DataView(new ArrayBuffer(1 + this.entries.size * width + whole - kept));
        view.setUint8(0, width);
        [...this.entries]
            .sort(([a], [b]) => a - b)
            .forEach(([series, { min, max, sum, count }], index) => {
                const at = 1 + index * width;
                view.setUint32(at, series * 256);
                view.setUint16(at + 3, Math.min(count, mostCount));
                view.setFloat32(at + 5, min);
                view.setFloat32(at + 9, max);
                // What is beyond the part that is kept is written over by the next series, or cut off.
                view.setFloat64(at + 13, sum / count);
            });
        return new Uint8Array(view.buffer, 0, 1 + this.entries.size * width);
    }

    /** Reads what {@link Bucket.encode} wrote, now or in an earlier version. */
    static decode(at: number, data: Uint8Array): Bucket {
        const bucket = new Bucket(at);
        const row = rowOf(data);
        for (let index = 0; index < row.size; index += 1) {
            bucket.entries.set(row.id(index), row.aggregate(index));
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
    const row = rowOf(data);
    let [low, high] = [0, row.size - 1];
    while (low <= high) {
        const middle = (low + high) >> 1;
        const id = row.id(middle);
        if (id === series) {
            return row.aggregate(middle);
        }
        if (id < series) {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return null;
}

/** The series of a row, by their place in it. */
interface Row {
    readonly size: number;
    id(index: number): number;
    aggregate(index: number): Aggregate;
}

function rowOf(data: Uint8Array): Row {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    return data[0] === width ? packedRow(view) : earlierRow(view);
}

function packedRow(view: DataView): Row {
    const placeOf = (index: number): number => 1 + index * width;
    return {
        size: Math.floor((view.byteLength - 1) / width),
        id: (index) => view.getUint32(placeOf(index)) >>> 8,
        aggregate(index) {
            const at = placeOf(index);
            const count = view.getUint16(at + 3);
            const mean = meanAt(view, at + 13);
            return {
                count,
                // Rounded, a limit may lie on the wrong side of a mean that has more digits.
                min: Math.min(sevenDigits(view.getFloat32(at + 5)), mean),
                max: Math.max(sevenDigits(view.getFloat32(at + 9)), mean),
                sum: mean * count
            };
        }
    };
}

function meanAt(view: DataView, at: number): number {
    const bytes = new DataView(new ArrayBuffer(whole));
    bytes.setUint32(0, view.getUint32(at));
    bytes.setUint8(4, view.getUint8(at + 4));
    return bytes.getFloat64(0);
}

/** 75.3, which the nearest number of 32 bits is not. */
function sevenDigits(value: number): number {
    return Number(value.toPrecision(7));
}

function earlierRow(view: DataView): Row {
    return {
        size: Math.floor(view.byteLength / earlierWidth),
        id: (index) => view.getUint32(index * earlierWidth),
        aggregate(index) {
            const at = index * earlierWidth;
            return {
                count: view.getUint32(at + 4),
                min: view.getFloat64(at + 8),
                max: view.getFloat64(at + 16),
                sum: view.getFloat64(at + 24)
            };
        }
    };
}
