/** Copies the payloads and results of hooks. Nearly all are plain objects and lists, which are copied far faster here than by structuredClone. */

import { deepFreeze } from '../plain.ts';

/** Deeper values are left to structuredClone, which can also copy a value that contains itself. */
const deepest = 32;

/** A copy that shares nothing with the original. @throws DataCloneError for a function, a symbol, or another value that is no data */
export function copyOf<T>(value: T): T {
    return copy(value, false, 0) as T;
}

/** A copy that is frozen deeply, except bytes, which cannot be frozen. @throws DataCloneError as `copyOf` does */
export function snapshotOf<T>(value: T): T {
    return copy(value, true, 0) as T;
}

function copy(value: unknown, isFixed: boolean, depth: number): unknown {
    if (typeof value !== 'object' || value === null) {
        return typeof value === 'function' || typeof value === 'symbol' ? structuredClone(value) : value;
    }
    if (depth < deepest) {
        if (Array.isArray(value)) {
            const list: unknown[] = value.map((item) => copy(item, isFixed, depth + 1));
            return isFixed ? Object.freeze(list) : list;
        }
        const prototype: unknown = Object.getPrototypeOf(value);
        if (prototype === Object.prototype || prototype === null) {
            const result: Record<string, unknown> = { ...value };
            for (const key in result) {
                const item = result[key];
                if (
                    (typeof item === 'object' && item !== null) ||
                    typeof item === 'function' ||
                    typeof item === 'symbol'
                ) {
                    result[key] = copy(item, isFixed, depth + 1);
                }
            }
            return isFixed ? Object.freeze(result) : result;
        }
    }
    return isFixed ? deepFreeze(structuredClone(value)) : structuredClone(value);
}
