/** The tables of the plugin's own database. Times are milliseconds since 1970; secrets are sealed. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

import type { Address, KindName, Level } from './kinds/kind.ts';
import type { OptionValue, Preset } from './managed/engine.ts';

/** When all databases of a server are dumped by themselves. */
export interface DumpSchedule {
    readonly cron: string;
    /** IANA name; absent: the machine's. */
    readonly timezone?: string | undefined;
    /** Dumps kept of each database; absent: as the settings say. */
    readonly keep?: number | undefined;
}

/** A server that the panel knows. */
export const ServerEntity = defineEntity({
    name: 'DatabaseServer',
    tableName: 'servers',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        kind: p.string().$type<KindName>(),
        mode: p.string().$type<'registered' | 'managed'>(),
        host: p.string().nullable(),
        port: p.integer(),
        socket: p.string().nullable(),
        tls: p.string().$type<Address['tls']>(),
        ca: p.text().nullable(),
        username: p.string(),
        /** Sealed; null: the account has none. */
        password: p.text().nullable(),
        /** Sealed: the password that a rotation is about to set. It may be the real one when the rotation was cut. */
        nextPassword: p.text().nullable(),
        readerName: p.string().nullable(),
        /** Sealed. */
        readerPassword: p.text().nullable(),
        /** The panel made the reader, so the panel gives it its rights. */
        readerMade: p.boolean(),
        dumpSchedule: p.json().$type<DumpSchedule>().nullable(),
        /** Sealed: what masks of clones are made with, so that the same value becomes the same one in all of them. */
        maskKey: p.text().nullable(),
        serverVersion: p.string().nullable(),
        flavour: p.string().nullable(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    }
});
/** A row of `servers`. */
export type ServerRow = Row<InferEntity<typeof ServerEntity>>;

/** A statement that a user ran. */
export const HistoryEntity = defineEntity({
    name: 'DatabaseHistory',
    tableName: 'history',
    properties: {
        id: p.integer().primary(),
        serverId: p.integer(),
        /** Of the actor who ran it; the only one who reads it. */
        actor: p.string(),
        database: p.string(),
        /** Sealed: it may hold what is private. */
        sql: p.text(),
        write: p.boolean(),
        at: p.integer(),
        durationMs: p.integer(),
        rows: p.integer().nullable(),
        /** Reason of the failure; null when it succeeded. */
        failure: p.string().nullable()
    }
});
/** A row of `history`. */
export type HistoryRow = Row<InferEntity<typeof HistoryEntity>>;

/** A dump of one database. */
export const DumpEntity = defineEntity({
    name: 'DatabaseDump',
    tableName: 'dumps',
    properties: {
        id: p.integer().primary(),
        /** Null for a file that was uploaded, and when the server was forgotten. */
        serverId: p.integer().nullable(),
        kind: p.string().$type<KindName>(),
        database: p.string(),
        format: p.string().$type<'native' | 'sql'>(),
        encoding: p.string(),
        /** Below the folder of the settings. */
        file: p.string(),
        bytes: p.bigint('number'),
        sha256: p.string(),
        state: p.string().$type<'running' | 'ready'>(),
        createdAt: p.integer()
    }
});
/** A row of `dumps`. */
export type DumpRow = Row<InferEntity<typeof DumpEntity>>;

/** Something on a server that exists only until work is done. */
export const UnfinishedEntity = defineEntity({
    name: 'DatabaseUnfinished',
    tableName: 'unfinished',
    properties: {
        id: p.integer().primary(),
        serverId: p.integer(),
        type: p.string(),
        name: p.string()
    }
});

/** An account with an end. */
export const CredentialEntity = defineEntity({
    name: 'DatabaseCredential',
    tableName: 'credentials',
    properties: {
        id: p.integer().primary(),
        serverId: p.integer(),
        /** As the server names it. */
        account: p.string(),
        database: p.string(),
        level: p.string().$type<Level>(),
        createdAt: p.integer(),
        expiresAt: p.integer()
    }
});
/** A row of `credentials`. */
export type CredentialRow = Row<InferEntity<typeof CredentialEntity>>;

/** The data of a server as they were before its upgrade. */
export interface PreviousRelease {
    readonly release: string;
    /** Name of the data folder; of a server in a container that of a snapshot. */
    readonly folder: string;
    /** When the upgrade began. */
    readonly at: number;
    readonly bytes: number;
}

/** What is known of a server that the panel runs, beside its row of `servers`. */
export const ManagedEntity = defineEntity({
    name: 'DatabaseManaged',
    tableName: 'managed',
    properties: {
        /** Of the server. */
        id: p.integer().primary(),
        /** A program of this machine, or a container of an official image. */
        runtime: p.string().$type<'native' | 'container'>(),
        release: p.string(),
        /** All memory that it may use; null: no limit. */
        memoryBytes: p.bigint('number').nullable(),
        preset: p.string().$type<Preset>(),
        /** What an admin set beside the preset, by name. */
        options: p.json().$type<Readonly<Record<string, OptionValue>>>(),
        /** Other machines may reach it, over TLS. */
        remote: p.boolean(),
        /** Networks that they are in. */
        allow: p.json().$type<readonly string[]>(),
        /** `ending`: an admin turned it off, and the server may keep its log until its next start. */
        pointInTime: p.string().$type<'off' | 'on' | 'ending'>(),
        /** Name of its data folder. */
        folder: p.string(),
        /** What an upgrade left. */
        previous: p.json().$type<PreviousRelease>().nullable(),
        /** What is under way with it. What a killed panel left there is finished (`switching`, `removing`, `deleting`) or undone (`creating`, `upgrading`) at the next start. */
        phase: p.string().$type<'creating' | 'ready' | 'upgrading' | 'switching' | 'removing' | 'deleting'>()
    }
});
/** A row of `managed`. */
export type ManagedRow = Row<InferEntity<typeof ManagedEntity>>;

/** A copy of all data of a server, from which its log leads to later times. */
export const BaseCopyEntity = defineEntity({
    name: 'DatabaseBaseCopy',
    tableName: 'base_copies',
    properties: {
        id: p.integer().primary(),
        serverId: p.integer(),
        bytes: p.bigint('number'),
        /** The first file of the log that it needs; empty until it is complete. */
        firstLog: p.string(),
        /** When it was complete; null until then. */
        readyAt: p.integer().nullable()
    }
});
/** A row of `base_copies`. */
export type BaseCopyRow = Row<InferEntity<typeof BaseCopyEntity>>;

/** What a server did in one minute. */
export const MetricEntity = defineEntity({
    name: 'DatabaseMetric',
    tableName: 'metrics',
    properties: {
        id: p.integer().primary(),
        serverId: p.integer(),
        at: p.integer(),
        connections: p.integer(),
        /** Null where there is no earlier measurement to compare with. */
        perSecond: p.float().nullable(),
        /** 0 to 1: pages that were found in memory. */
        cacheHits: p.float().nullable()
    }
});

/** The entities of the plugin. */
export const entities = [
    ServerEntity,
    HistoryEntity,
    DumpEntity,
    UnfinishedEntity,
    CredentialEntity,
    ManagedEntity,
    BaseCopyEntity,
    MetricEntity
];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-servers-history',
        up: [
            `create table servers (id integer primary key autoincrement, version integer not null, name text not null unique, kind text not null, mode text not null, host text, port integer not null, socket text,
            tls text not null, ca text, username text not null, password text, next_password text, reader_name text, reader_password text, reader_made integer not null, server_version text, flavour text,
            created_at integer not null, updated_at integer not null)`,
            `create table history (id integer primary key autoincrement, server_id integer not null references servers (id) on delete cascade, actor text not null, database text not null, sql text not null,
            write integer not null, at integer not null, duration_ms integer not null, rows integer, failure text)`,
            'create index history_of_actor on history (actor, id)'
        ]
    },
    {
        name: '0002-dumps',
        up: [
            `create table dumps (id integer primary key autoincrement, server_id integer references servers (id) on delete set null, kind text not null, database text not null, format text not null,
            encoding text not null, file text not null, bytes integer not null, sha256 text not null, state text not null, created_at integer not null)`,
            'create table unfinished (id integer primary key autoincrement, server_id integer not null references servers (id) on delete cascade, type text not null, name text not null)'
        ]
    },
    {
        name: '0003-credentials',
        up: [
            `create table credentials (id integer primary key autoincrement, server_id integer not null references servers (id) on delete cascade, account text not null, database text not null,
            level text not null, created_at integer not null, expires_at integer not null)`
        ]
    },
    {
        name: '0004-managed',
        up: [
            `create table managed (id integer primary key references servers (id) on delete cascade, release text not null, memory_bytes integer, preset text not null, options text not null,
            phase text not null)`
        ]
    },
    {
        name: '0005-metrics',
        up: [
            `create table metrics (id integer primary key autoincrement, server_id integer not null references servers (id) on delete cascade, at integer not null, connections integer not null,
            per_second real, cache_hits real)`,
            'create index metrics_of_server on metrics (server_id, at)'
        ]
    },
    { name: '0006-dump-schedules', up: ['alter table servers add column dump_schedule text'] },
    { name: '0007-masks', up: ['alter table servers add column mask_key text'] },
    {
        name: '0008-remote-access',
        up: [
            'alter table managed add column remote integer not null default 0',
            "alter table managed add column allow text not null default '[]'"
        ]
    },
    {
        name: '0009-point-in-time',
        up: [
            "alter table managed add column point_in_time text not null default 'off'",
            `create table base_copies (id integer primary key autoincrement, server_id integer not null references servers (id) on delete cascade, bytes integer not null, first_log text not null,
            ready_at integer)`
        ]
    },
    {
        name: '0010-upgrades',
        up: [
            "alter table managed add column folder text not null default 'data'",
            'alter table managed add column previous text'
        ]
    },
    {
        name: '0011-runtime',
        up: ["alter table managed add column runtime text not null default 'native'"]
    }
];
