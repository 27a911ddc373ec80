/** The shapes of providers on the wire. */
import { joi, type Value } from '@portico/sdk';

import { version } from '../version-field.ts';

const type = joi
    .choice({ openai: 'Chat completions (OpenAI and compatible)', anthropic: 'Anthropic messages' })
    .label('Protocol')
    .meta({ ui: { column: 2 } });
const name = joi
    .string()
    .trim()
    .min(1)
    .max(80)
    .label('Name')
    .meta({ ui: { column: 1 } });
const baseUrl = joi
    .string()
    .uri({ scheme: ['http', 'https'] })
    .max(500)
    .label('Address')
    .description('Up to what comes before /chat/completions or /messages')
    .example('https://api.openai.com/v1')
    .meta({ ui: { column: 3 } });
const model = joi
    .string()
    .min(1)
    .max(200)
    .label('Model')
    .meta({ ui: { column: 4 } });
const apiKey = joi.typed<string | null | undefined>(
    joi
        .string()
        .min(1)
        .max(4_096)
        .pattern(/^[\x21-\x7e]+$/)
        .allow(null)
        .optional()
        .meta({ secret: true })
        .label('Key')
        .description('Written only; left out, the key that is set stays; null removes it')
);
const headers = joi.typed<Record<string, string> | undefined>(
    joi
        .object({})
        .pattern(
            /^[A-Za-z0-9-]{1,64}$/,
            joi
                .string()
                .max(4_096)
                .pattern(/^[\x20-\x7e]*$/)
        )
        .max(20)
        .optional()
        .label('Headers')
        .description('Sent with each request; written only')
        .meta({ ui: { advanced: true } })
);
const embeddingModel = joi.typed<string | null>(
    joi
        .string()
        .min(1)
        .max(200)
        .allow(null)
        .label('Embedding model')
        .description('With one, memories are found by meaning')
        .meta({ ui: { advanced: true } })
);
const maxOutputTokens = joi.typed<number | null>(
    joi
        .number()
        .integer()
        .min(1)
        .max(1_000_000)
        .allow(null)
        .label('Tokens of one answer')
        .description('Null: what the model allows')
        .meta({ ui: { advanced: true } })
);
const price = joi.number().min(0).max(100_000).required();
const prices = joi.typed<{ input: number; output: number } | null>(
    joi
        .object({
            input: price.label('Input').description('Of a million tokens'),
            output: price.label('Output').description('Of a million tokens')
        })
        .allow(null)
        .label('Prices')
        .meta({ ui: { advanced: true } })
);
const isDefault = joi.boolean().label('Default').description('Answers where a conversation names none');
const enabled = joi
    .boolean()
    .label('Enabled')
    .meta({ ui: { column: 6 } });

/** A provider as it is read. */
export const providerSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: version.required(),
    name: name.required(),
    type: type.required(),
    baseUrl: baseUrl.required(),
    apiKeySet: joi
        .boolean()
        .required()
        .label('Key set')
        .meta({ ui: { column: 5 } }),
    headerNames: joi.array().items(joi.string()).required().label('Headers set'),
    model: model.required(),
    embeddingModel: joi.typed<string | null>(embeddingModel.required()),
    maxOutputTokens: joi.typed<number | null>(maxOutputTokens.required()),
    prices: joi.typed<{ input: number; output: number } | null>(prices.required()),
    isDefault: isDefault.required(),
    enabled: enabled.required()
});
/** A provider as it is read. */
export type Provider = Value<typeof providerSchema>;

/** What POST `/providers` takes. */
export const newProvider = joi.object({
    name: name.required(),
    type: type.default('openai'),
    baseUrl: baseUrl.required(),
    apiKey,
    headers,
    model: model.required(),
    embeddingModel: joi.typed<string | null>(embeddingModel.default(null)),
    maxOutputTokens: joi.typed<number | null>(maxOutputTokens.default(null)),
    prices: joi.typed<{ input: number; output: number } | null>(prices.default(null)),
    isDefault: isDefault.default(false),
    enabled: enabled.default(true)
});
/** What PUT `/providers/{id}` takes: what is left out stays. */
export const changedProvider = joi.object({
    name,
    type,
    baseUrl,
    apiKey,
    headers,
    model,
    embeddingModel: joi.typed<string | null | undefined>(embeddingModel.optional()),
    maxOutputTokens: joi.typed<number | null | undefined>(maxOutputTokens.optional()),
    prices: joi.typed<{ input: number; output: number } | null | undefined>(prices.optional()),
    isDefault,
    enabled,
    version
});
/** What a new provider is made of. */
export type NewProvider = Value<typeof newProvider>;
/** What changes of a provider. */
export type ChangedProvider = Value<typeof changedProvider>;

/** What came of the test of a provider. */
export const testSchema = joi.object({
    ok: joi.boolean().required().label('All is well'),
    checks: joi
        .array()
        .items(
            joi.object({
                name: joi.valid('models', 'answer', 'tools', 'embeddings').required().label('Check'),
                ok: joi.boolean().required().label('Passed'),
                ms: joi.number().integer().required().label('Took').unit('millisecond'),
                message: joi.string().allow('').required().label('What it said')
            })
        )
        .required()
        .label('Checks')
});
/** What came of the test of a provider. */
export type ProviderTest = Value<typeof testSchema>;
