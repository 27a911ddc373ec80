/** Runs as the API answers them. */
import { joi, type Value } from '@portico/sdk';

import type { RunRow, Trigger } from '../../entities.ts';
import { valueSchema } from '../../parameters/schema.ts';
import type { ShownValues } from '../../parameters/values.ts';

/** A time in RFC 3339, as the API shows it. */
export const time = () => joi.string().isoDate();

/** What asks for runs. */
export const triggerWords = {
    schedule: 'Schedule',
    manual: 'By hand',
    retry: 'Retry',
    missed: 'Missed before',
    chain: 'Run before it',
    token: 'Trigger'
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
    trigger: joi.choice(triggerWords).required().label('Started by'),
    by: joi
        .string()
        .allow(null)
        .required()
        .label('Asked by')
        .description('The user, or the name of the trigger'),
    parentRunId: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Follows')
        .description('The run before it in its chain')
        .meta({ ui: { ref: 'cronjob.runs' } }),
    parameters: joi
        .record(joi.alternatives(valueSchema, joi.object({ set: joi.valid(true).required() })))
        .label('Parameters')
        .description('Secret ones are masked; only with the permission `output`'),
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
/** A run as the API shows it by itself, with its output. */
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

/** The answer for a run. `withOutput`: with `message`, which may show parts of the command. */
export function runView(run: RunRow, withOutput: boolean): RunView {
    const { id, version, taskId, trigger, state, attempt, times, exitCode, signal, status, reason, message } =
        run;
    const { parentRunId, askedBy: by, parameters } = run;
    return {
        id,
        version,
        taskId,
        trigger: trigger as Trigger,
        by,
        parentRunId,
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
        ...(withOutput
            ? {
                  message,
                  ...(parameters === null ? {} : { parameters: JSON.parse(parameters) as ShownValues })
              }
            : {})
    };
}

function usageOf({ cpuSeconds, memoryPeakBytes }: RunRow): RunView['usage'] {
    return cpuSeconds === null || memoryPeakBytes === null ? null : { cpuSeconds, memoryPeakBytes };
}

/** A time, from milliseconds since 1970. */
export function iso(milliseconds: number | null): string | null {
    return milliseconds === null ? null : new Date(milliseconds).toISOString();
}
