/** JSON as one text for one value: keys sorted, so that two documents that mean the same hash the same. */
import { createHash } from 'node:crypto';

/** The value with the keys of every object sorted; what JSON cannot say is left out as JSON leaves it out. */
export const canonicalJson = (value: unknown): string => JSON.stringify(value, sortKeys) ?? 'null';

/** SHA-256 of the canonical JSON, hexadecimal. */
export const hashOf = (value: unknown): string =>
    createHash('sha256').update(canonicalJson(value)).digest('hex');

const sortKeys = (_key: string, value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        return value;
    }

    const keys = Object.keys(value);
    // Most objects have their keys in order, or one key: sorting those is the cost of a big document.
    if (keys.every((key, index) => index === 0 || (keys[index - 1] ?? '') < key)) {
        return value;
    }

    return Object.fromEntries(keys.sort().map((key) => [key, (value as Record<string, unknown>)[key]]));
};
