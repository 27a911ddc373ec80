/** Tasks and runs as the API answers them. */
import { type Actor, joi, type Value } from '@portico/sdk';

import type { NotifyOn, Overlap, RunRow, TaskRow } from '../entities.ts';

const time = () => joi.string().isoDate();

const runFields = {
    id: joi.number().integer().required(),
    version: joi.number().integer().required(),
    taskId: joi.number().integer().required(),
    trigger: joi.valid('schedule', 'manual', 'retry', 'missed').required(),
    state: joi.valid('queued', 'running', 'succeeded', 'failed', 'timeout', 'stopped', 'skipped').required(),
    attempt: joi.number().integer().required().description('1, or which try it is'),
    times: joi
        .number()
        .integer()
        .required()
        .description('How many due times in a row a skipped run stands for'),
    dueAt: time().allow(null).required().description('When it was due by the schedule'),
    createdAt: time().required(),
    startedAt: time().allow(null).required(),
    finishedAt: time().allow(null).required(),
    exitCode: joi.number().integer().allow(null).required(),
    signal: joi.string().allow(null).required().description('The signal that ended it'),
    reason: joi.string().allow(null).required().description('Why it did not succeed, as a word'),
    message: joi.string().allow(null).description('Why, for people; only with the permission `output`')
};

/** A run in a list. */
export const runSchema = joi.object(runFields);
/** One run. */
export const wholeRunSchema = joi.object({
    ...runFields,
    output: joi.string().allow('').description('Only with the permission `output`'),
    truncated: joi.boolean().description('Some of the output was left out; only with the permission `output`')
});
/** A run as the API answers it. */
export type RunView = Value<typeof runSchema>;
/** One run with its output. */
export type WholeRunView = Value<typeof wholeRunSchema>;

/** A task as the API answers it. */
export const taskSchema = joi.object({
    id: joi.number().integer().required(),
    version: joi.number().integer().required(),
    name: joi.string().required(),
    schedule: joi.string().required(),
    timezone: joi.string().required(),
    command: joi
        .array()
        .items(joi.string().allow(''))
        .allow(null)
        .description('Only with the permission `output`'),
    script: joi.string().allow(null, '').description('Only with the permission `output`'),
    env: joi
        .record(joi.object({ set: joi.valid(true).required() }))
        .description('Names; only with the permission `output`. Values are never shown'),
    user: joi.string().allow(null).required(),
    cwd: joi.string().allow(null).required(),
    timeoutSeconds: joi.number().integer().allow(null).required(),
    overlap: joi.valid('skip', 'queue', 'allow').required(),
    retries: joi.number().integer().required(),
    backoffSeconds: joi.number().integer().required(),
    missed: joi.valid('skip', 'run-once').required(),
    enabled: joi.boolean().required(),
    notifyOn: joi.valid('never', 'failure', 'change', 'always').required(),
    deadManSeconds: joi.number().integer().allow(null).required(),
    nextRunAt: time()
        .allow(null)
        .required()
        .description('By the schedule; null while disabled, and of @reboot'),
    retryAt: time().allow(null).required().description('When it will be tried again'),
    overdueSince: time()
        .allow(null)
        .required()
        .description('Since when a success is overdue by `deadManSeconds`'),
    lastRun: joi.typed<RunView | null>(runSchema.allow(null).required()).description('The newest that began'),
    createdAt: time().required(),
    updatedAt: time().required()
});
/** A task as the API answers it. */
export type TaskView = Value<typeof taskSchema>;

/** Tells whether the actor may see what tasks run and print. */
export function canSeeOutput(actor: Actor): boolean {
    return actor.can('output');
}

/** The answer for a run. `withOutput`: with `message`, which may show parts of the command. */
export function runView(run: RunRow, withOutput: boolean): RunView {
    const { id, version, taskId, trigger, state, attempt, times, exitCode, signal, reason, message } = run;
    return {
        id,
        version,
        taskId,
        trigger,
        state,
        attempt,
        times,
        dueAt: iso(run.dueAt),
        createdAt: new Date(run.createdAt).toISOString(),
        startedAt: iso(run.startedAt),
        finishedAt: iso(run.finishedAt),
        exitCode,
        signal,
        reason,
        ...(withOutput ? { message } : {})
    };
}

/** The answer for a task. `withOutput`: with command, script and the names in `env`. */
export function taskView(task: TaskRow, lastRun: RunRow | null, withOutput: boolean): TaskView {
    const {
        id,
        version,
        name,
        schedule,
        timezone,
        user,
        cwd,
        timeoutSeconds,
        retries,
        backoffSeconds,
        missed,
        enabled,
        deadManSeconds
    } = task;
    const names = JSON.parse(task.envNames) as string[];
    return {
        id,
        version,
        name,
        schedule,
        timezone,
        ...(withOutput
            ? {
                  command: task.command === null ? null : (JSON.parse(task.command) as string[]),
                  script: task.script,
                  env: Object.fromEntries(names.map((each) => [each, { set: true as const }]))
              }
            : {}),
        user,
        cwd,
        timeoutSeconds,
        overlap: task.overlap as Overlap,
        retries,
        backoffSeconds,
        missed,
        enabled,
        notifyOn: task.notifyOn as NotifyOn,
        deadManSeconds,
        nextRunAt: iso(task.dueAt),
        retryAt: iso(task.retryAt),
        overdueSince: iso(task.overdueSince),
        lastRun: lastRun === null ? null : runView(lastRun, withOutput),
        createdAt: new Date(task.createdAt).toISOString(),
        updatedAt: new Date(task.updatedAt).toISOString()
    };
}

function iso(milliseconds: number | null): string | null {
    return milliseconds === null ? null : new Date(milliseconds).toISOString();
}
