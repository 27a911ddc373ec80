/** The tables of the plugin's database. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

import { ActionEntity, actionMigration } from './actions/entities.ts';
import type { RuleAction } from './actions/rule-action.ts';
import { CheckEntity, checkMigration } from './checks/entities.ts';
import { ExportEntity, exportMigration } from './exports/entities.ts';
import { processHistoryTable } from './processes/history.ts';
import { SilenceEntity, silenceMigration } from './silences/entities.ts';
import { trafficTables } from './traffic/rows.ts';
import { topTable } from './traffic/top.ts';

/** The table of alert rules. */
export const RuleEntity = defineEntity({
    name: 'MonitoringRule',
    tableName: 'rules',
    properties: {
        id: p.integer().primary(),
        name: p.string(),
        metric: p.string(),
        operator: p.string(),
        threshold: p.float(),
        /** Null means the threshold itself. */
        recoverThreshold: p.float().fieldName('recover_threshold').nullable(),
        forSeconds: p.integer().fieldName('for_seconds'),
        severity: p.string(),
        enabled: p.boolean(),
        /** Ids of the channels that alone tell of it; null: those whose events match. */
        channels: p.json().$type<readonly number[]>().nullable(),
        /** Null: told once. */
        repeatSeconds: p.integer().fieldName('repeat_seconds').nullable(),
        cooldownSeconds: p.integer().fieldName('cooldown_seconds'),
        action: p.json().$type<RuleAction>().nullable(),
        /** The mandate under which the action is called; null until a person authorizes it. */
        mandate: p.integer().nullable(),
        version: p.integer(),
        createdAt: p.integer().fieldName('created_at'),
        updatedAt: p.integer().fieldName('updated_at')
    }
});
/** An alert rule as it is stored. */
export type RuleRow = InferEntity<typeof RuleEntity>;

/** Alerts, those that fire and those that are over. */
export const AlertEntity = defineEntity({
    name: 'MonitoringAlert',
    tableName: 'alerts',
    properties: {
        id: p.integer().primary(),
        rule: p.integer(),
        /** From here to `channels`: the rule as it was when the alert began, since it may change or be removed. */
        name: p.string(),
        metric: p.string(),
        instance: p.string(),
        operator: p.string(),
        threshold: p.float(),
        severity: p.string(),
        channels: p.json().$type<readonly number[]>().nullable(),
        value: p.float(),
        worst: p.float(),
        last: p.float(),
        firedAt: p.integer().fieldName('fired_at'),
        endedAt: p.integer().fieldName('ended_at').nullable(),
        endedBy: p.string().fieldName('ended_by').nullable(),
        /** 0: no notification was sent; 1: that it fires; 2: that it is over. */
        notified: p.integer().fieldName('told'),
        /** When a notification was sent last. */
        toldAt: p.integer().fieldName('told_at').nullable(),
        acknowledgedBy: p.string().fieldName('acknowledged_by').nullable(),
        acknowledgedAt: p.integer().fieldName('acknowledged_at').nullable(),
        note: p.string().nullable(),
        /** The silence that covers it now. */
        silencedBy: p.integer().fieldName('silenced_by').nullable(),
        /** The rule's action is still to be called. */
        actionDue: p.boolean().fieldName('action_due')
    }
});
/** An alert as it is stored. */
export type AlertRow = InferEntity<typeof AlertEntity>;

/** The state of a rule for one instance of its metric; an instance in the phase `ok` has no row. */
export const StateEntity = defineEntity({
    name: 'MonitoringState',
    tableName: 'states',
    properties: {
        rule: p.integer().primary(),
        instance: p.string().primary(),
        phase: p.string(),
        heldMs: p.float().fieldName('held_ms'),
        missingMs: p.float().fieldName('missing_ms'),
        seenAt: p.integer().fieldName('seen_at'),
        alert: p.integer().nullable()
    }
});

/** All entities. The tables of the history and of the traffic are written without the ORM. */
export const entities = [
    RuleEntity,
    AlertEntity,
    StateEntity,
    CheckEntity,
    SilenceEntity,
    ActionEntity,
    ExportEntity
];

const defaultRules: readonly (readonly [
    name: string,
    metric: string,
    threshold: number,
    recover: number,
    seconds: number,
    severity: string
])[] = [
    ['Disk nearly full', 'disk.usedPercent', 90, 87, 300, 'warning'],
    ['Disk full', 'disk.usedPercent', 97, 95, 60, 'critical'],
    ['Inodes nearly used up', 'disk.inodesUsedPercent', 90, 87, 300, 'warning'],
    ['Memory nearly used up', 'memory.usedPercent', 92, 85, 300, 'warning'],
    ['Load high', 'load.perCore', 2, 1.5, 300, 'warning']
];

/** The migrations, in the order in which they run. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-history-rules-alerts',
        up: [
            'create table history (id integer primary key, at integer not null, data blob not null)',
            'create table tiers (tier integer primary key, slots integer not null)',
            'create table series (id integer primary key, name text not null unique, seen integer not null)',
            'create table series_next (id integer primary key, next integer not null)',
            `create table rules (id integer primary key autoincrement, name text not null collate nocase unique, metric text not null, operator text not null, threshold real not null, recover_threshold real,
            for_seconds integer not null, severity text not null, enabled integer not null, version integer not null, created_at integer not null, updated_at integer not null)`,
            `create table alerts (id integer primary key, rule integer not null, name text not null, metric text not null, instance text not null, operator text not null, threshold real not null, severity text not null,
            value real not null, worst real not null, last real not null, fired_at integer not null, ended_at integer, ended_by text, told integer not null)`,
            'create index alerts_by_end on alerts (ended_at, id)',
            'create table states (rule integer not null, instance text not null, phase text not null, held_ms real not null, missing_ms real not null, seen_at integer not null, alert integer, primary key (rule, instance))'
        ]
    },
    {
        // In a migration, so that a default rule that an admin changes or removes does not come back.
        name: '0002-default-rules',
        up: defaultRules.map(
            ([
                name,
                metric,
                threshold,
                recover,
                seconds,
                severity
            ]) => `insert into rules (name, metric, operator, threshold, recover_threshold, for_seconds, severity, enabled, version, created_at, updated_at)
        values ('${name}', '${metric}', '>', ${threshold}, ${recover}, ${seconds}, '${severity}', 1, 1, unixepoch('subsec') * 1000, unixepoch('subsec') * 1000)`
        )
    },
    {
        name: '0003-channels',
        up: ['alter table rules add column channels text', 'alter table alerts add column channels text']
    },
    { name: '0004-traffic', up: [...trafficTables] },
    checkMigration,
    silenceMigration,
    actionMigration,
    exportMigration,
    { name: '0009-processes-top', up: [processHistoryTable, topTable] }
];
