/** What may be sent about hosts: bodies, parameters and queries. */
import { joi, type Value } from '@portico/sdk';

import { errorPages, php, redirect, staticFiles } from './content.ts';
import { address, bounds, hostStates, hostTypes, name, sslModes, text } from './parts.ts';
import { healthCheck, loadBalancing, locations, timeouts, upstreams } from './proxy.ts';
import { access, cors, headers } from './visitors.ts';

/** In this order they are checked and documented. */
const fields = {
    aliases: joi
        .array()
        .items(name())
        .max(bounds.aliases)
        .allow(null)
        .default([])
        .description('Further names, with the rules of `domain`'),
    type: joi
        .string()
        .valid(...hostTypes)
        .allow(null)
        .default('proxy')
        .description(
            'What the host does. Fields of another type are refused; changing the type clears those of the old one'
        ),
    upstream: address()
        .allow(null)
        .description('Where a proxy sends to: the first of `upstreams`. Sent alone, it replaces the list'),
    upstreams,
    ssl: joi.boolean().allow(null).default(false).description('Serves HTTPS'),
    sslMode: joi
        .string()
        .valid(...sslModes)
        .allow(null)
        .default('auto')
        .description(
            "`auto`: by ACME; `internal`: by the engine's own authority; `certificate`: the one of `certificateId`"
        ),
    certificateId: joi
        .number()
        .integer()
        .min(1)
        .allow(null)
        .default(null)
        .description('A certificate that covers every name of the host; only with `sslMode` `certificate`'),
    forceHttps: joi
        .boolean()
        .allow(null)
        .description('Redirects HTTP to HTTPS. Follows `ssl` unless it is sent'),
    hsts: joi
        .boolean()
        .allow(null)
        .description('Sends Strict-Transport-Security; only with `ssl`. Default false'),
    loadBalancing,
    healthCheck,
    locations,
    headers,
    access,
    cors,
    securityHeaders: joi
        .boolean()
        .allow(null)
        .default(false)
        .description(
            'Sets X-Content-Type-Options, sets X-Frame-Options and Referrer-Policy where the upstream has none, and takes Server and X-Powered-By away'
        ),
    compression: joi.boolean().allow(null).default(false).description('Compresses what compresses well'),
    bodyLimitBytes: joi
        .number()
        .integer()
        .min(1)
        .max(1024 ** 4)
        .allow(null)
        .default(null)
        .description('Largest request body, 1 byte to 1 TiB; null: no limit'),
    timeouts,
    errorPages,
    maintenance: joi.boolean().allow(null).default(false).description('Answers 503 to every request'),
    redirect,
    static: staticFiles,
    php,
    advanced: joi
        .array()
        .items(joi.record(joi.any()))
        .max(bounds.advanced)
        .allow(null)
        .default([])
        .description(
            "Handlers in the engine's own language, put before the host's own. Needs `hosts:unsafe`"
        ),
    tags: joi.array().items(text(bounds.tagLength)).max(bounds.tags).allow(null).default([]),
    notes: text(bounds.notesLength).allow('', null).default(''),
    enabled: joi.boolean().allow(null).default(true).description('Whether the engine serves the host at all')
};

/** Body of POST: a new host. */
export const hostCreate = joi.object({
    domain: name().required().description('One name; `*.` before it stands for one label'),
    ...fields
});

/**
 * Body of PUT: the same fields, all optional. A client may send back what it read: fields that it cannot change are ignored, and `version`
 * acts as If-Match.
 */
export const hostUpdate = joi.object({
    domain: name(),
    ...fields,
    id: joi.any(),
    owner: joi.any(),
    createdAt: joi.any(),
    updatedAt: joi.any(),
    state: joi.any(),
    stateMessage: joi.any(),
    version: joi
        .number()
        .integer()
        .min(1)
        .description('The version that this change was made for; 41200 when it is not the present one')
});

/** Body of POST `/{id}/clone`. */
export const hostClone = joi.object({
    domain: name().required().description('Name of the copy; it gets no aliases')
});

/** Body of POST `/batch`. */
export const hostBatch = joi.object({
    ids: joi
        .array()
        .items(joi.number().integer().min(1))
        .min(1)
        .max(bounds.batch)
        .required()
        .description('Each id once'),
    action: joi.string().valid('enable', 'disable', 'delete').required()
});

/** Path parameters of one host. */
export const hostParams = joi.object({ id: joi.number().integer().min(1).required() });

/** The fields by which the list can be sorted; a `-` before one reverses the order. */
export const sortFields = ['id', 'domain', 'type', 'createdAt', 'updatedAt'] as const;

/** Query of the list. */
export const hostQuery = joi.object({
    q: text(253).description('Part of a name, an upstream, a tag or the notes; letter case does not count'),
    tag: text(bounds.tagLength).description('Hosts with exactly this tag'),
    type: joi.string().valid(...hostTypes),
    enabled: joi.boolean(),
    state: joi.string().valid(...hostStates),
    sort: joi
        .string()
        .valid(...sortFields, ...sortFields.map((field) => `-${field}` as const))
        .default('id'),
    limit: joi.number().integer().min(1).max(1000).description('Page size; without it, all hosts'),
    cursor: text(2048).description('From the `Link` of the page before; with the same filters and sort')
});

/** A change as it may be sent to PUT: a field that it leaves out keeps its value. An import sends parts of objects, too. */
export type HostChange = Loose<Value<typeof hostUpdate>>;
/** A query of the list, with its defaults. */
export type HostQuery = Value<typeof hostQuery>;
/** One action on several hosts. */
export type HostBatch = Value<typeof hostBatch>;

/** The same type with every field optional, at any depth. */
export type Loose<T> = T extends readonly (infer E)[]
    ? readonly Loose<E>[]
    : T extends object
      ? { readonly [K in keyof T]?: Loose<T[K]> | undefined }
      : T;
