/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

import { isZone } from './schedule/schedule.ts';
import { blackoutsField } from './tasks/input/times-input.ts';

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    timezone: joi.typed<string | undefined>(
        joi
            .string()
            .max(64)
            .custom(
                (value: string, helpers) => (isZone(value) ? value : helpers.error('any.invalid')),
                'A time zone that this machine knows'
            )
            .optional()
            .description("Time zone of tasks that name none; default: the machine's")
            .label('Time zone')
    ),
    concurrentRuns: joi
        .number()
        .integer()
        .min(1)
        .max(1_000)
        .default(50)
        .description('Runs at once, of all tasks together; what is due beyond waits')
        .label('Runs at once'),
    blackouts: blackoutsField
        .default([])
        .description(
            'Times of the week, in the time zone of each task, at which no schedule starts anything'
        ),
    triggersPerMinute: joi
        .number()
        .integer()
        .min(1)
        .max(600)
        .default(30)
        .description('Calls that each trigger takes in a minute')
        .label('Calls of a trigger in a minute'),
    sandbox: joi
        .choice({ off: 'No', default: 'Yes, where they say nothing else' })
        .default('off')
        .description('Whether new tasks with a program run in a sandbox')
        .label('Sandbox for new tasks'),
    outputBytes: joi
        .number()
        .integer()
        .min(1_024)
        .max(16 * 2 ** 20)
        .default(256 * 2 ** 10)
        .description(
            'Bytes of output that are kept of each run: the first quarter of them from its beginning, the rest from its end'
        )
        .label('Output kept of a run')
        .unit('byte')
        .meta({ ui: { group: 'Kept' } }),
    runsKept: joi
        .number()
        .integer()
        .min(1)
        .max(10_000)
        .default(200)
        .description('Finished runs kept of each task')
        .label('Runs kept of a task')
        .meta({ ui: { group: 'Kept' } }),
    daysKept: joi
        .number()
        .integer()
        .min(1)
        .max(3_650)
        .default(90)
        .description('Days that a finished run is kept')
        .label('Runs are kept for')
        .unit('day')
        .meta({ ui: { group: 'Kept' } })
});

/** The context of this plugin. */
export type Ctx = Context<Value<typeof settings>>;
