/** Tasks and runs as the API answers them. */
import { type Actor, joi, type Value } from '@portico/sdk';

import type { NotifyOn, Overlap, RunRow, TaskRow } from '../entities.ts';
import { channelsOf, draftOfRow, kindOf, limitsOf, tagsOf } from '../tasks/draft.ts';
import { taskChannels, taskLimits, taskTags } from '../tasks/input.ts';
import { requestField, routeField } from '../tasks/work-input.ts';

const time = () => joi.string().isoDate();
/** What a task runs. */
export const kindWords = {
    command: 'A command',
    script: 'A script',
    request: 'A request',
    route: 'A route of the panel'
} as const;

const runFields = {
    id: joi.number().integer().required().label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    taskId: joi
        .number()
        .integer()
        .required()
        .label('Task')
        .meta({ ui: { ref: 'cronjob.tasks' } }),
    trigger: joi.valid('schedule', 'manual', 'retry', 'missed').required().label('Started by'),
    state: joi
        .valid('queued', 'running', 'succeeded', 'failed', 'timeout', 'stopped', 'skipped')
        .required()
        .label('State')
        .meta({
            ui: {
                column: 1,
                tones: {
                    succeeded: 'good',
                    failed: 'bad',
                    timeout: 'bad',
                    running: 'busy',
                    queued: 'busy',
                    stopped: 'warning',
                    skipped: 'neutral'
                }
            }
        }),
    attempt: joi.number().integer().required().description('1, or which try it is').label('Attempt'),
    times: joi
        .number()
        .integer()
        .required()
        .description('How many due times in a row a skipped run stands for')
        .label('Due times'),
    dueAt: time().allow(null).required().description('When it was due by the schedule').label('Due'),
    createdAt: time().required().label('Created'),
    startedAt: time()
        .allow(null)
        .required()
        .label('Started')
        .meta({ ui: { column: 2 } }),
    finishedAt: time()
        .allow(null)
        .required()
        .label('Ended')
        .meta({ ui: { column: 3 } }),
    exitCode: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Exit code')
        .meta({ ui: { column: 4 } }),
    signal: joi.string().allow(null).required().description('The signal that ended it').label('Signal'),
    status: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .description('What a request or a route answered')
        .label('Status'),
    reason: joi
        .string()
        .allow(null)
        .required()
        .description('Why it did not succeed, as a word')
        .label('Reason'),
    usage: joi
        .object({
            cpuSeconds: joi.number().required().label('Processor time').unit('second'),
            memoryPeakBytes: joi.number().integer().required().label('Peak of memory').unit('byte')
        })
        .allow(null)
        .required()
        .description('Of all processes of the run together; null where the machine does not measure it')
        .label('Used'),
    message: joi
        .string()
        .allow(null)
        .description('Why, for people; only with the permission `output`')
        .label('Message')
};

/** A run in a list. */
export const runSchema = joi.object(runFields);
/** One run. */
export const wholeRunSchema = joi.object({
    ...runFields,
    output: joi
        .string()
        .allow('')
        .label('Output')
        .description('Only with the permission `output`')
        .meta({ media: 'text/plain' }),
    truncated: joi
        .boolean()
        .label('Shortened')
        .description('Some of the output was left out; only with the permission `output`')
});
/** A run as the API answers it. */
export type RunView = Value<typeof runSchema>;
/** One run with its output. */
export type WholeRunView = Value<typeof wholeRunSchema>;

/** A task as the API answers it. */
export const taskSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    kind: joi.choice(kindWords).required().label('Kind'),
    authorized: joi
        .boolean()
        .required()
        .label('Authorized')
        .description('A person let the task call its route')
        .meta({ ui: { column: false } }),
    tags: taskTags.required(),
    schedule: joi
        .string()
        .required()
        .label('Schedule')
        .meta({ ui: { column: 2, widget: 'cron' } }),
    timezone: joi.string().required().label('Time zone'),
    command: joi
        .array()
        .items(joi.string().allow(''))
        .allow(null)
        .description('Only with the permission `output`')
        .label('Command'),
    script: joi
        .string()
        .allow(null, '')
        .description('Only with the permission `output`')
        .label('Script')
        .meta({ media: 'text/x-shellscript' }),
    request: requestField.description('Only with the permission `output`'),
    route: routeField.description('Only with the permission `output`'),
    env: joi
        .record(joi.object({ set: joi.valid(true).required() }))
        .description('Names; only with the permission `output`. Values are never shown')
        .label('Environment'),
    user: joi
        .string()
        .allow(null)
        .required()
        .label('Account')
        .meta({ ui: { widget: 'account' } }),
    cwd: joi
        .string()
        .allow(null)
        .required()
        .label('Folder')
        .meta({ ui: { widget: 'path' } }),
    timeoutSeconds: joi.number().integer().allow(null).required().label('Time limit').unit('second'),
    overlap: joi.valid('skip', 'queue', 'allow').required().label('When it still runs'),
    retries: joi.number().integer().required().label('Retries'),
    backoffSeconds: joi.number().integer().required().label('Pause before a retry').unit('second'),
    missed: joi.valid('skip', 'run-once').required().label('When it was missed'),
    enabled: joi
        .boolean()
        .required()
        .label('Enabled')
        .meta({ ui: { column: 3 } }),
    notifyOn: joi.valid('never', 'failure', 'change', 'always').required().label('Notify'),
    deadManSeconds: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('A success is overdue after')
        .unit('second'),
    limits: taskLimits.required().label('Limits'),
    channels: taskChannels.required().meta({ ui: { ref: 'channels.list' } }),
    nextRunAt: time()
        .allow(null)
        .required()
        .description('By the schedule; null while disabled, and of @reboot')
        .label('Next run')
        .meta({ ui: { column: 4 } }),
    retryAt: time().allow(null).required().description('When it will be tried again').label('Next retry'),
    overdueSince: time()
        .allow(null)
        .required()
        .description('Since when a success is overdue by `deadManSeconds`')
        .label('Overdue since'),
    lastRun: joi
        .typed<RunView | null>(runSchema.allow(null).required())
        .description('The newest that began')
        .label('Last run'),
    createdAt: time().required().label('Created'),
    updatedAt: time().required().label('Changed')
});
/** A task as the API answers it. */
export type TaskView = Value<typeof taskSchema>;

/** Tells whether the actor may see what tasks run and print. */
export function canSeeOutput(actor: Actor): boolean {
    return actor.can('output');
}

/** The answer for a run. `withOutput`: with `message`, which may show parts of the command. */
export function runView(run: RunRow, withOutput: boolean): RunView {
    const { id, version, taskId, trigger, state, attempt, times, exitCode, signal, status, reason, message } =
        run;
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
        status,
        reason,
        usage: usageOf(run),
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
        kind: kindOf(task),
        authorized: task.mandate !== null,
        tags: tagsOf(task),
        schedule,
        timezone,
        ...(withOutput
            ? {
                  command: task.command === null ? null : (JSON.parse(task.command) as string[]),
                  script: task.script,
                  request: shownRequest(task),
                  route: draftOfRow(task).route,
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
        limits: limitsOf(task),
        channels: channelsOf(task),
        nextRunAt: iso(task.dueAt),
        retryAt: iso(task.retryAt),
        overdueSince: iso(task.overdueSince),
        lastRun: lastRun === null ? null : runView(lastRun, withOutput),
        createdAt: new Date(task.createdAt).toISOString(),
        updatedAt: new Date(task.updatedAt).toISOString()
    };
}

/** Headers are shown by name only. */
function shownRequest(task: TaskRow): TaskView['request'] {
    const { request } = draftOfRow(task);
    if (request === null) {
        return null;
    }
    const headers = Object.keys(request.headers).map((name) => [name, { set: true as const }] as const);
    return { ...request, expectStatus: [...request.expectStatus], headers: Object.fromEntries(headers) };
}

function usageOf({ cpuSeconds, memoryPeakBytes }: RunRow): RunView['usage'] {
    return cpuSeconds === null || memoryPeakBytes === null ? null : { cpuSeconds, memoryPeakBytes };
}

function iso(milliseconds: number | null): string | null {
    return milliseconds === null ? null : new Date(milliseconds).toISOString();
}
