/** What an admin says of a cron. */
import { joi } from '@portico/sdk';

import { argv } from '../projects/schema.ts';

const name = () =>
    joi
        .string()
        .pattern(/^[a-z][a-z0-9-]{0,39}$/)
        .label('Name')
        .meta({ ui: { column: 1 } });
const schedule = () =>
    joi
        .string()
        .min(1)
        .max(200)
        .label('Schedule')
        .description('Five fields, or six with seconds first; `@daily` and its like')
        .example('0 3 * * *')
        .meta({ ui: { widget: 'cron', column: 2 } });
const timezone = () =>
    joi
        .string()
        .pattern(/^[A-Za-z0-9_+/-]{1,64}$/)
        .allow(null)
        .label('Time zone')
        .description("Default: the machine's")
        .example('Europe/Berlin');
const command = () =>
    argv().label('Command').description('One program with its arguments; no shell reads it');
const timeout = () => joi.number().integer().min(1).max(86_400).label('At most').unit('second');
const enabled = () => joi.boolean().label('Enabled');

/** The fields of a cron. */
export const fields = { name, schedule, timezone, command, timeout, enabled };

/** The whole of what an admin says of a cron. */
export const cronInput = joi.object({
    name: name().required(),
    schedule: schedule().required(),
    timezone: timezone().default(null),
    command: command().required(),
    timeoutSeconds: timeout().default(600),
    enabled: enabled().default(true)
});
