/** The tables of the plugin's own database. Times are milliseconds since 1970; secrets are sealed. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

/** A row as it is read: an empty column is null, never undefined. */
type Row<E> = { -readonly [K in keyof E as K extends symbol ? never : K]-?: Exclude<E[K], undefined> };

/** A stack that this plugin manages. */
export const StackEntity = defineEntity({
    name: 'ContainerStack',
    tableName: 'stacks',
    properties: {
        name: p.string().primary(),
        version: p.integer(),
        description: p.text(),
        /** The plugin that made it; null: a user. */
        owner: p.string().nullable(),
        /** The revision that runs; 0 before the first deploy has succeeded. */
        revision: p.integer(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    }
});
/** A row of `stacks`. */
export type StackRow = Row<InferEntity<typeof StackEntity>>;

/** A revision of a stack. */
export const RevisionEntity = defineEntity({
    name: 'ContainerRevision',
    tableName: 'revisions',
    properties: {
        id: p.integer().primary(),
        stack: p.string(),
        revision: p.integer(),
        setAt: p.integer(),
        setBy: p.string().nullable(),
        because: p.string(),
        /** Sealed JSON: compose text and env. */
        source: p.text(),
        /** JSON: image and digest of each service. */
        images: p.text(),
        /** JSON: what the revision exposes. */
        exposed: p.text()
    }
});
/** A row of `revisions`. */
export type RevisionRow = Row<InferEntity<typeof RevisionEntity>>;

/** The exceptions of one container or stack. */
export const ExceptionEntity = defineEntity({
    name: 'ContainerException',
    tableName: 'exceptions',
    properties: {
        subject: p.string().primary(),
        /** JSON. */
        allowed: p.text(),
        reason: p.text(),
        setBy: p.string().nullable(),
        setAt: p.integer()
    }
});
/** A row of `exceptions`. */
export type ExceptionRow = Row<InferEntity<typeof ExceptionEntity>>;

/** The login of a registry. */
export const RegistryEntity = defineEntity({
    name: 'ContainerRegistry',
    tableName: 'registries',
    properties: {
        id: p.integer().primary(),
        server: p.string(),
        username: p.string(),
        /** Sealed. */
        password: p.text()
    }
});
/** A row of `registries`. */
export type RegistryRow = Row<InferEntity<typeof RegistryEntity>>;

/** The entities of the plugin. */
export const entities = [StackEntity, RevisionEntity, ExceptionEntity, RegistryEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-stacks',
        up: [
            `create table stacks (name text primary key, version integer not null, description text not null, owner text, revision integer not null, created_at integer not null, updated_at integer not null)`,
            `create table revisions (id integer primary key autoincrement, stack text not null references stacks (name) on delete cascade, revision integer not null, set_at integer not null, set_by text,
            because text not null, source text not null, images text not null, exposed text not null, unique (stack, revision))`,
            `create table exceptions (subject text primary key, allowed text not null, reason text not null, set_by text, set_at integer not null)`,
            `create table registries (id integer primary key autoincrement, server text not null unique, username text not null, password text not null)`
        ]
    }
];
