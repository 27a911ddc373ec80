/** What a proxy sends where, and how it watches its upstreams. */
import { joi } from '@portico/sdk';

import { address, bounds, defaultKeys, path, policies, seconds, text, weight } from './parts.ts';

/** The field `upstreams` of a host: the addresses that share its requests. */
export const upstreams = joi
    .array()
    .items(
        joi.object({
            address: address().required(),
            weight: weight().description('Share of the traffic under the policy `weighted`, 1 to 1,000')
        })
    )
    .max(bounds.upstreams)
    .allow(null)
    .description(
        'Every address that a proxy sends to; all of them speak the same way (plain HTTP, HTTPS, or HTTP/2 without TLS)'
    );

/** The field `loadBalancing` of a host: how one of its upstreams is chosen. */
export const loadBalancing = joi
    .object({
        policy: joi
            .string()
            .valid(...policies)
            .default('round_robin')
            .description('How an upstream is chosen'),
        key: text(256)
            .allow(null)
            .description(
                `Header of the policy \`header\` (default ${defaultKeys.header}) or cookie of the policy \`cookie\` (default ${defaultKeys.cookie}); not for others`
            ),
        retries: joi
            .number()
            .integer()
            .min(0)
            .max(10)
            .default(0)
            .description('Further upstreams tried after a failure to connect, 0 to 10'),
        tryDurationSeconds: seconds(0, 300)
            .default(0)
            .description('For how long another upstream is looked for, 0 to 300 s')
    })
    .allow(null)
    .default(null)
    .description('Only for `proxy`');

/** The field `healthCheck` of a host: when an upstream counts as down. */
export const healthCheck = joi
    .object({
        path: path().allow(null).default(null).description('Path and query of the active check; null: none'),
        intervalSeconds: seconds(1, 3600).default(30).description('1 to 3,600 s'),
        timeoutSeconds: seconds(1, 300).default(5).description('1 to 300 s'),
        expectStatus: joi
            .number()
            .integer()
            .min(1)
            .max(599)
            .default(2)
            .description('Healthy status: 100 to 599, or 1 to 5 for a whole class (2 is 2xx)'),
        passive: joi
            .object({
                maxFails: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(1000)
                    .default(1)
                    .description('So many failures take an upstream out, 1 to 1,000'),
                failDurationSeconds: seconds(1, 3600)
                    .default(30)
                    .description('For how long a failure is remembered, 1 to 3,600 s')
            })
            .allow(null)
            .default(null)
            .description('Watches real requests; null: not')
    })
    .allow(null)
    .default(null)
    .description('Only for `proxy`');

/** The field `locations` of a host: paths that go to upstreams of their own. */
export const locations = joi
    .array()
    .items(
        joi.object({
            path: path()
                .required()
                .description(
                    "Path prefix on a segment's border: `/api` matches `/api` and `/api/x`, not `/apis`"
                ),
            upstream: address().required(),
            stripPrefix: joi
                .boolean()
                .default(false)
                .description('Takes the prefix off before the request is sent')
        })
    )
    .max(bounds.locations)
    .allow(null)
    .default([])
    .description('Paths that are proxied elsewhere; the longest one wins. Not for `redirect`');

/** The field `timeouts` of a host, in seconds; null is the engine's own value. */
export const timeouts = joi
    .object({
        connectSeconds: seconds(1, 3600)
            .allow(null)
            .default(null)
            .description("To connect to the upstream, 1 to 3,600 s; null: the engine's own"),
        readSeconds: seconds(1, 86_400)
            .allow(null)
            .default(null)
            .description("To wait for the upstream's answer, 1 to 86,400 s; null: the engine's own"),
        writeSeconds: seconds(1, 86_400)
            .allow(null)
            .default(null)
            .description("To send to the upstream, 1 to 86,400 s; null: the engine's own")
    })
    .allow(null)
    .default(null)
    .description('Only for `proxy` and `php`');
