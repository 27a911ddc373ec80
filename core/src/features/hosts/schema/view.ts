/** A host as it is read. */
import { joi, type Value } from '@portico/sdk';

import { hostStates, hostTypes, policies, sslModes } from './parts.ts';

/** The answer about one host. */
export const hostView = joi.object({
    id: joi.number().integer().required(),
    domain: joi.string().required(),
    aliases: joi.array().items(joi.string()).required(),
    type: joi
        .string()
        .valid(...hostTypes)
        .required(),
    enabled: joi.boolean().required(),
    maintenance: joi.boolean().required(),
    upstream: joi.string().allow(null).required(),
    upstreams: readUpstreams().required(),
    ssl: joi.boolean().required(),
    sslMode: joi
        .string()
        .valid(...sslModes)
        .required(),
    certificateId: joi.number().allow(null).required(),
    forceHttps: joi.boolean().required(),
    hsts: joi.boolean().required(),
    loadBalancing: joi
        .object({
            policy: joi
                .string()
                .valid(...policies)
                .required(),
            key: joi.string().allow(null).required(),
            retries: joi.number().required(),
            tryDurationSeconds: joi.number().required()
        })
        .allow(null)
        .required(),
    healthCheck: joi
        .object({
            path: joi.string().allow(null).required(),
            intervalSeconds: joi.number().required(),
            timeoutSeconds: joi.number().required(),
            expectStatus: joi.number().required(),
            passive: joi
                .object({ maxFails: joi.number().required(), failDurationSeconds: joi.number().required() })
                .allow(null)
                .required()
        })
        .allow(null)
        .required(),
    locations: joi
        .array()
        .items(
            joi.object({
                path: joi.string().required(),
                upstream: joi.string().required(),
                stripPrefix: joi.boolean().required()
            })
        )
        .required(),
    headers: joi.object({ request: readOperations(), response: readOperations() }).required(),
    access: joi
        .object({
            allow: joi.array().items(joi.string()).required(),
            deny: joi.array().items(joi.string()).required(),
            basicAuth: joi
                .array()
                .items(joi.object({ username: joi.string().required() }))
                .required(),
            forwardAuth: joi
                .object({
                    url: joi.string().required(),
                    copyHeaders: joi.array().items(joi.string()).required()
                })
                .allow(null)
                .required()
        })
        .required(),
    cors: joi
        .object({
            origins: joi.array().items(joi.string()).required(),
            methods: joi.array().items(joi.string()).required(),
            headers: joi.array().items(joi.string()).required(),
            credentials: joi.boolean().required(),
            maxAgeSeconds: joi.number().required()
        })
        .allow(null)
        .required(),
    securityHeaders: joi.boolean().required(),
    compression: joi.boolean().required(),
    bodyLimitBytes: joi.number().allow(null).required(),
    timeouts: joi
        .object({
            connectSeconds: joi.number().allow(null).required(),
            readSeconds: joi.number().allow(null).required(),
            writeSeconds: joi.number().allow(null).required()
        })
        .allow(null)
        .required(),
    errorPages: joi
        .array()
        .items(joi.object({ status: joi.number().required(), body: joi.string().allow('').required() }))
        .required(),
    redirect: joi
        .object({
            to: joi.string().required(),
            code: joi.number().valid(301, 302, 307, 308).required(),
            keepPath: joi.boolean().required()
        })
        .allow(null)
        .required(),
    static: joi
        .object({
            root: joi.string().required(),
            browse: joi.boolean().required(),
            index: joi.array().items(joi.string()).required(),
            spaFallback: joi.boolean().required()
        })
        .allow(null)
        .required(),
    php: joi
        .object({
            root: joi.string().required(),
            fastcgi: joi.string().description('Absent where `upstreams` was given'),
            upstreams: readUpstreams().description('Absent where `fastcgi` was given'),
            index: joi.array().items(joi.string()).required()
        })
        .allow(null)
        .required(),
    advanced: joi.array().items(joi.record(joi.any())).required(),
    tags: joi.array().items(joi.string()).required(),
    notes: joi.string().allow('').required(),
    owner: joi.string().allow(null).required().description('The plugin that made the host; null for people'),
    version: joi.number().integer().required(),
    createdAt: joi.string().required(),
    updatedAt: joi.string().required(),
    state: joi
        .string()
        .valid(...hostStates)
        .required()
        .description('Whether the engine serves the host as it stands here'),
    stateMessage: joi.string().allow(null).required().description('Why it is `pending` or `error`')
});

function readUpstreams() {
    return joi
        .array()
        .items(joi.object({ address: joi.string().required(), weight: joi.number().required() }));
}

function readOperations() {
    return joi
        .array()
        .items(
            joi.object({
                op: joi.string().valid('set', 'add', 'delete').required(),
                name: joi.string().required(),
                value: joi
                    .string()
                    .allow('')
                    .description(
                        'Missing where it is a credential: of `Authorization`, cookies, and names with token, secret, password, key'
                    )
            })
        )
        .required();
}

/** A host as it is read. */
export type HostView = Value<typeof hostView>;
