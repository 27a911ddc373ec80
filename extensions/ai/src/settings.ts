/** What an admin sets. */
import { type Context, joi, type Value } from '@portico/sdk';

/** A pattern that is safe to read: one that the engine of regular expressions accepts. */
const pattern = joi
    .string()
    .min(1)
    .max(200)
    .custom((value: string, helpers) => {
        try {
            new RegExp(value, 'gu');
            return value;
        } catch {
            return helpers.error('any.invalid');
        }
    }, 'A regular expression of ECMAScript');

/** The settings; their descriptions are the documentation. */
export const settings = joi.object({
    steps: joi
        .number()
        .integer()
        .min(1)
        .max(50)
        .default(12)
        .label('Steps of an answer')
        .description('Requests to the model in one answer, each with the results of the tools before it'),
    toolsPerRequest: joi
        .number()
        .integer()
        .min(8)
        .max(128)
        .default(32)
        .label('Tools of a request')
        .description('Routes that a model is shown at once; it finds others by a search'),
    approvalMinutes: joi
        .number()
        .integer()
        .min(1)
        .max(60)
        .default(10)
        .label('An approval waits for')
        .unit('minute'),
    redaction: joi
        .choice({
            standard: 'Keys, tokens and passwords are removed',
            strict: 'Addresses, mail addresses and host names become placeholders too'
        })
        .default('standard')
        .label('Redaction')
        .meta({ ui: { group: 'What a model sees' } }),
    redactPatterns: joi.typed<readonly string[]>(
        joi
            .array()
            .items(pattern)
            .max(50)
            .default([])
            .label('Removed as well')
            .description('Regular expressions; what they match never reaches a model')
            .meta({ ui: { widget: 'lines', group: 'What a model sees' } })
    ),
    requestsPerMinute: joi
        .number()
        .integer()
        .min(1)
        .max(600)
        .default(20)
        .label('Requests of a user in a minute')
        .meta({ ui: { group: 'Limits' } }),
    tokensPerDay: joi
        .number()
        .integer()
        .min(1)
        .default(500_000)
        .label('Tokens of a user in a day')
        .description('Input and output together; a day begins at midnight UTC')
        .meta({ ui: { group: 'Limits' } }),
    tokensPerMonth: joi.typed<number | null>(
        joi
            .number()
            .integer()
            .min(1)
            .allow(null)
            .default(null)
            .label('Tokens of all users in a month')
            .meta({ ui: { group: 'Limits' } })
    ),
    costPerMonth: joi.typed<number | null>(
        joi
            .number()
            .min(0)
            .allow(null)
            .default(null)
            .label('Cost of all users in a month')
            .description('In the currency of the prices of the providers')
            .meta({ ui: { group: 'Limits' } })
    ),
    keepDays: joi
        .number()
        .integer()
        .min(1)
        .max(3_650)
        .default(365)
        .label('Conversations are kept for')
        .unit('day')
        .description('After the last message; pinned ones stay')
        .meta({ ui: { group: 'Kept' } })
});

/** What an admin set. */
export type Settings = Value<typeof settings>;
/** The context of this plugin. */
export type Ctx = Context<Settings>;
