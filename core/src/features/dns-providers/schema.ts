/** The wire shape of a DNS provider. */
import { joi, type Value } from '@portico/sdk';

const longestField = 8192;
const mostFields = 64;

const name = () => joi.string().max(100).description('For people; no two providers have the same');
const type = () => joi.string().max(64).description('One of `GET /api/dns-providers/types`');
const isDefault = () =>
    joi.boolean().description('Taken where a certificate names no provider. At most one is');

/** The body of `POST /api/dns-providers`. */
export const providerCreate = joi.object({
    name: name().required(),
    type: type().required(),
    credentials: joi
        .record(joi.secret().max(longestField))
        .max(mostFields)
        .required()
        .description('A value for each field of the type. Sealed at rest, never read back'),
    isDefault: isDefault().default(false)
});

/** What is only read may be sent back and is ignored, but `version`, which acts as If-Match. */
export const providerUpdate = joi.object({
    name: name(),
    type: type(),
    credentials: joi
        .record(joi.alternatives(joi.secret().max(longestField), joi.valid(true, null)))
        .description(
            'Fields that are not named, or are `true` as in a read, keep their values; null removes one. Another `type` takes none over'
        ),
    isDefault: isDefault(),
    version: joi.number().integer().min(1),
    id: joi.any(),
    usedBy: joi.any(),
    createdAt: joi.any(),
    updatedAt: joi.any()
});

/** Path parameters of one provider. */
export const providerParams = joi.object({ id: joi.number().integer().min(1).required() });

/** Body of a test. */
export const providerTest = joi.object({
    domain: joi
        .string()
        .max(253)
        .description(
            'For which the record is written, at `_acme-challenge.` before it. May be left out where the provider names its zone'
        )
});

/** The answer about one provider. Credentials are never in it. */
export const providerView = joi.object({
    id: joi.number().integer().required(),
    name: joi.string().required(),
    type: joi.string().required(),
    credentials: joi.record(joi.boolean()).required().description('Which fields are set'),
    isDefault: joi.boolean().required(),
    usedBy: joi
        .array()
        .items(joi.number().integer())
        .required()
        .description('Ids of the certificates that are issued with it'),
    version: joi.number().integer().required(),
    createdAt: joi.string().required(),
    updatedAt: joi.string().required()
});

/** The answer about one type of provider. */
export const typeView = joi.object({
    type: joi.string().required(),
    label: joi.string().required(),
    builtIn: joi.boolean().required().description('False: the command `lego` does the work'),
    fields: joi
        .array()
        .items(
            joi.object({
                name: joi.string().required(),
                label: joi.string().required(),
                secret: joi.boolean().required().description('Not to be shown while it is typed'),
                required: joi.boolean().required(),
                help: joi.string().allow('').required(),
                options: joi.array().items(joi.string()).description('The only values')
            })
        )
        .required()
});

/** The answer of a test. */
export const testView = joi.object({
    ok: joi.boolean().required(),
    record: joi.string().required().description('The name that was written, before any CNAME'),
    steps: joi
        .array()
        .items(
            joi.object({
                step: joi.string().valid('write', 'lookup', 'remove').required(),
                ok: joi.boolean().required(),
                message: joi.string().allow('').required(),
                milliseconds: joi.number().integer().required(),
                seen: joi
                    .array()
                    .items(
                        joi.object({
                            server: joi.string().required(),
                            values: joi.array().items(joi.string().allow('')).required(),
                            error: joi.string().allow(null).required()
                        })
                    )
                    .description('What each name server said of the record')
            })
        )
        .required(),
    log: joi.array().items(joi.string().allow('')).required()
});

/** A provider that is to be made, with its credentials in plain text. */
export type ProviderCreate = Value<typeof providerCreate>;
/** A change of a provider. */
export type ProviderUpdate = Value<typeof providerUpdate>;
/** A provider as it is read. */
export type ProviderView = Value<typeof providerView>;
/** What a test found. */
export type ProviderTestResult = Value<typeof testView>;
