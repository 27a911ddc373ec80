/** What an admin sets. */
import { type Context, joi, type Partners, type Value } from '@portico/sdk';

import type { partners } from './partners.ts';

const port = () => joi.number().integer().min(1_024).max(65_535);

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    dataFolder: joi
        .string()
        .pattern(/^\/[^\0]+$/, 'absolute path')
        .default('/var/lib/portico-database')
        .description('Dumps, and servers that the panel runs, lie here')
        .label('Folder')
        .meta({ ui: { widget: 'path' } }),
    ports: joi
        .object({
            from: port().default(33_060).label('First'),
            to: port().min(joi.ref('from')).default(33_999).label('Last')
        })
        .default({ from: 33_060, to: 33_999 })
        .label('Ports')
        .description('Of servers that the panel runs; each new one takes the first that is free')
        .meta({ ui: { advanced: true } }),
    dumpsKept: joi
        .number()
        .integer()
        .min(1)
        .max(1_000)
        .default(10)
        .description('Dumps kept of each database; older ones are removed')
        .label('Dumps kept of a database'),
    pointInTimeDays: joi
        .number()
        .integer()
        .min(1)
        .max(365)
        .default(7)
        .description(
            'Days that a server which keeps its past can go back; all its data are copied once in so many days'
        )
        .label('Past is kept for')
        .unit('day'),
    consoleRows: joi
        .number()
        .integer()
        .min(1)
        .max(10_000)
        .default(1_000)
        .description('Rows that the console gives when a request does not say how many')
        .label('Rows of the console'),
    historyDays: joi
        .number()
        .integer()
        .min(0)
        .max(3_650)
        .default(30)
        .description(
            'Days that statements of the console are kept for the user who ran them; 0: none is kept'
        )
        .label('Statements are kept for')
        .unit('day')
});

/** The context of this plugin. */
export type Ctx = Context<
    Value<typeof settings>,
    Partners<Readonly<Record<never, never>>, (typeof partners)['optional']>
>;
