/** The tables of the plugin's own database. Times are milliseconds since 1970; secrets are sealed. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

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
        updatedAt: p.integer(),
        /** `off`, `check` or `apply`. */
        autoUpdate: p.string(),
        autoHours: p.integer(),
        /** When images were last looked at. */
        autoAt: p.integer(),
        /** In the address of the hook; null: there is none. */
        hookKey: p.string().nullable(),
        /** SHA-256 of the hook's token. */
        hookToken: p.string().nullable()
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

/** A snapshot of the volumes of a stack. */
export const SnapshotEntity = defineEntity({
    name: 'ContainerSnapshot',
    tableName: 'snapshots',
    properties: {
        id: p.string().primary(),
        stack: p.string(),
        bytes: p.integer(),
        /** JSON: names, in the order of the files. */
        volumes: p.text(),
        takenAt: p.integer()
    }
});
/** A row of `snapshots`. */
export type SnapshotRow = Row<InferEntity<typeof SnapshotEntity>>;

/** A host that leads to a port of a container. */
export const HostEntity = defineEntity({
    name: 'ContainerHost',
    tableName: 'hosts',
    properties: {
        /** The number of the host in the core. */
        id: p.integer().primary(),
        /** Name; null where stack and service say which. */
        container: p.string().nullable(),
        stack: p.string().nullable(),
        service: p.string().nullable(),
        port: p.integer(),
        scheme: p.string(),
        /** The address that it leads to now; null while there is none. */
        target: p.string().nullable()
    }
});
/** A row of `hosts`. */
export type HostRow = Row<InferEntity<typeof HostEntity>>;

/** What a registry said of an image. */
export const ImageCheckEntity = defineEntity({
    name: 'ContainerImageCheck',
    tableName: 'image_checks',
    properties: {
        /** Id of the image. */
        image: p.string().primary(),
        state: p.string(),
        /** What the registry has under the same name. */
        digest: p.string().nullable(),
        checkedAt: p.integer(),
        /** The digest of the newest notice. */
        told: p.string().nullable()
    }
});
/** A row of `image_checks`. */
export type ImageCheckRow = Row<InferEntity<typeof ImageCheckEntity>>;

/** A container that a stack took over while it has no labels of its own: it has them when it is made again. */
export const AdoptedEntity = defineEntity({
    name: 'ContainerAdopted',
    tableName: 'adopted',
    properties: {
        /** Id of the container. */
        container: p.string().primary(),
        stack: p.string(),
        service: p.string()
    }
});
/** A row of `adopted`. */
export type AdoptedRow = Row<InferEntity<typeof AdoptedEntity>>;

/** The entities of the plugin. */
export const entities = [
    StackEntity,
    RevisionEntity,
    ExceptionEntity,
    RegistryEntity,
    SnapshotEntity,
    HostEntity,
    ImageCheckEntity,
    AdoptedEntity
];

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
    },
    {
        name: '0002-hosts-hooks-snapshots',
        up: [
            `alter table stacks add column auto_update text not null default 'off'`,
            `alter table stacks add column auto_hours integer not null default 24`,
            `alter table stacks add column auto_at integer not null default 0`,
            `alter table stacks add column hook_key text`,
            `alter table stacks add column hook_token text`,
            `create unique index stacks_hook on stacks (hook_key)`,
            `create table snapshots (id text primary key, stack text not null, bytes integer not null, volumes text not null, taken_at integer not null)`,
            `create table hosts (id integer primary key, container text, stack text, service text, port integer not null, scheme text not null, target text)`,
            `create table image_checks (image text primary key, state text not null, digest text, checked_at integer not null, told text)`
        ]
    },
    {
        name: '0003-adopted',
        up: [`create table adopted (container text primary key, stack text not null, service text not null)`]
    }
];
