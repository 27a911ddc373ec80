/** What a plugin's module exports: its definition, and the contract that other plugins may call. */
import type { EntityManager, EntitySchema } from '@mikro-orm/sqlite';

import type { Context } from './context/context.ts';
import type { AnySchema, Value } from './joi.ts';
import type { Actor, Awaitable } from './routes/route.ts';

declare const contractType: unique symbol;

/** Stands for another plugin's contract in a definition; exists in types only. */
export interface ContractToken<C> {
    readonly '~portico': 'contract';
    readonly [contractType]?: C;
}

type Tokens = Readonly<Record<string, ContractToken<unknown>>>;
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- no partner is the neutral element of `Partners`
type NoTokens = {};

/** Names a partner's contract by its type: `requires: { container: contract<ContainerContract>() }`. The manifest must name the same partners. */
export function contract<C>(): ContractToken<C> {
    return { '~portico': 'contract' };
}

/** Who calls a method of a contract. */
export interface Call {
    /** Name of the calling plugin. */
    readonly plugin: string;
    /** For whom it calls; null when it calls for itself. */
    readonly actor: Actor | null;
    /** Aborts when the caller gave up or ended, and when the called generation ends. */
    readonly signal: AbortSignal;
}

/** What of a type is not plain data; `never` when all of it is. */
type Unplain<T> = unknown extends T
    ? never
    : T extends string | number | boolean | null | undefined | void | Date | Uint8Array
      ? never
      : T extends bigint | symbol | ((...args: never[]) => unknown)
        ? T
        : T extends readonly (infer Item)[]
          ? Unplain<Item>
          : T extends object
            ? { [K in keyof T]-?: Unplain<T[K]> }[keyof T]
            : never;

/**
 * What a contract may be: functions of one plain input and the call, which answer later with plain data or a series of it. Anything else
 * turns into a text that says what is wrong, where the compiler shows it.
 */
export type Contract<C> = {
    [K in keyof C]: C[K] extends (input: infer I, call: Call) => infer R
        ? [Unplain<I>] extends [never]
            ? R extends Promise<infer O> | AsyncIterable<infer O>
                ? [Unplain<O>] extends [never]
                    ? C[K]
                    : 'the result is not plain data'
                : 'a contract method is asynchronous'
            : 'the input is not plain data'
        : 'a contract has only functions (input, call)';
};

/** For whom and until when a partner's method is called. */
export interface RemoteOptions {
    readonly actor?: Actor;
    readonly signal?: AbortSignal;
}

/** A contract as its consumer sees it: a stable proxy that always reaches the generation that runs now. */
export type Remote<C> = {
    readonly [K in keyof C]: C[K] extends (input: infer I, call: Call) => infer R
        ? (input: I, options?: RemoteOptions) => R
        : never;
};

/** The partners of a definition: required ones are there, optional ones may be absent. */
export type Partners<R, O> = {
    readonly [K in keyof R]: R[K] extends ContractToken<infer C> ? Remote<C> : never;
} & { readonly [K in keyof O]: O[K] extends ContractToken<infer C> ? Remote<C> | undefined : never };

/** One step of a plugin's own database. Steps run in their order, each once, each in a transaction of its own. */
export interface Migration {
    /** Unique in the plugin and never changed once published. */
    readonly name: string;
    /** SQL statements, or work on the database inside the step's transaction. */
    readonly up: readonly string[] | ((em: EntityManager) => Promise<void>);
}

/** What `definePlugin` takes: all that a plugin declares, and its `setup`. */
export interface Definition<S extends AnySchema, R extends Tokens, O extends Tokens, C> {
    /** An object schema: every key is a setting. Secrets are `joi.secret()`. */
    readonly settings?: S;
    /** Contracts of plugins without which this one does not run. */
    readonly requires?: R;
    /** Contracts of plugins that may come and go. */
    readonly optional?: O;
    readonly entities?: readonly EntitySchema[];
    readonly migrations?: readonly Migration[];
    /** Registers everything, does no work, and may return a contract. Runs once for each generation, within a time limit. */
    setup(ctx: Context<Value<S>, Partners<R, O>>): Awaitable<(C & Contract<C>) | void>;
}

/** Settings of a definition without any. */
export interface NoSettings {
    readonly '~portico'?: { readonly value: Readonly<Record<never, never>>; readonly presence: 'required' };
}

/** A definition as the host takes it: branded plain data around `setup`. */
export interface PluginDefinition<C = unknown> {
    readonly '~portico': 'plugin';
    /** Version of this shape. */
    readonly sdk: 1;
    readonly settings: AnySchema | null;
    readonly requires: readonly string[];
    readonly optional: readonly string[];
    readonly entities: readonly EntitySchema[];
    readonly migrations: readonly Migration[];
    readonly setup: (ctx: never) => unknown;
    readonly [contractType]?: C;
}

/** The contract of a definition: `export type HelloContract = ContractOf<typeof definition>`. */
export type ContractOf<D> = D extends PluginDefinition<infer C> ? C : never;

/**
 * Defines a plugin; the module's default export.
 *
 * @example `export default definePlugin({ setup(ctx) { ctx.route({ method: 'GET', path: '/hello', access: 'read', handler: () => ({ text: 'Hello' }) }); } });`
 * @throws TypeError when two migrations have one name, or a partner is both required and optional
 */
export function definePlugin<
    S extends AnySchema = NoSettings,
    R extends Tokens = NoTokens,
    O extends Tokens = NoTokens,
    C = void
>(definition: Definition<S, R, O, C>): PluginDefinition<C> {
    const {
        settings = null,
        requires = {},
        optional = {},
        entities = [],
        migrations = [],
        setup
    } = definition;
    if (typeof setup !== 'function') {
        throw new TypeError('definePlugin needs a function `setup`');
    }
    const both = Object.keys(requires).find((name) => Object.hasOwn(optional, name));
    if (both !== undefined) {
        throw new TypeError(`definePlugin: ${both} is both required and optional`);
    }
    const names = migrations.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) {
        throw new TypeError(`definePlugin: two migrations are named ${JSON.stringify(twice)}`);
    }
    return Object.freeze({
        '~portico': 'plugin' as const,
        sdk: 1 as const,
        settings,
        requires: Object.keys(requires),
        optional: Object.keys(optional),
        entities,
        migrations,
        setup: (ctx: never) => setup(ctx)
    });
}

/** Tells a definition by its brand. */
export function isDefinition(value: unknown): value is PluginDefinition {
    return (
        typeof value === 'object' &&
        value !== null &&
        (value as { '~portico'?: unknown })['~portico'] === 'plugin'
    );
}
