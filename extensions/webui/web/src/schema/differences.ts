/** What differs between two states of a thing, field by field. */
export interface Difference {
    /** Names of the fields that lead to it, with numbers for places in a list. */
    readonly path: readonly string[];
    readonly before: unknown;
    readonly after: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Fields that change with every write and tell nothing. */
const stamps: ReadonlySet<string> = new Set(['version', 'updatedAt', 'createdAt', 'id']);

/** All differences, in the order of the fields. Lists of other lengths differ as a whole; what is empty on both sides does not. */
export function differences(
    before: unknown,
    after: unknown,
    path: readonly string[] = []
): readonly Difference[] {
    if (
        JSON.stringify(before ?? null) === JSON.stringify(after ?? null) ||
        (isEmpty(before) && isEmpty(after))
    ) {
        return [];
    }
    if (isFields(before) && isFields(after)) {
        return [...new Set([...Object.keys(before), ...Object.keys(after)])]
            .filter((key) => !stamps.has(key))
            .flatMap((key) => differences(before[key], after[key], [...path, key]));
    }
    if (isFields(before) !== isFields(after) && (isEmpty(before) || isEmpty(after)) && path.length < 2) {
        return differences(isFields(before) ? before : {}, isFields(after) ? after : {}, path);
    }
    return [{ path, before, after }];
}

/** A value as a text that a person can compare. */
export function textOf(value: unknown): string {
    if (Array.isArray(value) && value.every((each) => typeof each !== 'object')) {
        return value.join(', ');
    }
    return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** Nothing, as a form or a record says it. */
export function isEmpty(value: unknown): boolean {
    return (
        value === null ||
        value === undefined ||
        value === '' ||
        (typeof value === 'object' && Object.keys(value).length === 0)
    );
}

const isFields = (value: unknown): value is Fields =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
