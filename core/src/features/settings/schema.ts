/** The shapes of `/api/settings`. */
import { joi } from '@portico/sdk';
import type Joi from 'joi';

import { definitionOf, settingKeys } from './definitions.ts';

const mask = joi.object({ set: joi.boolean().valid(true).required() });

/** A value as it may be written: null puts it back to its default, and a secret may be sent back as it was read. */
function writable(key: (typeof settingKeys)[number]): Joi.Schema {
    const { schema, description, secret } = definitionOf(key);
    const value = (schema as unknown as Joi.Schema).allow(null).description(description);
    return secret
        ? (joi.alternatives(value as never, mask as never).allow(null) as unknown as Joi.Schema)
        : value;
}

export const settingsBody = joi.typed<Record<string, unknown>>(
    joi.object(
        Object.fromEntries(settingKeys.map((key) => [key, writable(key) as never]))
    ) as unknown as Joi.Schema
);

export const keyParams = joi.object({ key: joi.string().max(128).required() });

const readOnly = joi.any();

export const settingBody = joi.object({
    value: joi.any().description('null puts the setting back to its default'),
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

export const settingView = joi.object({
    key: joi
        .string()
        .valid(...settingKeys)
        .required(),
    value: joi
        .any()
        .required()
        .description('Of a secret one only whether it is set: `{ "set": true }` or null'),
    default: joi.any().required(),
    source: joi.string().valid('default', 'stored', 'environment').required(),
    type: joi.string().valid('string', 'integer', 'boolean', 'list', 'object').required(),
    unit: joi.string().allow(null).required(),
    description: joi.string().required(),
    secret: joi.boolean().required(),
    restart: joi.boolean().required().description('A change shows only after the panel was started again'),
    version: joi.number().integer().required()
});

export const settingsView = joi.array().items(settingView);

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
                public: joi.boolean().required().description('Can be reached from the internet by its kind')
            })
        )
        .required()
});
