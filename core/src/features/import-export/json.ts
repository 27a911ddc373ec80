/** Looks into JSON of strangers: what is not of the kind that is asked for is empty. */

/** Any JSON object whose members are not known yet. */
export type Json = Readonly<Record<string, unknown>>;

/** The value if it is an object; else an empty one. */
export function record(value: unknown): Json {
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

/** The value if it is an array; else an empty one. */
export function list(value: unknown): readonly unknown[] {
    return Array.isArray(value) ? value : [];
}
