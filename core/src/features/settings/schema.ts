/** The schemas of `/api/settings`. */
import { joi } from '@portico/sdk';
import Joi from 'joi';

import { joiOf } from '../../platform/validation.ts';
import { definitionOf, type SettingKey, settingKeys } from './definitions.ts';

const mask = joi.object({ set: joi.boolean().valid(true).required() });

/** A value as it may be written: null resets it to its default, and a secret may be sent back as it was read. */
function writable(key: SettingKey): Joi.Schema {
    const { schema, description, secret } = definitionOf(key);
    const value = joiOf(schema).allow(null).description(description);
    return secret ? Joi.alternatives().try(value, joiOf(mask)).allow(null) : value;
}

/** A change of several settings: `{ key: value }`. */
export const settingsBody = joi.typed<Record<string, unknown>>(
    Joi.object(Object.fromEntries(settingKeys.map((key) => [key, writable(key)])))
);

/** The path of one setting. */
export const keyParams = joi.object({ key: joi.string().max(128).required() });

const readOnly = joi.any();

/** A change of one setting. The fields that a read shows may be sent back; they are ignored. */
export const settingBody = joi.object({
    value: joi.any().description('null resets the setting to its default'),
    key: readOnly,
    default: readOnly,
    source: readOnly,
    type: readOnly,
    unit: readOnly,
    description: readOnly,
    secret: readOnly,
    restart: readOnly,
    version: joi.number().integer().description('Acts as If-Match')
});

/** One setting as the API shows it; the value of a secret is never shown. */
export const settingView = joi.object({
    key: joi
        .string()
        .valid(...settingKeys)
        .required(),
    value: joi.any().required().description('Of a secret only whether it is set: `{ "set": true }` or null'),
    default: joi.any().required(),
    source: joi.string().valid('default', 'stored', 'environment').required(),
    type: joi.string().valid('string', 'integer', 'boolean', 'list', 'object').required(),
    unit: joi.string().allow(null).required(),
    description: joi.string().required(),
    secret: joi.boolean().required(),
    restart: joi.boolean().required().description('A change takes effect after the next start of the panel'),
    version: joi.number().integer().required()
});

/** The data of `GET /api/settings`: every setting, by key. */
export const settingsView = joi.array().items(settingView);

/** What the detection of addresses found. */
export const detectedView = joi.object({
    ipv4: joi.string().allow(null).required().description('The setting `server.ipv4` as it is now'),
    ipv6: joi.string().allow(null).required().description('The setting `server.ipv6` as it is now'),
    candidates: joi
        .array()
        .items(
            joi.object({
                address: joi.string().required(),
                family: joi.string().valid('ipv4', 'ipv6').required(),
                interface: joi.string().required(),
                public: joi
                    .boolean()
                    .required()
                    .description('Addresses of its kind can be reached from the internet')
            })
        )
        .required()
});
