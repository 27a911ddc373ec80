/** Values of a form: what is shown at first, and what is sent. */
import { isWritable, plain, type Schema } from './schema.ts';

/** The value that a form begins with: what is there, else nothing. Defaults are shown by the fields, and sent only when they are changed. */
export function initialValue(
    schema: Schema,
    present: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
    return Object.fromEntries(
        Object.entries(schema.properties ?? {})
            .filter(([key, each]) => isWritable(each) && present[key] !== undefined)
            .map(([key]) => [key, present[key]])
    );
}

/** The fields of a new object that were filled. */
export function filled(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
    return Object.fromEntries(
        Object.entries(value).filter(([, each]) => each !== undefined && each !== null && each !== '')
    );
}

/** The fields whose value differs from before. An optional one that was emptied is null. */
export function changed(
    schema: Schema,
    before: Readonly<Record<string, unknown>>,
    value: Readonly<Record<string, unknown>>
): Record<string, unknown> {
    return Object.fromEntries(
        Object.entries(value)
            .filter(([key, each]) => JSON.stringify(each ?? null) !== JSON.stringify(before[key] ?? null))
            .map(([key, each]) => {
                const isEmpty = each === '' || each === undefined;
                return [key, isEmpty && plain(schema.properties?.[key] ?? {}).isNullable ? null : each];
            })
    );
}
