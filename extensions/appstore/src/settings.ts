/** What an admin sets. */
import { type Context, joi, type Partners, type Value } from '@portico/sdk';

import type { partners } from './partners.ts';

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    syncHours: joi
        .number()
        .integer()
        .min(1)
        .max(168)
        .default(6)
        .label('Sync every')
        .unit('hour')
        .description('How often the sources are asked for changes'),
    autoUpdateWindow: joi
        .string()
        .pattern(/^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$/, 'a time of day such as 03:00-05:00')
        .allow(null)
        .default('03:00-05:00')
        .label('Window of automatic updates')
        .description('By the clock of the machine, such as 03:00-05:00; none: at any time'),
    backupsKept: joi
        .number()
        .integer()
        .min(0)
        .max(20)
        .default(3)
        .label('Backups kept')
        .description('Backups of each app that updates made; older ones go. Those made by hand stay.'),
    healthSeconds: joi
        .number()
        .integer()
        .min(10)
        .max(900)
        .default(120)
        .label('Time to become healthy')
        .unit('second')
        .description('An app that is not healthy by then is taken back'),
    language: joi
        .string()
        .pattern(/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language such as en or pt-BR')
        .default('en')
        .label('Language')
        .description('Of titles and descriptions, where a request names none')
});

/** The settings as the plugin reads them. */
export type Settings = Value<typeof settings>;
/** The context of this plugin. */
export type Ctx = Context<Settings, Partners<(typeof partners)['requires'], (typeof partners)['optional']>>;
