/** Plain data may cross the boundary: JSON values, Date and bytes. Anything else is refused by an error that names its place. */

const deepest = 64;

/** Copies plain data, so that neither side sees what the other does to it later. @throws TypeError that names the place of what is not plain */
export function plainCopy<T>(value: T, what: string): T {
    return copy(value, what, 0) as T;
}

function copy(value: unknown, place: string, depth: number): unknown {
    if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') {
        return value;
    }
    if (typeof value === 'number') {
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
        return new Uint8Array(value);
    }
    if (Array.isArray(value)) {
        return value.map((item, index) => copy(item, `${place}[${index}]`, depth + 1));
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
        throw new TypeError(
            `${place} is a ${(value.constructor as { name?: string } | undefined)?.name ?? 'object'}, which is not plain data`
        );
    }
    const result: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(value)) {
        Object.defineProperty(result, key, {
            value: copy(item, `${place}.${key}`, depth + 1),
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
