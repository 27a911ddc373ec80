/** Who would get into a host: the question and the answer of POST `/{id}/access/check`. */
import { joi, type Value } from '@portico/sdk';

import { text } from './parts.ts';

/** The request that is judged. */
export const accessCheck = joi
    .object({
        ip: joi
            .string()
            .ip({ version: ['ipv4', 'ipv6'], cidr: 'forbidden' })
            .required()
            .description("The client's address as the engine sees it"),
        user: text(64).description('Name that the client gives when a password is asked'),
        password: joi.secret().max(72).description('Without it, that of `user` is taken as right')
    })
    .with('password', 'user');

/** Whether the request gets in, and which rule decided. */
export const accessVerdict = joi.object({
    allowed: joi.boolean().allow(null).required().description('null: the forward-auth server decides'),
    status: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .description('The status that a refused client gets'),
    steps: joi
        .array()
        .items(
            joi.object({
                rule: joi
                    .string()
                    .valid('enabled', 'maintenance', 'deny', 'allow', 'basicAuth', 'forwardAuth')
                    .required(),
                outcome: joi.string().valid('passed', 'refused', 'asked').required(),
                evidence: joi.string().required()
            })
        )
        .required()
        .description("The rules that were met, in the engine's order")
});

/** A request that is judged. */
export type AccessCheck = Value<typeof accessCheck>;
/** The judgement about it. */
export type AccessVerdict = Value<typeof accessVerdict>;
