/** The tables of the plugin's own database. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** The draft, what is applied, and the trial: one row with the id 1. */
export const StateEntity = defineEntity({
    name: 'FirewallState',
    tableName: 'state',
    properties: {
        id: p.integer().primary(),
        /** JSON of a model. */
        draft: p.text(),
        draftVersion: p.integer(),
        /** The next id of a rule, zone, set or translation. */
        nextId: p.integer(),
        /** JSON of a model; null while the firewall is off. */
        applied: p.text().nullable(),
        appliedVersion: p.integer().nullable(),
        /** What `nft` listed after the last change of the table by this plugin. */
        fingerprint: p.text().nullable(),
        /** JSON of a trial. */
        trial: p.text().nullable(),
        lastOutcome: p.text().nullable(),
        /** 1: an admin took the table away; bans stay out of the kernel until the next apply. */
        isOff: p.boolean(),
        isPersistent: p.boolean()
    }
});
/** The row of the state. */
export type StateRow = Row<InferEntity<typeof StateEntity>>;

/** Models that were applied. */
export const HistoryEntity = defineEntity({
    name: 'FirewallHistory',
    tableName: 'history',
    properties: {
        version: p.integer().primary(),
        at: p.integer(),
        /** Username; null: the plugin itself. */
        by: p.string().nullable(),
        outcome: p.string().$type<'confirmed' | 'reverted' | 'expired'>(),
        /** JSON of a model. */
        model: p.text()
    }
});

/** The elements of a set of the model. */
export const ListEntity = defineEntity({
    name: 'FirewallList',
    tableName: 'lists',
    properties: {
        /** Id of the set. */
        set: p.integer().primary().fieldName('set_id'),
        /** One element on each line: its interval, and after a space when it ends. */
        elements: p.text(),
        count: p.integer(),
        skipped: p.integer(),
        updatedAt: p.integer().nullable(),
        error: p.string().nullable()
    }
});
/** A row of `lists`. */
export type ListRow = Row<InferEntity<typeof ListEntity>>;

/** Addresses that are banned. */
export const BanEntity = defineEntity({
    name: 'FirewallBan',
    tableName: 'bans',
    properties: {
        id: p.integer().primary(),
        /** Canonical address or prefix. */
        address: p.string(),
        source: p.string().$type<'manual' | 'login'>(),
        reason: p.string().nullable(),
        /** Null: it stays. */
        until: p.integer().nullable(),
        createdAt: p.integer()
    }
});
/** A row of `bans`. */
export type BanRow = Row<InferEntity<typeof BanEntity>>;

/** How often an address was banned for failed logins. */
export const OffenderEntity = defineEntity({
    name: 'FirewallOffender',
    tableName: 'offenders',
    properties: { address: p.string().primary(), times: p.integer(), lastAt: p.integer() }
});

/** The entities of the plugin. */
export const entities = [StateEntity, HistoryEntity, ListEntity, BanEntity, OffenderEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-state-history-lists-bans',
        up: [
            `create table state (id integer primary key, draft text not null, draft_version integer not null, next_id integer not null, applied text, applied_version integer,
            fingerprint text, trial text, last_outcome text, is_off integer not null, is_persistent integer not null)`,
            `insert into state values (1, '{"policy":{"input":"accept","output":"accept","forward":"accept","container":"accept"},"zones":[],"services":[],"sets":[],"rules":[],"nat":[]}',
            1, 1, null, null, null, null, null, 0, 0)`,
            `create table history (version integer primary key, at integer not null, "by" text, outcome text not null, model text not null)`,
            'create table lists (set_id integer primary key, elements text not null, count integer not null, skipped integer not null, updated_at integer, error text)',
            'create table bans (id integer primary key autoincrement, address text not null unique, source text not null, reason text, until integer, created_at integer not null)',
            'create table offenders (address text primary key, times integer not null, last_at integer not null)'
        ]
    }
];
