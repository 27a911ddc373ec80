/** The body of a request that creates or changes a task: its schemas, and what a document of an export holds. */
import { type GroupLimits, joi } from '@portico/sdk';

import type { Missed, NotifyOn, Overlap } from '../../entities.ts';
import { type ParameterInput, parametersField } from '../../parameters/schema.ts';
import type { Blackout, BlackoutPolicy } from '../../schedule/blackouts.ts';
import { type Step, thenField } from '../steps.ts';
import { type Sandbox, sandboxField } from './sandbox-input.ts';
import { blackoutPolicyField, blackoutsField, jitterField } from './times-input.ts';
import { type Mask, requestField, type RequestInput, routeField, type RouteWork } from './work-input.ts';

/** A change of a task: an absent field keeps its value, null sets the default. */
export interface TaskInput {
    readonly name?: string;
    readonly schedule?: string;
    readonly timezone?: string | null;
    readonly command?: readonly string[] | null;
    readonly script?: string | null;
    readonly request?: RequestInput | null;
    readonly route?: (Partial<RouteWork> & { readonly id: string }) | null;
    readonly user?: string | null;
    readonly cwd?: string | null;
    readonly env?: Readonly<Record<string, string | Mask>> | null;
    readonly timeoutSeconds?: number | null;
    readonly overlap?: Overlap | null;
    readonly retries?: number | null;
    readonly backoffSeconds?: number | null;
    readonly missed?: Missed | null;
    readonly enabled?: boolean | null;
    readonly notifyOn?: NotifyOn | null;
    readonly deadManSeconds?: number | null;
    readonly limits?: GroupLimits | null;
    readonly channels?: readonly number[] | null;
    readonly tags?: readonly string[] | null;
    readonly parameters?: readonly ParameterInput[] | null;
    readonly jitterSeconds?: number | null;
    readonly blackouts?: readonly Blackout[] | null;
    readonly blackoutPolicy?: BlackoutPolicy | null;
    readonly then?: readonly Step[] | null;
    readonly sandbox?: Partial<Sandbox> | null;
    /** Acts as If-Match. */
    readonly version?: number;
}

const year = 366 * 86_400;
const mebibyte = 1024 * 1024;
/** Text without zero bytes, which cannot be passed to a program. */
const text = () => joi.string().pattern(/^[^\0]*$/, 'text without zero bytes');

/** Limits of all processes of a run together. */
export const taskLimits = joi
    .object({
        memoryBytes: joi
            .number()
            .integer()
            .min(mebibyte)
            .max(2 ** 50)
            .description('What does not fit ends the run: it then failed with the reason LIMIT_MEMORY')
            .label('Memory')
            .unit('byte'),
        cpuPercent: joi
            .number()
            .integer()
            .min(1)
            .max(100_000)
            .description('Of one processor: 200 is two. The run gets slower')
            .label('Processor time')
            .unit('percent'),
        processes: joi
            .number()
            .integer()
            .min(1)
            .max(1_000_000)
            .description('At the same time, threads included; further ones are refused to it')
            .label('Processes')
    })
    .min(1)
    .allow(null);
/** Where a task's notifications go. */
export const taskChannels = joi
    .array()
    .items(joi.number().integer().min(1))
    .unique()
    .max(100)
    .allow(null)
    .description(
        'Ids of the notification channels that alone tell of this task; null: those whose events match'
    )
    .label('Channels');
/** A word by which tasks are found together. */
export const tag = () => joi.string().pattern(/^[a-z0-9][a-z0-9-]{0,31}$/, 'tag');
/** The tags of a task. */
export const taskTags = joi
    .array()
    .items(tag())
    .unique()
    .max(20)
    .description('Words by which tasks are found together: small letters, digits and hyphens')
    .label('Tags');

const fields = {
    schedule: joi
        .string()
        .trim(true)
        .max(200)
        .description(
            'Five fields, six with seconds first, or @yearly, @monthly, @weekly, @daily, @hourly, @reboot'
        )
        .label('Schedule')
        .meta({ ui: { widget: 'cron', ref: 'cronjob.previewSchedule' } }),
    timezone: joi
        .string()
        .max(64)
        .allow(null)
        .description('IANA name; default: the setting `timezone`')
        .label('Time zone'),
    command: joi
        .array()
        .items(text().max(32_768).allow(''))
        .min(1)
        .max(1_000)
        .allow(null)
        .description('Program and arguments; either this or `script`')
        .label('Command')
        .meta({ ui: { widget: 'lines' } }),
    script: text()
        .max(262_144)
        .allow(null)
        .description('Begins with `#!` and an interpreter, or is for /bin/sh')
        .label('Script')
        .meta({ media: 'text/x-shellscript' }),
    request: requestField,
    route: routeField,
    user: joi
        .string()
        .max(64)
        .allow(null)
        .description("Account of the machine; default: the panel's own")
        .label('Account')
        .meta({ ui: { widget: 'account' } }),
    cwd: text()
        .pattern(/^\//, 'absolute path')
        .max(4_096)
        .allow(null)
        .description('Default: the home of the account, or /')
        .label('Folder')
        .meta({ ui: { widget: 'path' } }),
    env: joi
        .record(
            joi.alternatives(text().max(32_768).allow(''), joi.object({ set: joi.valid(true).required() }))
        )
        .max(200)
        .allow(null)
        .description('Values are never read back: `{ "set": true }` stands for each, and keeps it in a write')
        .label('Environment')
        .meta({ ui: { advanced: true } }),
    timeoutSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .allow(null)
        .description('Then the run is ended with all of its processes; null: never')
        .label('Time limit')
        .unit('second')
        .meta({ ui: { advanced: true } }),
    overlap: joi
        .valid('skip', 'queue', 'allow', null)
        .description('While the run before is not over; default skip')
        .label('When it still runs')
        .meta({ ui: { advanced: true } }),
    retries: joi
        .number()
        .integer()
        .min(0)
        .max(20)
        .allow(null)
        .description('After a failure or a timeout; default 0')
        .label('Retries')
        .meta({ ui: { group: 'Retries', advanced: true } }),
    backoffSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(86_400)
        .allow(null)
        .description(
            'Before the first retry; twice as long before each further one, a day at most; default 60'
        )
        .label('Pause before a retry')
        .unit('second')
        .meta({ ui: { group: 'Retries', advanced: true } }),
    missed: joi
        .valid('skip', 'run-once', null)
        .description('What passed while nothing could run; default skip')
        .label('When it was missed')
        .meta({ ui: { advanced: true } }),
    enabled: joi.boolean().allow(null).description('Default true').label('Enabled'),
    notifyOn: joi
        .valid('never', 'failure', 'change', 'always', null)
        .description('`change`: the first failure, and the first success after one; default failure')
        .label('Notify'),
    deadManSeconds: joi
        .number()
        .integer()
        .min(1)
        .max(year)
        .allow(null)
        .description('An alert when no run succeeded for so long')
        .label('A success is overdue after')
        .unit('second')
        .meta({ ui: { advanced: true } }),
    limits: taskLimits
        .description('Of the program and all that it starts, together; needs control groups')
        .label('Limits')
        .meta({ ui: { group: 'Limits', advanced: true } }),
    channels: taskChannels.meta({ ui: { ref: 'channels.list', advanced: true } }),
    tags: taskTags.allow(null),
    parameters: parametersField.allow(null).meta({ ui: { advanced: true } }),
    jitterSeconds: jitterField.allow(null).meta({ ui: { group: 'Blackouts', advanced: true } }),
    blackouts: blackoutsField.allow(null).meta({ ui: { group: 'Blackouts', advanced: true } }),
    blackoutPolicy: blackoutPolicyField.allow(null).meta({ ui: { group: 'Blackouts', advanced: true } }),
    then: thenField.allow(null).meta({ ui: { advanced: true } }),
    sandbox: sandboxField.meta({ ui: { group: 'Sandbox', advanced: true } })
};
/** The name of a task. */
export const taskName = joi
    .string()
    .pattern(/^[^\p{C}]*\S[^\p{C}]*$/u, 'name')
    .max(100)
    .label('Name');
const ignored = joi.readOnly(joi.any());
const readOnly = {
    id: ignored,
    kind: ignored,
    authorized: ignored,
    createdAt: ignored,
    updatedAt: ignored,
    nextRunAt: ignored,
    retryAt: ignored,
    overdueSince: ignored,
    lastRun: ignored
};

/** The body of POST `/tasks`. */
export const newTask = joi.object({
    ...fields,
    name: taskName.required(),
    schedule: fields.schedule.required()
});
/** The body of PUT `/tasks/{id}`. Accepts the fields of an answer, so that a client can send back what it got. */
export const changedTask = joi.object({
    ...fields,
    ...readOnly,
    name: taskName,
    version: joi.number().integer().min(1).label('Version').description('Acts as If-Match')
});

/** A task of an export. Its id is that of the panel that wrote it, and is what `then` of other tasks names. */
export interface ExportedTask extends TaskInput {
    readonly id?: number;
}

/** Reads the tasks of an export, which another version may have written. @throws TypeError when they are not tasks */
export function exportedTasks(data: unknown): readonly ExportedTask[] {
    const { tasks } = (data ?? {}) as { readonly tasks?: unknown };
    const { error, value } = joi
        .array()
        .items(newTask.keys({ id: joi.number().integer() }))
        .required()
        .validate(tasks);
    if (error !== undefined) {
        throw new TypeError(`The exported tasks cannot be read: ${error.message}`);
    }
    return value as readonly ExportedTask[];
}
