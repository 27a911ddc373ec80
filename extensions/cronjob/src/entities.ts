/** What the plugin keeps in its own database. Times are milliseconds since 1970. */
import type { Migration } from '@portico/sdk';
import { defineEntity, type EntityManager, type InferEntity, p } from '@portico/sdk/db';

export type Overlap = 'skip' | 'queue' | 'allow';
export type Missed = 'skip' | 'run-once';
export type NotifyOn = 'never' | 'failure' | 'change' | 'always';
export type Trigger = 'schedule' | 'manual' | 'retry' | 'missed';
export type RunState = 'queued' | 'running' | 'succeeded' | 'failed' | 'timeout' | 'stopped' | 'skipped';

/** A row as it is read: an empty column is null, and nothing is undefined. */
type Row<E> = { -readonly [K in keyof E as K extends symbol ? never : K]-?: Exclude<E[K], undefined> };

/** A task as people wrote it, and where it stands in time. */
export const TaskEntity = defineEntity({
    name: 'CronjobTask',
    tableName: 'tasks',
    properties: {
        id: p.integer().primary(),
        version: p.integer(),
        name: p.string(),
        schedule: p.string(),
        timezone: p.string(),
        /** JSON array; null for a script. */
        command: p.text().nullable(),
        script: p.text().nullable(),
        user: p.string().nullable(),
        cwd: p.string().nullable(),
        /** JSON object of names and values, sealed as one text. */
        env: p.text().nullable(),
        /** JSON array: what may be said of `env` without opening it. */
        envNames: p.text(),
        timeoutSeconds: p.integer().nullable(),
        overlap: p.string().$type<Overlap>(),
        retries: p.integer(),
        backoffSeconds: p.integer(),
        missed: p.string().$type<Missed>(),
        enabled: p.boolean(),
        notifyOn: p.string().$type<NotifyOn>(),
        deadManSeconds: p.integer().nullable(),
        createdAt: p.integer(),
        updatedAt: p.integer(),
        /** The next time by the clock; null while disabled, and of `@reboot`. */
        dueAt: p.integer().nullable(),
        /** The boot that `@reboot` has seen. */
        boot: p.string().nullable(),
        retryAt: p.integer().nullable(),
        /** Which try that will be; the first retry is 2. */
        retryAttempt: p.integer(),
        /** Since when a success is waited for. */
        awaitedSince: p.integer(),
        /** When it will be overdue; null when nobody waits, or it is already. */
        deadAt: p.integer().nullable(),
        /** Since when it is overdue, which was told. */
        overdueSince: p.integer().nullable(),
        /** The last run that was not retried failed. */
        failing: p.boolean()
    }
});
export type TaskRow = Row<InferEntity<typeof TaskEntity>>;

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
        /** Value of the variable by which the processes of this run are known. */
        mark: p.string(),
        /** The private file of its script, while there is one. */
        scratch: p.string().nullable()
    }
});
export type RunRow = Row<InferEntity<typeof RunEntity>>;

/** What a run printed: its beginning, and its end where something between was left out. */
export const OutputEntity = defineEntity({
    name: 'CronjobOutput',
    tableName: 'outputs',
    properties: {
        runId: p.integer().primary(),
        head: p.text(),
        tail: p.text(),
        /** Bytes in all. */
        total: p.integer()
    }
});

interface Search {
    readonly limit?: number;
    /** Default: by ascending ids. */
    readonly newestFirst?: boolean;
}

/** Tasks that fit a condition; in a write, what is changed of them is kept. */
export async function findTasks(
    em: EntityManager,
    where: object,
    { limit, newestFirst = false }: Search = {}
): Promise<TaskRow[]> {
    return (await em.find(TaskEntity, where, {
        orderBy: { id: newestFirst ? 'desc' : 'asc' },
        ...(limit === undefined ? {} : { limit })
    })) as unknown as TaskRow[];
}

/** Runs that fit a condition; in a write, what is changed of them is kept. */
export async function findRuns(
    em: EntityManager,
    where: object,
    { limit, newestFirst = false }: Search = {}
): Promise<RunRow[]> {
    return (await em.find(RunEntity, where, {
        orderBy: { id: newestFirst ? 'desc' : 'asc' },
        ...(limit === undefined ? {} : { limit })
    })) as unknown as RunRow[];
}

export const entities = [TaskEntity, RunEntity, OutputEntity];

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
    }
];
