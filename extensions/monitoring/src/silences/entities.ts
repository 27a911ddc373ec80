/** The tables of silences, and what alerts and rules know for them. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

/** Spans of time in which alerts are recorded and not told. */
export const SilenceEntity = defineEntity({
    name: 'MonitoringSilence',
    tableName: 'silences',
    properties: {
        id: p.integer().primary(),
        /** Null: of any rule; the same for the metric and the instance. */
        ruleId: p.integer().fieldName('rule_id').nullable(),
        metric: p.string().nullable(),
        instance: p.string().nullable(),
        from: p.integer().fieldName('begins'),
        until: p.integer().fieldName('ends'),
        reason: p.string(),
        createdBy: p.string().fieldName('created_by').nullable(),
        version: p.integer()
    }
});
/** A silence as it is stored. */
export type SilenceRow = InferEntity<typeof SilenceEntity>;

/** Makes the table of silences, and the columns of how alerts are told. */
export const silenceMigration: Migration = {
    name: '0006-silences',
    up: [
        `create table silences (id integer primary key autoincrement, rule_id integer, metric text, instance text, begins integer not null, ends integer not null,
        reason text not null, created_by text, version integer not null)`,
        'alter table rules add column repeat_seconds integer',
        'alter table rules add column cooldown_seconds integer not null default 0',
        'alter table alerts add column told_at integer',
        'alter table alerts add column acknowledged_by text',
        'alter table alerts add column acknowledged_at integer',
        'alter table alerts add column note text',
        'alter table alerts add column silenced_by integer'
    ]
};
