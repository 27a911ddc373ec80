/** The tables of the plugin's own database. Times are milliseconds since 1970; lists and objects are JSON. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

/** What asked for a run. */
export type Trigger = 'manual' | 'schedule' | 'missed' | 'retry';
/** Where a run stands; `queued` and `running` are the states that are not final. */
export type RunState =
    'queued' | 'running' | 'succeeded' | 'incomplete' | 'failed' | 'cancelled' | 'interrupted';
/** Which ends of runs send a notification. */
export type NotifyOn = 'failure' | 'always' | 'never';

/** A repository of restic. */
export const RepositoryEntity = defineEntity({
    name: 'BackupRepository',
    tableName: 'repositories',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        /** Its address as one text, which no other repository has; of `local` the path. */
        path: p.string(),
        appendOnly: p.boolean(),
        /** Sealed: the password, or, in a text that begins with a brace, JSON of all secrets. */
        password: p.text(),
        /** JSON of a connection without its secrets; null for a folder of this machine. */
        connection: p.text().nullable(),
        /** JSON: names of the secrets that are set beside the password. */
        secretsSet: p.text(),
        uploadKiBps: p.integer().nullable().fieldName('upload_kibps'),
        downloadKiBps: p.integer().nullable().fieldName('download_kibps'),
        /** JSON: `{ state, message, snapshots, storedBytes }` as it was seen last. */
        status: p.text(),
        /** JSON: `{ at, ok, message }` of the last check. */
        lastCheck: p.text().nullable(),
        createdAt: p.integer()
    }
});
/** A row of `repositories`. */
export type RepositoryRow = Row<InferEntity<typeof RepositoryEntity>>;

/** What is backed up to where, and when. */
export const PlanEntity = defineEntity({
    name: 'BackupPlan',
    tableName: 'plans',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        repositoryId: p.integer(),
        sources: p.text(),
        excludes: p.text(),
        tags: p.text(),
        schedule: p.text().nullable(),
        keep: p.text(),
        /** JSON: ids of further repositories. */
        copyTo: p.text(),
        retries: p.integer(),
        backoffSeconds: p.integer(),
        /** JSON: `{ cron, readPercent }`. */
        check: p.text().nullable().fieldName('check_rule'),
        /** JSON: `{ cron }`. */
        drill: p.text().nullable().fieldName('drill_rule'),
        /** Sealed JSON: `{ before, after }`. */
        hooks: p.text().nullable(),
        notifyOn: p.string().$type<NotifyOn>(),
        enabled: p.boolean(),
        lastSuccessAt: p.integer().nullable(),
        /** When people were told that it is overdue; null after a success. */
        overdueAt: p.integer().nullable(),
        createdAt: p.integer(),
        updatedAt: p.integer()
    }
});
/** A row of `plans`. */
export type PlanRow = Row<InferEntity<typeof PlanEntity>>;

/** One run of a plan. */
export const RunEntity = defineEntity({
    name: 'BackupRun',
    tableName: 'runs',
    properties: {
        id: p.integer().primary(),
        planId: p.integer(),
        trigger: p.string().$type<Trigger>(),
        state: p.string().$type<RunState>(),
        dryRun: p.boolean(),
        attempt: p.integer(),
        startedAt: p.integer(),
        finishedAt: p.integer().nullable(),
        snapshotId: p.string().nullable(),
        message: p.text().nullable(),
        sources: p.text(),
        /** JSON: the lines of its log. */
        log: p.text()
    }
});
/** A row of `runs`. */
export type RunRow = Row<InferEntity<typeof RunEntity>>;

/** One proof that a snapshot comes back. */
export const DrillEntity = defineEntity({
    name: 'BackupDrill',
    tableName: 'drills',
    properties: { id: p.integer().primary(), planId: p.integer(), proof: p.text() }
});

/** The entities of the plugin. */
export const entities = [RepositoryEntity, PlanEntity, RunEntity, DrillEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-repositories-plans-runs-drills',
        up: [
            `create table repositories (id integer primary key autoincrement, version integer not null, name text not null, path text not null unique, append_only integer not null,
            password text not null, last_check text, created_at integer not null)`,
            `create table plans (id integer primary key autoincrement, version integer not null, name text not null, repository_id integer not null references repositories (id), sources text not null,
            excludes text not null, tags text not null, schedule text, keep text not null, notify_on text not null, enabled integer not null, last_success_at integer, created_at integer not null, updated_at integer not null)`,
            `create table runs (id integer primary key autoincrement, plan_id integer not null references plans (id) on delete cascade, trigger text not null, state text not null, dry_run integer not null,
            started_at integer not null, finished_at integer, snapshot_id text, message text, sources text not null)`,
            'create index runs_of_plan on runs (plan_id, id)',
            'create table drills (id integer primary key autoincrement, plan_id integer not null references plans (id) on delete cascade, proof text not null)'
        ]
    },
    {
        name: '0002-targets-copies-clocks',
        up: [
            'alter table repositories add column connection text',
            "alter table repositories add column secrets_set text not null default '[]'",
            'alter table repositories add column upload_kibps integer',
            'alter table repositories add column download_kibps integer',
            "alter table repositories add column status text not null default '{}'",
            "alter table plans add column copy_to text not null default '[]'",
            'alter table plans add column retries integer not null default 2',
            'alter table plans add column backoff_seconds integer not null default 300',
            'alter table plans add column check_rule text',
            'alter table plans add column drill_rule text',
            'alter table plans add column hooks text',
            'alter table plans add column overdue_at integer',
            'alter table runs add column attempt integer not null default 1',
            "alter table runs add column log text not null default '[]'"
        ]
    }
];
