/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

const access = { ui: { group: 'Access' } };
const limits = { ui: { group: 'Limits' } };

/** How a write is approved. */
export const approvalWords = {
    panel: 'By a person in the panel',
    client: "By the client's own question",
    none: 'Not at all'
} as const;

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    mode: joi
        .choice({ read: 'Agents only read', write: 'Agents may propose changes' })
        .default('read')
        .label('Mode'),
    approval: joi
        .choice(approvalWords)
        .default('panel')
        .label('Approval of changes')
        .description('What is dangerous is always approved in the panel'),
    approvalMinutes: joi
        .number()
        .integer()
        .min(1)
        .max(60)
        .default(10)
        .label('A decision is awaited for')
        .unit('minute')
        .description('An approved call must be made in the same time again'),
    approvalWaitSeconds: joi
        .number()
        .integer()
        .min(0)
        .max(300)
        .default(30)
        .label('A call waits for its approval')
        .unit('second')
        .description('Then it answers that it needs one; the same call is made once it is approved'),
    tools: joi
        .array()
        .items(joi.string().max(200))
        .max(500)
        .default(['*'])
        .label('Tools')
        .description('Ids of routes, with * for any text. Dangerous routes must be named one by one')
        .meta({ ui: { ...access.ui, widget: 'lines' } }),
    hosts: joi
        .array()
        .items(joi.string().hostname().max(253))
        .max(50)
        .default([])
        .label('Host names')
        .description('Names by which clients reach the panel, beside that of panel.url')
        .meta({ ui: { ...access.ui, widget: 'lines' } }),
    origins: joi
        .array()
        .items(
            joi
                .string()
                .uri({ scheme: ['http', 'https'] })
                .max(300)
        )
        .max(50)
        .default([])
        .label('Origins')
        .description("Origins of pages that may connect, beside the panel's own")
        .meta({ ui: { ...access.ui, widget: 'lines' } }),
    callsPerMinute: joi
        .number()
        .integer()
        .min(1)
        .max(6_000)
        .default(120)
        .label('Calls a minute')
        .description('Of one token or user')
        .meta(limits),
    parallelCalls: joi
        .number()
        .integer()
        .min(1)
        .max(64)
        .default(8)
        .label('Calls at once')
        .description('Of one token or user')
        .meta(limits),
    resultBytes: joi
        .number()
        .integer()
        .min(4_096)
        .max(4_194_304)
        .default(262_144)
        .label('Most of one result')
        .unit('byte')
        .description('What is longer is cut at a whole item')
        .meta(limits),
    callsKept: joi
        .number()
        .integer()
        .min(1)
        .max(365)
        .default(30)
        .label('Calls are kept for')
        .unit('day')
        .meta(limits)
});

/** The context of this plugin. */
export type Ctx = Context<Value<typeof settings>>;
