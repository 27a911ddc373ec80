/** Plain data may cross the boundary: JSON values, Date and bytes. Anything else is refused by an error that names its place. */

const deepest = 64;

const mebibyte = 1024 * 1024;
/** Larger data is copied and held as one piece, while the whole panel waits. Never more than the characters of its JSON. */
const mostCharacters = 16 * mebibyte;

/**
 * Copies plain data, so that neither side sees what the other does to it later.
 *
 * @param most - characters of texts and names, bytes, and one for each other value
 * @throws TypeError that names the place of what is not plain, and when there is more than 16 MiB of it
 */
export function plainCopy<T>(value: T, what: string, most = mostCharacters): T {
    return copy(value, what, 0, { left: most, what }) as T;
}

interface Budget {
    left: number;
    readonly what: string;
}

function spend(budget: Budget, characters: number): void {
    budget.left -= characters;
    if (budget.left < 0) {
        throw new TypeError(
            `${budget.what} has more than ${mostCharacters / mebibyte} MiB, which cannot cross the boundary of a plugin: pass it in parts`
        );
    }
}

function copy(value: unknown, place: string, depth: number, budget: Budget): unknown {
    if (typeof value === 'string') {
        spend(budget, value.length);
        return value;
    }
    spend(budget, 1);
    if (value === null || value === undefined || typeof value === 'boolean' || typeof value === 'number') {
        return value;
    }
    if (typeof value !== 'object') {
        throw new TypeError(`${place} is a ${typeof value}, which cannot cross the boundary of a plugin`);
    }
    if (depth > deepest) {
        throw new TypeError(`${place} is nested more than ${deepest} levels deep`);
    }
    if (value instanceof Date) {
        return new Date(value);
    }
    if (value instanceof Uint8Array) {
        spend(budget, value.byteLength);
        return new Uint8Array(value);
    }
    if (Array.isArray(value)) {
        return value.map((item, index) => copy(item, `${place}[${index}]`, depth + 1, budget));
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
        throw new TypeError(
            `${place} is a ${(value.constructor as { name?: string } | undefined)?.name ?? 'object'}, which is not plain data`
        );
    }
    const result: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(value)) {
        spend(budget, key.length);
        Object.defineProperty(result, key, {
            value: copy(item, `${place}.${key}`, depth + 1, budget),
            enumerable: true,
            writable: true,
            configurable: true
        });
    }
    return result;
}

/** Freezes plain data to the bottom. Bytes cannot be frozen. */
export function deepFreeze<T>(value: T): T {
    if (
        typeof value === 'object' &&
        value !== null &&
        !ArrayBuffer.isView(value) &&
        !Object.isFrozen(value)
    ) {
        Object.freeze(value);
        Object.values(value).forEach(deepFreeze);
    }
    return value;
}

/** Whether a value is an object with fields: no array, no date, no bytes. */
export function isFields(value: unknown): value is Record<string, unknown> {
    return (
        typeof value === 'object' &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Date) &&
        !ArrayBuffer.isView(value)
    );
}

/** Whether a value comes piece by piece. */
export function isSeries(value: unknown): value is AsyncIterable<unknown> {
    return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}
