/** The table of actions that rules called. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p } from '@portico/sdk/db';

/** Actions, those that were limited too. */
export const ActionEntity = defineEntity({
    name: 'MonitoringAction',
    tableName: 'actions',
    properties: {
        id: p.integer().primary(),
        rule: p.integer(),
        alert: p.integer(),
        at: p.integer(),
        state: p.string(),
        /** Code of the answer; null where there is none. */
        code: p.integer().nullable()
    }
});
/** An action as it is stored. */
export type ActionRow = InferEntity<typeof ActionEntity>;

/** Makes the table of actions, and the columns of rules and alerts for them. */
export const actionMigration: Migration = {
    name: '0007-actions',
    up: [
        'create table actions (id integer primary key autoincrement, rule integer not null, alert integer not null, at integer not null, state text not null, code integer)',
        'create index actions_by_rule on actions (rule, id)',
        'alter table rules add column action text',
        'alter table rules add column mandate integer',
        'alter table alerts add column action_due integer not null default 0'
    ]
};
