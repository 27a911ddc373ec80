/** The tables of the plugin's own database. Times are milliseconds since 1970; values of apps are sealed. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** A place that apps come from. */
export const SourceEntity = defineEntity({
    name: 'AppstoreSource',
    tableName: 'sources',
    properties: {
        name: p.string().primary(),
        kind: p.string(),
        url: p.string(),
        publicKey: p.string().nullable(),
        branch: p.string().nullable(),
        acceptUnsigned: p.boolean(),
        enabled: p.boolean(),
        version: p.integer(),
        /** `pending`, `ready` or `error`; whether it has expired, the clock says. */
        state: p.string(),
        sequence: p.integer().nullable(),
        commit: p.string().nullable(),
        expiresAt: p.integer().nullable(),
        /** The key that the last index announced, and may be signed with next. */
        nextKey: p.string().nullable(),
        /** SHA-256 of the index that was taken. */
        taken: p.string().nullable(),
        /** JSON. */
        categories: p.text(),
        /** JSON. */
        templates: p.text(),
        apps: p.integer(),
        lastSyncAt: p.integer().nullable(),
        lastError: p.text().nullable()
    }
});
/** A row of `sources`. */
export type SourceRow = Row<InferEntity<typeof SourceEntity>>;

/** An app that a source offers. */
export const AppEntity = defineEntity({
    name: 'AppstoreApp',
    tableName: 'apps',
    properties: {
        /** `source/id`. */
        key: p.string().primary(),
        source: p.string(),
        id: p.string(),
        version: p.string(),
        /** JSON, as the index has them: title, tagline, categories, architectures, website. */
        about: p.text(),
        /** SHA-256 of its document; null: it cannot be taken over, and `why` says so. */
        document: p.string().nullable(),
        icon: p.string().nullable(),
        why: p.text().nullable()
    }
});
/** A row of `apps`. */
export type AppRow = Row<InferEntity<typeof AppEntity>>;

/** Documents and icons by their SHA-256. */
export const FileEntity = defineEntity({
    name: 'AppstoreFile',
    tableName: 'files',
    properties: {
        sha256: p.string().primary(),
        /** Of an icon its media type. */
        type: p.string(),
        /** Of an icon in base64. */
        body: p.text()
    }
});
/** A row of `files`. */
export type FileRow = Row<InferEntity<typeof FileEntity>>;

/** An app that is installed. */
export const InstalledEntity = defineEntity({
    name: 'AppstoreInstalled',
    tableName: 'installed',
    properties: {
        name: p.string().primary(),
        source: p.string(),
        app: p.string(),
        keyId: p.string().nullable(),
        /** The revision that runs; 0 until the install has succeeded. */
        revision: p.integer(),
        /** `installing`, `updating`, `failed` or `ready`: then the stack says more. */
        state: p.string(),
        port: p.integer(),
        domain: p.string().nullable(),
        hostId: p.integer().nullable(),
        ssl: p.boolean(),
        sslMode: p.string().nullable(),
        autoUpdate: p.string(),
        /** JSON: versions that were taken back, which are not tried again by themselves. */
        takenBack: p.text(),
        /** JSON of the change under way; null: none. What a killed panel left is read from it. */
        operation: p.text().nullable(),
        lastError: p.text().nullable(),
        createdAt: p.integer()
    }
});
/** A row of `installed`. */
export type InstalledRow = Row<InferEntity<typeof InstalledEntity>>;

/** A revision of an installed app: all that is needed to deploy it again. */
export const RevisionEntity = defineEntity({
    name: 'AppstoreRevision',
    tableName: 'revisions',
    properties: {
        id: p.integer().primary(),
        name: p.string(),
        revision: p.integer(),
        version: p.string(),
        setAt: p.integer(),
        setBy: p.string().nullable(),
        because: p.string(),
        /** SHA-256 of its document. */
        document: p.string(),
        /** Sealed JSON: values of the form. */
        values: p.text(),
        /** JSON: published ports, limits, and ports on loopback. */
        layout: p.text(),
        /** JSON: digests of images by service. */
        digests: p.text(),
        /** JSON: what it exposes. */
        exposure: p.text()
    }
});
/** A row of `revisions`. */
export type RevisionRow = Row<InferEntity<typeof RevisionEntity>>;

/** A backup of an app's volumes. */
export const BackupEntity = defineEntity({
    name: 'AppstoreBackup',
    tableName: 'backups',
    properties: {
        id: p.integer().primary(),
        name: p.string(),
        /** The revision that ran when it was made. */
        revision: p.integer(),
        version: p.string(),
        madeAt: p.integer(),
        bytes: p.integer(),
        because: p.string(),
        /** The snapshot in `container`. */
        snapshot: p.string()
    }
});
/** A row of `backups`. */
export type BackupRow = Row<InferEntity<typeof BackupEntity>>;

/** Volumes that stayed when their app was removed. */
export const LeftoverEntity = defineEntity({
    name: 'AppstoreLeftover',
    tableName: 'leftovers',
    properties: {
        name: p.string().primary(),
        source: p.string(),
        app: p.string(),
        keyId: p.string().nullable(),
        bytes: p.integer(),
        leftAt: p.integer(),
        /** Sealed JSON: what the data were made with, such as the password of a database. */
        values: p.text(),
        port: p.integer()
    }
});
/** A row of `leftovers`. */
export type LeftoverRow = Row<InferEntity<typeof LeftoverEntity>>;

/** The entities of the plugin. */
export const entities = [
    SourceEntity,
    AppEntity,
    FileEntity,
    InstalledEntity,
    RevisionEntity,
    BackupEntity,
    LeftoverEntity
];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-apps',
        up: [
            `create table sources (name text primary key, kind text not null, url text not null, public_key text, branch text, accept_unsigned integer not null, enabled integer not null, version integer not null,
            state text not null, sequence integer, "commit" text, expires_at integer, next_key text, taken text, categories text not null, templates text not null, apps integer not null,
            last_sync_at integer, last_error text)`,
            `create table apps (key text primary key, source text not null references sources (name) on delete cascade, id text not null, version text not null, about text not null, document text, icon text, why text)`,
            `create index apps_source on apps (source)`,
            `create table files (sha256 text primary key, type text not null, body text not null)`,
            `create table installed (name text primary key, source text not null, app text not null, key_id text, revision integer not null, state text not null, port integer not null, domain text, host_id integer,
            ssl integer not null, ssl_mode text, auto_update text not null, taken_back text not null, operation text, last_error text, created_at integer not null)`,
            `create table revisions (id integer primary key autoincrement, name text not null references installed (name) on delete cascade, revision integer not null, version text not null, set_at integer not null,
            set_by text, because text not null, document text not null, "values" text not null, layout text not null, digests text not null, exposure text not null, unique (name, revision))`,
            `create table backups (id integer primary key autoincrement, name text not null references installed (name) on delete cascade, revision integer not null, version text not null, made_at integer not null,
            bytes integer not null, because text not null, snapshot text not null)`,
            `create table leftovers (name text primary key, source text not null, app text not null, key_id text, bytes integer not null, left_at integer not null, "values" text not null, port integer not null)`
        ]
    }
];
