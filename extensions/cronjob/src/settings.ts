/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

import { isZone } from './schedule/schedule.ts';

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    timezone: joi.typed<string | undefined>(
        joi
            .string()
            .max(64)
            .custom((value: string, helpers) => (isZone(value) ? value : helpers.error('any.invalid')))
            .optional()
            .description("Time zone of tasks that name none; default: the machine's")
    ),
    concurrentRuns: joi
        .number()
        .integer()
        .min(1)
        .max(1_000)
        .default(50)
        .description('Runs at once, of all tasks together; what is due beyond waits'),
    outputBytes: joi
        .number()
        .integer()
        .min(1_024)
        .max(16 * 2 ** 20)
        .default(256 * 2 ** 10)
        .description(
            'Bytes of output that are kept of each run: the first quarter of them from its beginning, the rest from its end'
        ),
    runsKept: joi
        .number()
        .integer()
        .min(1)
        .max(10_000)
        .default(200)
        .description('Finished runs kept of each task'),
    daysKept: joi
        .number()
        .integer()
        .min(1)
        .max(3_650)
        .default(90)
        .description('Days that a finished run is kept')
});

/** The context of this plugin. */
export type Ctx = Context<Value<typeof settings>>;
