/** Copies of what goes into hooks and comes out of them. Nearly all of it is plain objects and lists, which are copied far faster here than by structuredClone. */

/** Below it a value is left to structuredClone, which also ends where it contains itself. */
const deepest = 32;

/** A copy that nobody else holds. @throws DataCloneError for what is no data */
export function copyOf<T>(value: T): T {
    return copy(value, false, 0) as T;
}

/** A copy that nobody can change; bytes excepted, which cannot be frozen. @throws DataCloneError for what is no data */
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
    return isFixed ? freeze(structuredClone(value)) : structuredClone(value);
}

function freeze<T>(value: T): T {
    if (
        typeof value === 'object' &&
        value !== null &&
        !ArrayBuffer.isView(value) &&
        !Object.isFrozen(value)
    ) {
        Object.freeze(value);
        Object.values(value).forEach(freeze);
    }
    return value;
}
