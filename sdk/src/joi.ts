/**
 * joi with value types. At run time this is joi itself; the types track, beside joi's own, which value a schema accepts and whether a
 * key that holds it may be absent, so that `params`, `query`, `payload`, `settings` and answers are inferred from their schemas.
 */
import Joi from 'joi';

import type { PropertyUi } from './routes/ui.ts';

type Presence = 'optional' | 'required' | 'default' | 'forbidden';
type Scalar = string | number | boolean | null;

/** The part of a typed schema that exists in types only. */
export interface Typed<B extends Joi.Schema, T, P extends Presence> {
    readonly '~portico'?: { readonly value: T; readonly presence: P };
    /** The key must be there. */
    required(): SchemaOf<B, T, 'required'>;
    /** Same as {@link Typed.required}. */
    exist(): SchemaOf<B, T, 'required'>;
    optional(): SchemaOf<B, T, 'optional'>;
    forbidden(): SchemaOf<B, T, 'forbidden'>;
    /** The value of an absent key; the key is then always there. */
    default<const D extends T>(value: D | ((parent: unknown) => D)): SchemaOf<B, T, 'default'>;
    /** Only these values. */
    valid<const V extends Scalar>(...values: V[]): SchemaOf<B, V, P>;
    /** These values too. */
    allow<const V extends Scalar>(...values: V[]): SchemaOf<B, T | V, P>;
    /** What the schema says beyond its type, see {@link SchemaMeta}. */
    meta(meta: SchemaMeta): SchemaOf<B, T, P>;
}

/** What a schema says to pages and to the documentation beyond its type: `.meta({ … })`. */
export interface SchemaMeta {
    readonly ui?: PropertyUi;
    /** Media type of a text, such as `text/x-shellscript`: it is edited as code. `contentMediaType` in the document. */
    readonly media?: string;
    readonly [other: string]: unknown;
}

/** A schema of joi's type `B` that accepts `T`. Ours comes first: an intersection resolves overloads in order. */
export type SchemaOf<B extends Joi.Schema, T, P extends Presence = 'optional'> = Typed<B, T, P> & B;

/** Any schema that carries the type of its value. */
export type AnySchema = { readonly '~portico'?: { readonly value: unknown; readonly presence: Presence } };

/** The value that a schema lets through. */
export type Value<S> = S extends { readonly '~portico'?: { readonly value: infer T } } ? T : never;

type PresenceOf<S> = S extends { readonly '~portico'?: { readonly presence: infer P } } ? P : never;
type Keys = Readonly<Record<string, AnySchema>>;
type Flat<T> = { [K in keyof T]: T[K] } & {};

/** The object that a map of schemas describes. */
export type Shape<M extends Keys> = Flat<
    { [K in keyof M as PresenceOf<M[K]> extends 'required' | 'default' ? K : never]: Value<M[K]> } & {
        [K in keyof M as PresenceOf<M[K]> extends 'optional' ? K : never]?: Value<M[K]> | undefined;
    }
>;

/** What an object schema can do to its keys. */
export interface ObjectMethods<T> {
    keys<M extends Keys>(keys: M): ObjectOf<Flat<Omit<T, keyof M> & Shape<M>>>;
    append<M extends Keys>(keys: M): ObjectOf<Flat<Omit<T, keyof M> & Shape<M>>>;
}
/** A schema of an object. */
export type ObjectOf<T, P extends Presence = 'optional'> = ObjectMethods<T> &
    SchemaOf<Joi.ObjectSchema<T>, T, P>;

/** What an array schema can do to its items. */
export interface ArrayMethods {
    items<const S extends AnySchema[]>(...schemas: S): SchemaOf<Joi.ArraySchema, Value<S[number]>[]>;
}

/** joi's own entry points, typed. */
export interface TypedJoi {
    string(): SchemaOf<Joi.StringSchema, string>;
    /**
     * A string that is a secret. In settings it is sealed at rest and masked in every read; in `params` its part of the path is masked in
     * the panel's log and left out of the audit log.
     */
    secret(): SchemaOf<Joi.StringSchema, string>;
    number(): SchemaOf<Joi.NumberSchema, number>;
    boolean(): SchemaOf<Joi.BooleanSchema, boolean>;
    binary(): SchemaOf<Joi.BinarySchema, Uint8Array>;
    date(): SchemaOf<Joi.DateSchema, Date>;
    any<T = unknown>(): SchemaOf<Joi.AnySchema, T>;
    valid<const V extends Scalar>(...values: V[]): SchemaOf<Joi.AnySchema, V>;
    /** One of the keys; the texts are what users choose from: `joi.choice({ skip: 'Skip it', queue: 'Wait' })`. */
    choice<const C extends Readonly<Record<string, string>>>(
        words: C
    ): SchemaOf<Joi.StringSchema, keyof C & string>;
    /** A field that answers show. A request may send it back: it is checked, and the handler does not get it. Never required. */
    readOnly<S extends AnySchema>(schema: S): SchemaOf<Joi.Schema, Value<S>>;
    object<M extends Keys>(keys: M): ObjectOf<Shape<M>>;
    /** An object with any names and one kind of value. */
    record<S extends AnySchema>(value: S): SchemaOf<Joi.ObjectSchema, Record<string, Value<S>>>;
    array(): ArrayMethods & SchemaOf<Joi.ArraySchema, unknown[]>;
    alternatives<const S extends AnySchema[]>(
        ...schemas: S
    ): SchemaOf<Joi.AlternativesSchema, Value<S[number]>>;
    /** Any joi schema that these types do not cover; the author states the value. */
    typed<T>(schema: Joi.Schema): SchemaOf<Joi.Schema, T, 'required'>;
    ref: Joi.Root['ref'];
}

const additions = {
    secret: () => Joi.string().meta({ secret: true }),
    record: (value: Joi.Schema) => Joi.object().pattern(Joi.string(), value),
    alternatives: (...schemas: Joi.Schema[]) => Joi.alternatives().try(...schemas),
    choice: (words: Readonly<Record<string, string>>) =>
        Joi.string()
            .valid(...Object.keys(words))
            .meta({ choice: words }),
    readOnly: (schema: Joi.Schema) => schema.optional().strip().meta({ readOnly: true }),
    typed: (schema: Joi.Schema) => schema
};

/** The joi schema that a typed schema is at run time. */
export function joiSchemaOf(schema: AnySchema): Joi.Schema {
    return schema as unknown as Joi.Schema; // every typed schema comes from `joi`; its type keeps only the value
}

/** joi with types: routes and settings are declared with it. Its types describe the part of joi that plugins may use. */
export const joi: TypedJoi =
    // `TypedJoi` narrows joi in a way that joi's own types do not know.
    Object.assign(Object.create(Joi) as Joi.Root, additions) as unknown as TypedJoi;
