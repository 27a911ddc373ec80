/** Parts of the wire shape of one plugin. */
import { joi } from '@portico/sdk';

const time = () => joi.string().allow(null).required();

/** What the last end of a plugin let go of. */
export const released = joi
    .object({
        at: joi.string().required(),
        released: joi
            .array()
            .items(joi.object({ kind: joi.string().required(), name: joi.string().allow('').required() }))
            .required(),
        leaked: joi
            .array()
            .items(
                joi.object({
                    kind: joi.string().required(),
                    name: joi.string().allow('').required(),
                    error: joi.string().allow('').required()
                })
            )
            .required()
            .description('What is still there'),
        cut: joi.number().integer().required().description('Requests that had to be cut'),
        failures: joi
            .array()
            .items(joi.string().allow(''))
            .required()
            .description('What its own end failed with')
    })
    .allow(null)
    .required()
    .description('What its last end in this process let go of');

/** A program that a plugin keeps running. */
export const service = joi.object({
    name: joi.string().required(),
    state: joi
        .string()
        .valid('running', 'stopped', 'failed')
        .required()
        .description('`failed`: it should run and does not, or its only run failed'),
    pid: joi.number().integer().allow(null).required(),
    startedAt: time(),
    exits: joi.number().integer().required().description('How often it ended without being asked to'),
    failures: joi.number().integer().required().description('Failed runs in a row'),
    lastExit: joi
        .object({
            code: joi.number().integer().allow(null).required(),
            signal: joi.string().allow(null).required(),
            limit: joi.string().valid('memory').allow(null).required(),
            at: joi.string().required()
        })
        .allow(null)
        .required(),
    program: joi.string().required(),
    user: joi.string().allow(null).required().description("null: the panel's own account")
});

/** The installed versions of a plugin. */
export const versions = joi
    .array()
    .items(
        joi.object({
            version: joi.string().required(),
            integrity: joi.string().required(),
            signature: joi.string().required(),
            installedAt: joi.string().required(),
            current: joi.boolean().required()
        })
    )
    .required()
    .description(
        'Installed versions, the newest install first: the present one and those that it can go back to without the npm registry. Empty for a plugin that no admin installed'
    );
