/** The tables of checks. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

import type { Expect } from './schema.ts';

/** Checks. Their states and results are written without the ORM. */
export const CheckEntity = defineEntity({
    name: 'MonitoringCheck',
    tableName: 'checks',
    properties: {
        id: p.integer().primary(),
        name: p.string(),
        kind: p.string(),
        target: p.string(),
        intervalSeconds: p.integer().fieldName('interval_seconds'),
        timeoutSeconds: p.integer().fieldName('timeout_seconds'),
        retries: p.integer(),
        enabled: p.boolean(),
        tags: p.json().$type<readonly string[]>(),
        /** Without its headers. */
        expect: p.json().$type<Omit<Expect, 'headers'>>(),
        /** Sealed JSON of the headers; null: none. */
        headers: p.string().nullable(),
        version: p.integer(),
        createdAt: p.integer().fieldName('created_at'),
        updatedAt: p.integer().fieldName('updated_at')
    }
});
/** A check as it is stored. */
export type CheckRow = InferEntity<typeof CheckEntity>;

/** Makes the tables of checks, and the rules that tell of them. */
export const checkMigration: Migration = {
    name: '0005-checks',
    up: [
        `create table checks (id integer primary key autoincrement, name text not null collate nocase unique, kind text not null, target text not null, interval_seconds integer not null,
        timeout_seconds integer not null, retries integer not null, enabled integer not null, tags text not null, expect text not null, headers text,
        version integer not null, created_at integer not null, updated_at integer not null)`,
        `create table check_states (check_id integer primary key, state text not null, since integer not null, at integer not null, latency real, code text, message text,
        failures integer not null, issuer text, not_after integer)`,
        `create table check_results (check_id integer not null, at integer not null, state text not null, latency real, code text, message text, phases text not null, kept integer not null,
        primary key (check_id, at)) without rowid`,
        'create table check_hours (check_id integer not null, hour integer not null, up integer not null, down integer not null, primary key (check_id, hour)) without rowid',
        ...[
            ['A check is down', 'check.up', '<', 1, 'critical'],
            ['The certificate of a check ends soon', 'check.certificateDays', '<', 14, 'warning']
        ].map(
            ([name, metric, operator, threshold, severity]) =>
                `insert or ignore into rules (name, metric, operator, threshold, recover_threshold, for_seconds, severity, enabled, version, created_at, updated_at)
        values ('${name}', '${metric}', '${operator}', ${threshold}, null, 0, '${severity}', 1, 1, unixepoch('subsec') * 1000, unixepoch('subsec') * 1000)`
        )
    ]
};
