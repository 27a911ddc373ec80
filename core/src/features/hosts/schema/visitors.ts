/** Who gets in, and which headers go both ways. */
import { joi } from '@portico/sdk';

import { bounds, seconds, text } from './parts.ts';

const operations = () =>
    joi
        .array()
        .items(
            joi.object({
                op: joi
                    .string()
                    .valid('set', 'add', 'delete')
                    .required()
                    .description('`set` replaces, `add` keeps what is there, `delete` removes'),
                name: text(256)
                    .required()
                    .description(
                        'Header name. `Host` of a request can only be set, and needs `hosts:unsafe`'
                    ),
                value: text(8192)
                    .allow('')
                    .default('')
                    .description(
                        'Empty for `delete`. Write-only for `Authorization` and its like in a request; without it, the present value stays'
                    )
            })
        )
        .max(bounds.headerOperations);

/** The field `headers` of a host: what is changed in requests and in answers. */
export const headers = joi
    .object({
        request: operations().default([]).description('On the way to the upstream'),
        response: operations().default([]).description('On the way to the client')
    })
    .allow(null)
    .default({ request: [], response: [] })
    .description('Header operations, in this order');

/** The field `access` of a host: addresses and passwords that are let in. */
export const access = joi
    .object({
        allow: joi
            .array()
            .items(text(64))
            .max(bounds.addresses)
            .default([])
            .description('Addresses or ranges that may enter; empty: all. Several mean any of them'),
        deny: joi
            .array()
            .items(text(64))
            .max(bounds.addresses)
            .default([])
            .description('Addresses or ranges that may not; wins over `allow`'),
        basicAuth: joi
            .array()
            .items(
                joi.object({
                    username: text(64).required(),
                    password: joi
                        .secret()
                        .max(72)
                        .description(
                            'Write-only, at most 72 bytes. Without it, the user keeps the present one'
                        )
                })
            )
            .max(bounds.basicAuth)
            .default([])
            .description('Users with passwords; empty: no password is asked'),
        forwardAuth: joi
            .object({
                url: text(2048)
                    .required()
                    .description(
                        'http or https URL that is asked about each request; a 2xx answer lets it through'
                    ),
                copyHeaders: joi
                    .array()
                    .items(text(256))
                    .max(bounds.copyHeaders)
                    .default([])
                    .description('Headers of its answer that go on to the upstream')
            })
            .allow(null)
            .default(null)
    })
    .allow(null)
    .default({ allow: [], deny: [], basicAuth: [], forwardAuth: null })
    .description('Who gets in. Every condition must hold');

/** The field `cors` of a host: which origins may read its answers. */
export const cors = joi
    .object({
        origins: joi
            .array()
            .items(text(300))
            .min(1)
            .max(bounds.corsOrigins)
            .required()
            .description('Exact origins, or the single entry `*`'),
        methods: joi
            .array()
            .items(text(32))
            .max(bounds.corsMethods)
            .default(['GET', 'HEAD', 'POST'])
            .description('Methods that a preflight allows'),
        headers: joi
            .array()
            .items(text(256))
            .max(bounds.corsHeaders)
            .default([])
            .description('Request headers that a preflight allows'),
        credentials: joi.boolean().default(false).description('Lets cookies through; not with `*`'),
        maxAgeSeconds: seconds(0, 86_400)
            .default(600)
            .description('For how long a preflight is remembered, 0 to 86,400 s')
    })
    .allow(null)
    .default(null)
    .description('Answers preflights and marks answers for these origins; null: not');
