/** What joi says of a schema, as far as we read it, and what we make of it. */

/** A JSON Schema of the dialect 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Where a schema stands. */
export interface Use {
    /** `body`: taken as it is; `text`: path and query, which become what the schema says; `answer`: what the server sends. */
    readonly side: 'body' | 'text' | 'answer';
    /** Whether an absent key gets its default. */
    readonly defaults: boolean;
    /** Leaves out what JSON Schema cannot express, and a custom rule without words, instead of refusing the schema. For settings, which the plugin checks itself. */
    readonly lenient?: boolean;
}

/** Translates one part of a description. */
export type Convert = (
    description: Description,
    use: Use,
    path: readonly string[],
    convert: Convert
) => JsonSchema;
/** The walk itself, as the readers of containers get it. */
export type Walk = (description: Description, use: Use, path: readonly string[]) => JsonSchema;

/** A rule of a joi schema, as `describe()` shows it. */
export interface Rule {
    readonly name: string;
    readonly args?: Readonly<Record<string, unknown>>;
}

/** One case of a joi condition, as `describe()` shows it. */
export interface Branch {
    readonly is?: Description;
    readonly then?: Description;
    readonly otherwise?: Description;
}

/** A joi condition (`when`), as `describe()` shows it. */
export interface When extends Branch {
    readonly ref?: { readonly path: readonly string[]; readonly ancestor?: number; readonly type?: string };
    readonly switch?: readonly Branch[];
}

/** The part of the object that joi's `describe()` returns which the converter reads. */
export interface Description {
    readonly type: string;
    readonly flags?: Readonly<Record<string, unknown>> & {
        readonly presence?: 'optional' | 'required' | 'forbidden';
    };
    readonly rules?: readonly Rule[];
    readonly allow?: readonly unknown[];
    readonly invalid?: readonly unknown[];
    readonly examples?: readonly unknown[];
    readonly metas?: readonly Readonly<Record<string, unknown>>[];
    readonly keys?: Readonly<Record<string, Description>>;
    readonly patterns?: readonly {
        readonly regex?: string;
        readonly schema?: Description;
        readonly rule: Description;
        readonly matches?: unknown;
    }[];
    readonly dependencies?: readonly {
        readonly rel: string;
        readonly key?: string;
        readonly peers: readonly string[];
        readonly options?: unknown;
    }[];
    readonly renames?: unknown;
    readonly items?: readonly Description[];
    readonly ordered?: readonly Description[];
    readonly matches?: readonly (When & { readonly schema?: Description })[];
    readonly whens?: readonly When[];
    readonly truthy?: unknown;
    readonly falsy?: unknown;
    readonly externals?: unknown;
    readonly preferences?: Readonly<Record<string, unknown>>;
}

/** A construct for which JSON Schema has no words; `message` starts with its place. */
export class Inexpressible extends TypeError {
    constructor(path: readonly string[], what: string) {
        super(`${path.length === 0 ? '' : `${path.join('.')}: `}JSON Schema cannot express ${what}`);
    }
}

/** A rule's argument that must be a plain number. */
export function numberOf(rule: Rule, name: string, path: readonly string[]): number {
    const value = rule.args?.[name];
    if (typeof value !== 'number') {
        throw new Inexpressible(path, `${rule.name} of another field`);
    }
    return value;
}

/** The demands of all rules of a description. @throws Inexpressible for a rule without a reader */
export function demandsOf<T extends readonly unknown[]>(
    { type, rules = [] }: Description,
    readers: Readonly<Record<string, (rule: Rule, path: readonly string[], ...more: T) => JsonSchema>>,
    path: readonly string[],
    ...more: T
): JsonSchema[] {
    return rules.map((rule) => {
        const reader = readers[rule.name];
        if (reader === undefined) {
            throw new Inexpressible(path, `${type}().${rule.name}()`);
        }
        return reader(rule, path, ...more);
    });
}

/** Several demands on one value: the first rides on the schema itself, the rest are joined to it. */
export function allOf(base: JsonSchema, demands: readonly JsonSchema[]): JsonSchema {
    const rest: JsonSchema[] = [];
    let merged = base;
    for (const demand of demands) {
        if (Object.keys(demand).some((keyword) => keyword in merged)) {
            rest.push(demand);
        } else {
            merged = { ...merged, ...demand };
        }
    }
    return rest.length === 0
        ? merged
        : { ...merged, allOf: [...((merged['allOf'] as JsonSchema[] | undefined) ?? []), ...rest] };
}
