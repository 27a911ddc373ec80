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

/** A folder or file that a user marked. Only that user sees it. */
export const FavouriteEntity = defineEntity({
    name: 'FilemanagerFavourite',
    tableName: 'favourites',
    properties: {
        id: p.integer().primary(),
        /** The id of the user, or `Actor.key` of an actor that is no user. */
        owner: p.string(),
        root: p.string(),
        path: p.string(),
        title: p.string()
    }
});
/** A row of `favourites`. */
export type FavouriteRow = InferEntity<typeof FavouriteEntity>;

/** A link by which a file or folder can be downloaded without an account. */
export const ShareEntity = defineEntity({
    name: 'FilemanagerShare',
    tableName: 'shares',
    properties: {
        id: p.integer().primary(),
        root: p.string(),
        /** Absolute path of the root when the link was made: another folder of that name is not shared. */
        folder: p.string(),
        path: p.string(),
        /** SHA-256 of the token, in hexadecimal digits. The token itself is stored nowhere. */
        hash: p.string(),
        /** The mandate of the user who made it: what that user may not read now, the link does not give. */
        mandate: p.integer(),
        maker: p.string(),
        created: p.integer(),
        expires: p.integer(),
        /** Null without a limit. */
        most: p.integer().nullable(),
        downloads: p.integer(),
        last: p.integer().nullable()
    }
});
/** A row of `shares`. */
export type ShareRow = InferEntity<typeof ShareEntity>;

/** A recorded terminal. Its text lies at `recordings/<id>.cast` of the data folder. */
export const RecordingEntity = defineEntity({
    name: 'FilemanagerRecording',
    tableName: 'recordings',
    properties: {
        id: p.integer().primary(),
        username: p.string(),
        started: p.integer(),
        /** Null while it goes on. */
        ended: p.integer().nullable(),
        bytes: p.integer()
    }
});
/** A row of `recordings`. */
export type RecordingRow = InferEntity<typeof RecordingEntity>;

/** The entities of the plugin. */
export const entities = [
    TrashEntity,
    UploadEntity,
    ScratchEntity,
    VersionEntity,
    FavouriteEntity,
    ShareEntity,
    RecordingEntity
];

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
    },
    {
        name: '0003-favourites-shares-recordings',
        up: [
            'create table favourites (id integer primary key autoincrement, owner text not null, root text not null, path text not null, title text not null, unique (owner, root, path))',
            `create table shares (id integer primary key autoincrement, root text not null, folder text not null, path text not null, hash text not null unique, mandate integer not null,
            maker text not null, created integer not null, expires integer not null, most integer, downloads integer not null, last integer)`,
            'create index shares_by_expiry on shares (expires)',
            'create table recordings (id integer primary key autoincrement, username text not null, started integer not null, ended integer, bytes integer not null)'
        ]
    }
];
