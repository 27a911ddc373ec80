/** The tables of the plugin's own database. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type InferEntity, p, type Row } from '@portico/sdk/db';

import type { BlackoutPolicy } from './schedule/blackouts.ts';

/** What happens to a run that is due while an earlier run of its task is not over. */
export type Overlap = 'skip' | 'queue' | 'allow';
/** What happens to due times that passed while nothing could run. */
export type Missed = 'skip' | 'run-once';
/** Which ends of runs send a notification. */
export type NotifyOn = 'never' | 'failure' | 'change' | 'always';
/** What asked for a run. */
export type Trigger = 'schedule' | 'manual' | 'retry' | 'missed' | 'chain' | 'token';
/** Where a run stands; `queued` and `running` are the states that are not final. */
export type RunState = 'queued' | 'running' | 'succeeded' | 'failed' | 'timeout' | 'stopped' | 'skipped';

/** A task as it was written, and when it is due. */
export const TaskEntity = defineEntity({
    name: 'CronjobTask',
    tableName: 'tasks',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        schedule: p.string(),
        timezone: p.string(),
        /** One of the next four is set. JSON array. */
        command: p.text().nullable(),
        script: p.text().nullable(),
        /** JSON of a request; its headers are null there. */
        request: p.text().nullable(),
        /** JSON object of the headers of the request, sealed as one text. */
        headers: p.text().nullable(),
        /** JSON of a call of a route. */
        route: p.text().nullable(),
        /** The mandate under which the route is called; null until a person authorizes the task. */
        mandate: p.integer().nullable(),
        user: p.string().nullable(),
        cwd: p.string().nullable(),
        /** JSON object of names and values, sealed as one text. */
        env: p.text().nullable(),
        /** JSON array: the names in `env`, which may be shown without opening it. */
        envNames: p.text(),
        timeoutSeconds: p.integer().nullable(),
        overlap: p.string().$type<Overlap>(),
        retries: p.integer(),
        backoffSeconds: p.integer(),
        missed: p.string().$type<Missed>(),
        enabled: p.boolean(),
        notifyOn: p.string().$type<NotifyOn>(),
        deadManSeconds: p.integer().nullable(),
        /** JSON object; null without limits. */
        limits: p.text().nullable(),
        /** JSON array of ids of notification channels; null: those whose events match. */
        channels: p.text().nullable(),
        /** JSON array of words. */
        tags: p.text(),
        /** JSON array; a mask stands for the default of a secret parameter. */
        parameters: p.text(),
        /** JSON object of the defaults of secret parameters, sealed as one text. */
        parameterDefaults: p.text().nullable(),
        /** JSON array of tasks that follow; in a body it is `then`. */
        steps: p.text(),
        jitterSeconds: p.integer(),
        /** JSON array. */
        blackouts: p.text(),
        blackoutPolicy: p.string().$type<BlackoutPolicy>(),
        /** JSON object; null without a sandbox. */
        sandbox: p.text().nullable(),
        createdAt: p.integer(),
        updatedAt: p.integer(),
        /** The next time by the clock; null while disabled, and of `@reboot`. */
        dueAt: p.integer().nullable(),
        /** When a due time that has come starts, because of a blackout or jitter; null when none waits. */
        startAt: p.integer().nullable(),
        /** The due time that waits for `startAt`. */
        startDueAt: p.integer().nullable(),
        /** The boot of the machine for which `@reboot` has run. */
        boot: p.string().nullable(),
        retryAt: p.integer().nullable(),
        /** Number of the next attempt; the first retry is 2. */
        retryAttempt: p.integer(),
        /** The run that failed: the retry gets its parameters. */
        retryOf: p.integer().nullable(),
        /** Since when a success is awaited. */
        awaitedSince: p.integer(),
        /** When a success will be overdue; null without `deadManSeconds`, and while it is overdue already. */
        deadAt: p.integer().nullable(),
        /** Since when a success is overdue; the notification of that was sent. */
        overdueSince: p.integer().nullable(),
        /** Whether the last run that was not retried failed. */
        failing: p.boolean()
    }
});
/** A row of `tasks`. */
export type TaskRow = Row<InferEntity<typeof TaskEntity>>;

/** One run of a task. */
export const RunEntity = defineEntity({
    name: 'CronjobRun',
    tableName: 'runs',
    properties: {
        id: p.integer().primary(),
        taskId: p.integer(),
        version: p.integer(),
        trigger: p.string().$type<Trigger>(),
        state: p.string().$type<RunState>(),
        attempt: p.integer(),
        /** The run that this one follows in a chain. */
        parentRunId: p.integer().nullable(),
        /** How many runs of its chain came before. */
        depth: p.integer(),
        /** JSON object of values by name, those of secret parameters masked; null of a task without parameters. */
        parameters: p.text().nullable(),
        /** JSON object of the given values of secret parameters, sealed as one text. */
        secretParameters: p.text().nullable(),
        /** The user, or the name of the trigger; null where the plugin itself asked. */
        askedBy: p.string().nullable(),
        dueAt: p.integer().nullable(),
        createdAt: p.integer(),
        startedAt: p.integer().nullable(),
        finishedAt: p.integer().nullable(),
        /** How many due times in a row a skipped run stands for. */
        times: p.integer(),
        exitCode: p.integer().nullable(),
        signal: p.string().nullable(),
        reason: p.string().nullable(),
        message: p.string().nullable(),
        /** What all of its processes used; null where the machine does not measure it. */
        cpuSeconds: p.float().nullable(),
        memoryPeakBytes: p.integer().nullable(),
        /** What a request or a route answered. */
        status: p.integer().nullable(),
        /** Value of the environment variable by which the processes of this run are found. */
        mark: p.string(),
        /** Path of the script's private file, while it exists. */
        scratch: p.string().nullable()
    }
});
/** A row of `runs`. */
export type RunRow = Row<InferEntity<typeof RunEntity>>;

/** What a run printed: the beginning in `head`, the end in `tail`; what lay between may have been left out. */
export const OutputEntity = defineEntity({
    name: 'CronjobOutput',
    tableName: 'outputs',
    properties: {
        runId: p.integer().primary(),
        head: p.text(),
        tail: p.text(),
        /** Bytes that were printed in all. */
        total: p.integer()
    }
});

/** An address by which a caller with its secret starts a task. */
export const TriggerEntity = defineEntity({
    name: 'CronjobTrigger',
    tableName: 'triggers',
    properties: {
        /** Random. */
        id: p.string().primary(),
        taskId: p.integer(),
        name: p.string(),
        /** Sealed. */
        secret: p.text(),
        createdAt: p.integer(),
        lastUsedAt: p.integer().nullable()
    }
});
/** A row of `triggers`. */
export type TriggerRow = Row<InferEntity<typeof TriggerEntity>>;

/** The entities of the plugin. */
export const entities = [TaskEntity, RunEntity, OutputEntity, TriggerEntity];

/** The migrations of the plugin, in order. A migration that was released never changes. */
export const migrations: readonly Migration[] = [
    {
        name: '0001-tasks-runs-outputs',
        up: [
            `create table tasks (id integer primary key autoincrement, version integer not null, name text not null, schedule text not null, timezone text not null, command text, script text, user text, cwd text,
            env text, env_names text not null, timeout_seconds integer, overlap text not null, retries integer not null, backoff_seconds integer not null, missed text not null, enabled integer not null,
            notify_on text not null, dead_man_seconds integer, created_at integer not null, updated_at integer not null, due_at integer, boot text, retry_at integer, retry_attempt integer not null,
            awaited_since integer not null, dead_at integer, overdue_since integer, failing integer not null)`,
            `create table runs (id integer primary key autoincrement, task_id integer not null references tasks (id) on delete cascade, version integer not null, trigger text not null, state text not null,
            attempt integer not null, due_at integer, created_at integer not null, started_at integer, finished_at integer, times integer not null, exit_code integer, signal text, reason text, message text, mark text not null, scratch text)`,
            'create index runs_of_task on runs (task_id, id)',
            'create index runs_by_state on runs (state, id)',
            'create table outputs (run_id integer primary key references runs (id) on delete cascade, head text not null, tail text not null, total integer not null)'
        ]
    },
    {
        name: '0002-limits-channels-usage',
        up: [
            'alter table tasks add column limits text',
            'alter table tasks add column channels text',
            'alter table runs add column cpu_seconds real',
            'alter table runs add column memory_peak_bytes integer'
        ]
    },
    { name: '0003-tags', up: ["alter table tasks add column tags text not null default '[]'"] },
    {
        name: '0004-requests-routes',
        up: [
            'alter table tasks add column request text',
            'alter table tasks add column headers text',
            'alter table tasks add column route text',
            'alter table tasks add column mandate integer',
            'alter table runs add column status integer'
        ]
    },
    {
        name: '0005-parameters-triggers-chains-blackouts-sandboxes',
        up: [
            "alter table tasks add column parameters text not null default '[]'",
            'alter table tasks add column parameter_defaults text',
            "alter table tasks add column steps text not null default '[]'",
            'alter table tasks add column jitter_seconds integer not null default 0',
            "alter table tasks add column blackouts text not null default '[]'",
            "alter table tasks add column blackout_policy text not null default 'skip'",
            'alter table tasks add column sandbox text',
            'alter table tasks add column start_at integer',
            'alter table tasks add column start_due_at integer',
            'alter table tasks add column retry_of integer',
            'alter table runs add column parent_run_id integer',
            'alter table runs add column depth integer not null default 0',
            'alter table runs add column parameters text',
            'alter table runs add column secret_parameters text',
            'alter table runs add column asked_by text',
            'create table triggers (id text primary key, task_id integer not null references tasks (id) on delete cascade, name text not null, secret text not null, created_at integer not null, last_used_at integer)',
            'create index triggers_of_task on triggers (task_id)'
        ]
    },
    {
        name: '0006-waiting-runs',
        up: ["create index waiting_runs on runs (task_id) where state = 'queued'"]
    }
];
