/** Tasks as the API answers them. */
import { type Actor, joi, type Value } from '@portico/sdk';

import type { NotifyOn, Overlap, RunRow, TaskRow } from '../../entities.ts';
import { parametersField } from '../../parameters/schema.ts';
import { channelsOf, draftOfRow, kindOf, limitsOf, tagsOf } from '../../tasks/draft.ts';
import { taskChannels, taskLimits, taskTags } from '../../tasks/input/input.ts';
import { sandboxField } from '../../tasks/input/sandbox-input.ts';
import { blackoutPolicyField, blackoutsField, jitterField } from '../../tasks/input/times-input.ts';
import { requestField, routeField } from '../../tasks/input/work-input.ts';
import { thenField } from '../../tasks/steps.ts';
import { iso, runSchema, type RunView, runView, time } from './run-views.ts';

/** What a task runs. */
export const kindWords = {
    command: 'A command',
    script: 'A script',
    request: 'A request',
    route: 'A route of the panel'
} as const;

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
    parameters: parametersField
        .required()
        .description('Their defaults only with the permission `output`')
        .meta({ ui: { column: false } }),
    jitterSeconds: jitterField.required(),
    blackouts: blackoutsField.required().meta({ ui: { column: false } }),
    blackoutPolicy: blackoutPolicyField.required(),
    then: thenField.required().meta({ ui: { column: false } }),
    sandbox: sandboxField.required().meta({ ui: { column: false } }),
    channels: taskChannels.required().meta({ ui: { ref: 'channels.list' } }),
    nextRunAt: time()
        .allow(null)
        .required()
        .description(
            'By the schedule, or when a blackout or jitter ends; null while disabled, and of @reboot'
        )
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
        ...furtherOf(task, withOutput),
        channels: channelsOf(task),
        nextRunAt: iso(task.startAt ?? task.dueAt),
        retryAt: iso(task.retryAt),
        overdueSince: iso(task.overdueSince),
        lastRun: lastRun === null ? null : runView(lastRun, withOutput),
        createdAt: new Date(task.createdAt).toISOString(),
        updatedAt: new Date(task.updatedAt).toISOString()
    };
}

function furtherOf(
    task: TaskRow,
    withOutput: boolean
): Pick<TaskView, 'parameters' | 'jitterSeconds' | 'blackouts' | 'blackoutPolicy' | 'then' | 'sandbox'> {
    const { parameters, jitterSeconds, blackouts, blackoutPolicy, then, sandbox } = draftOfRow(task);
    return {
        parameters: parameters.map(({ choices, ...each }) => ({
            ...each,
            choices: [...choices],
            default: withOutput ? each.default : null
        })),
        jitterSeconds,
        blackouts: blackouts.map((each) => ({ ...each, days: [...each.days] })),
        blackoutPolicy,
        then: [...then],
        sandbox: sandbox === null ? null : { ...sandbox, writable: [...sandbox.writable] }
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
