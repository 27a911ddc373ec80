/** The tables of the plugin's own database: the trash, uploads, and temporary files that must not outlive a crash. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

/** An entry in the trash. It lies at `.portico/trash/<key>` of its root. Times are milliseconds since 1970. */
export const TrashEntity = defineEntity({
    name: 'FilemanagerTrash',
    tableName: 'trash',
    properties: {
        id: p.integer().primary(),
        /** Absolute path of the root. */
        folder: p.string(),
        path: p.string(),
        key: p.string(),
        type: p.string(),
        size: p.integer(),
        at: p.integer(),
        actor: p.string()
    }
});
/** A row of `trash`. */
export type TrashRow = InferEntity<typeof TrashEntity>;

/** An upload. Its bytes lie at `.portico/uploads/<id>` of its root until it is complete. */
export const UploadEntity = defineEntity({
    name: 'FilemanagerUpload',
    tableName: 'uploads',
    properties: {
        id: p.string().primary(),
        folder: p.string(),
        /** Name of the root when the upload began. */
        root: p.string(),
        path: p.string(),
        length: p.integer(),
        /** `Actor.key` of the actor who began it; no other actor can see it. */
        actor: p.string(),
        metadata: p.text(),
        replace: p.boolean(),
        done: p.boolean(),
        expires: p.integer()
    }
});
/** A row of `uploads`. */
export type UploadRow = InferEntity<typeof UploadEntity>;

/** A temporary file that is being written. A row that is still here at a start was left by a crash. */
export const ScratchEntity = defineEntity({
    name: 'FilemanagerScratch',
    tableName: 'scratch',
    properties: { id: p.string().primary(), folder: p.string(), path: p.string() }
});

/** An earlier content of a file. Its bytes lie at `.portico/versions/<checksum>` of its root, once for all rows that have it. */
export const VersionEntity = defineEntity({
    name: 'FilemanagerVersion',
    tableName: 'versions',
    properties: {
        id: p.integer().primary(),
        folder: p.string(),
        path: p.string(),
        /** SHA-256, in hexadecimal digits. */
        checksum: p.string(),
        size: p.integer(),
        at: p.integer(),
        /** Who replaced it. */
        actor: p.string()
    }
});
/** A row of `versions`. */
export type VersionRow = InferEntity<typeof VersionEntity>;

/** The entities of the plugin. */
export const entities = [TrashEntity, UploadEntity, ScratchEntity, VersionEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-trash-uploads-scratch',
        up: [
            `create table trash (id integer primary key autoincrement, folder text not null, path text not null, "key" text not null unique, type text not null, size integer not null, at integer not null, actor text not null)`,
            'create index trash_of_folder on trash (folder, id)',
            `create table uploads (id text primary key, folder text not null, root text not null, path text not null, length integer not null, actor text not null, metadata text not null,
            "replace" integer not null, done integer not null, expires integer not null)`,
            'create index uploads_by_expiry on uploads (expires)',
            'create table scratch (id text primary key, folder text not null, path text not null)'
        ]
    },
    {
        name: '0002-versions',
        up: [
            'create table versions (id integer primary key autoincrement, folder text not null, path text not null, checksum text not null, size integer not null, at integer not null, actor text not null)',
            'create index versions_of_path on versions (folder, path, id)',
            'create index versions_of_checksum on versions (folder, checksum)'
        ]
    }
];
