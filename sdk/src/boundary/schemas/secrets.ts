/** Finds the secrets in a schema of settings. */
import { isFields } from '../plain.ts';
import type { SchemaDescription } from '../protocol.ts';

interface Described {
    readonly metas?: readonly Readonly<Record<string, unknown>>[];
    readonly keys?: Readonly<Record<string, Described>>;
    readonly patterns?: readonly { readonly rule?: Described }[];
    readonly items?: readonly Described[];
    readonly matches?: readonly {
        readonly schema?: Described;
        readonly then?: Described;
        readonly otherwise?: Described;
    }[];
}

/** Dotted paths of the secrets; `*` stands for any index and any name. */
export function secretPaths(description: SchemaDescription | null): readonly string[] {
    return description === null ? [] : [...new Set(walk(description as Described, []))];
}

function walk(described: Described, path: readonly string[]): string[] {
    const own = described.metas?.some((meta) => meta['secret'] === true) === true ? [path.join('.')] : [];
    const keys = Object.entries(described.keys ?? {}).flatMap(([key, child]) => walk(child, [...path, key]));
    const patterns = (described.patterns ?? []).flatMap(({ rule }) =>
        rule === undefined ? [] : walk(rule, [...path, '*'])
    );
    const items = (described.items ?? []).flatMap((item) => walk(item, [...path, '*']));
    const matches = (described.matches ?? []).flatMap(({ schema, then, otherwise }) =>
        [schema, then, otherwise].flatMap((each) => (each === undefined ? [] : walk(each, path)))
    );
    return [...own, ...keys, ...patterns, ...items, ...matches];
}

/** A copy with the value at every secret path replaced by the result of `change`. Empty values are kept. */
export function mapSecrets(
    value: unknown,
    paths: readonly string[],
    change: (value: unknown, path: string) => unknown,
    at: readonly string[] = []
): unknown {
    if (at.length > 0 && paths.some((path) => matches(path, at))) {
        return value === undefined || value === null || value === '' ? value : change(value, at.join('.'));
    }
    if (Array.isArray(value)) {
        return value.map((item, index) => mapSecrets(item, paths, change, [...at, String(index)]));
    }
    if (isFields(value)) {
        return Object.fromEntries(
            Object.entries(value).map(([key, item]) => [key, mapSecrets(item, paths, change, [...at, key])])
        );
    }
    return value;
}

function matches(path: string, at: readonly string[]): boolean {
    const parts = path.split('.');
    return parts.length === at.length && parts.every((part, index) => part === '*' || part === at[index]);
}
