/** One place where two JSON documents differ (RFC 6901). */
export interface Difference {
    /** JSON pointer; the empty string is the whole document. */
    readonly path: string;
    /** Absent when the wanted document has nothing there. */
    readonly wanted?: unknown;
    /** Absent when the running document has nothing there. */
    readonly running?: unknown;
}

/**
 * Every place where `running` is not as `wanted`. The order of an object's keys is no difference; arrays are compared by position.
 * @returns at most `limit` differences
 */
export function differences(wanted: unknown, running: unknown, limit: number): readonly Difference[] {
    const found: Difference[] = [];
    compare(wanted, running, '', found, limit);
    return found;
}

/** The value at a pointer; undefined when there is none. */
export function at(document: unknown, pointer: string): unknown {
    return pointer
        .split('/')
        .slice(1)
        .reduce<unknown>((value, part) => own(value, unescape(part)), document);
}

function compare(wanted: unknown, running: unknown, path: string, found: Difference[], limit: number): void {
    if (found.length >= limit || wanted === running) {
        return;
    }

    if (!isObject(wanted) || !isObject(running) || Array.isArray(wanted) !== Array.isArray(running)) {
        found.push({
            path,
            ...(wanted === undefined ? {} : { wanted }),
            ...(running === undefined ? {} : { running })
        });
        return;
    }

    for (const key of new Set([...Object.keys(wanted), ...Object.keys(running)])) {
        compare(own(wanted, key), own(running, key), `${path}/${escape(key)}`, found, limit);
    }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const own = (value: unknown, key: string): unknown =>
    isObject(value) && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
const escape = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
const unescape = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');
