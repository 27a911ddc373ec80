/** Looks into JSON of strangers: what is not of the kind that is asked for is empty. */

export type Json = Readonly<Record<string, unknown>>;

export function record(value: unknown): Json {
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function list(value: unknown): readonly unknown[] {
    return Array.isArray(value) ? value : [];
}
