/** The shapes of checks and their results in requests and answers. */
import { joi, type Value } from '@portico/sdk';

import { headerValue } from '../headers.ts';
/** What a check tries. */
export const kinds = ['http', 'tcp', 'dns', 'tls', 'ping'] as const;
/** What a check tries. */
export type CheckKind = (typeof kinds)[number];
/** How a check is: of its last tries, or `paused` while it is switched off. */
export const states = ['up', 'down', 'degraded', 'unknown', 'paused'] as const;

const stateUi = {
    tones: { up: 'good', down: 'bad', degraded: 'warning', unknown: 'neutral', paused: 'neutral' }
} as const;
const line = (most: number) =>
    joi
        .string()
        .min(1)
        .max(most)
        .pattern(/^\P{Cc}+$/u, 'text of one line');

const expect = joi
    .object({
        method: joi.valid('GET', 'HEAD', 'POST').label('Method').description('http: default GET'),
        headers: joi
            .record(headerValue)
            .max(50)
            .label('Headers')
            .description(
                'http: values are never read back; `{ "set": true }` stands for each, and keeps it in a write'
            ),
        status: joi
            .array()
            .items(joi.string().pattern(/^[1-5](\d\d|xx)$/, 'status'))
            .min(1)
            .max(20)
            .label('Wanted status')
            .description('http: such as 2xx or 204; default 2xx and 3xx. Redirects are not followed'),
        text: joi.string().min(1).max(1_000).label('Wanted text').description('http: a part of the answer'),
        json: joi
            .object({
                path: line(200).required().label('Path').description('Such as `services.0.state`'),
                equals: joi
                    .alternatives(
                        joi.string().max(1_000).allow(''),
                        joi.number(),
                        joi.boolean(),
                        joi.valid(null)
                    )
                    .required()
                    .label('Value')
            })
            .label('Wanted value')
            .description('http: a value in an answer that is JSON'),
        certificateDays: joi
            .number()
            .integer()
            .min(0)
            .max(365)
            .label('Days of the certificate')
            .unit('day')
            .description('http, tls: with fewer days left it is degraded; default 14 for tls, none for http'),
        type: joi
            .valid('A', 'AAAA', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SRV', 'TXT')
            .label('Record')
            .description('dns: default A'),
        server: line(260)
            .label('Name server')
            .description(
                "dns: an address or name, with a port where it is not 53; default: the machine's own"
            ),
        values: joi
            .array()
            .items(line(1_000))
            .min(1)
            .max(50)
            .label('Wanted records')
            .description('dns: each must be among those of the answer'),
        send: joi.string().min(1).max(4_096).label('Text to send').description('tcp'),
        receive: joi
            .string()
            .min(1)
            .max(1_000)
            .label('Text to wait for')
            .description('tcp: a part of what is received')
    })
    .label('What is expected');
/** What a check expects. */
export type Expect = Value<typeof expect>;

const fields = {
    name: line(100).label('Name'),
    kind: joi.valid(...kinds).label('Kind'),
    target: line(2_000)
        .label('Target')
        .description(
            'http: an address with `http://` or `https://`; tcp, tls: `host:port`; dns, ping: a name'
        ),
    intervalSeconds: joi.number().integer().min(10).max(86_400).label('Every').unit('second'),
    timeoutSeconds: joi.number().integer().min(1).max(60).label('Patience').unit('second'),
    retries: joi
        .number()
        .integer()
        .min(0)
        .max(5)
        .label('More tries')
        .description('How often it is tried again, five seconds later, before it is down'),
    enabled: joi.boolean().label('Enabled'),
    tags: joi.array().items(line(50)).unique().max(20).label('Tags')
};
const ignored = joi.readOnly(joi.any()).description('Ignored in a write');
const readOnly = {
    id: ignored,
    state: ignored,
    since: ignored,
    latencyMs: ignored,
    lastError: ignored,
    certificate: ignored,
    uptime: ignored,
    checkedAt: ignored,
    createdAt: ignored,
    updatedAt: ignored
};

/** The body that creates a check, or tests one. */
export const newCheck = joi.object({
    name: fields.name.required(),
    kind: fields.kind.required(),
    target: fields.target.required(),
    intervalSeconds: fields.intervalSeconds.default(60),
    timeoutSeconds: fields.timeoutSeconds.default(10),
    retries: fields.retries.default(1),
    enabled: fields.enabled.default(true),
    tags: fields.tags.default([]),
    expect: expect.default({}),
    version: ignored,
    ...readOnly
});
/** The body that changes a check; fields that it leaves out stay as they are. */
export const changedCheck = joi.object({
    ...fields,
    expect,
    version: joi.number().integer().label('Version').description('Acts as If-Match'),
    ...readOnly
});
/** A checked check that is to be made. */
export type NewCheck = Value<typeof newCheck>;
/** A change of a check. */
export type ChangedCheck = Value<typeof changedCheck>;

const percent = (label: string) => joi.number().allow(null).required().label(label).unit('percent');
const phase = (label: string) => joi.number().allow(null).required().label(label).unit('millisecond');

/** A check in answers. */
export const checkSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    kind: joi
        .valid(...kinds)
        .required()
        .label('Kind')
        .meta({ ui: { column: 3 } }),
    target: joi
        .string()
        .required()
        .label('Target')
        .meta({ ui: { column: 4 } }),
    state: joi
        .valid(...states)
        .required()
        .label('State')
        .meta({ ui: { ...stateUi, column: 2 } }),
    since: joi.string().isoDate().allow(null).required().label('Since'),
    latencyMs: joi
        .number()
        .allow(null)
        .required()
        .label('Latency')
        .unit('millisecond')
        .meta({ ui: { column: 5 } }),
    lastError: joi.string().allow(null).required().label('What was wrong last'),
    checkedAt: joi.string().isoDate().allow(null).required().label('Tried'),
    certificate: joi
        .object({
            issuer: joi.string().allow('').required().label('Issuer'),
            notAfter: joi.string().isoDate().required().label('Ends'),
            daysLeft: joi.number().required().label('Days left').unit('day')
        })
        .allow(null)
        .required()
        .label('Certificate'),
    uptime: joi
        .object({ day: percent('Last day'), week: percent('Last week'), month: percent('Last 30 days') })
        .required()
        .label('Uptime')
        .description('Share of the tries at which it was not down; null without one'),
    intervalSeconds: fields.intervalSeconds.required(),
    timeoutSeconds: fields.timeoutSeconds.required(),
    retries: fields.retries.required(),
    enabled: fields.enabled.required(),
    tags: fields.tags.required(),
    expect: expect.required(),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    createdAt: joi.string().isoDate().required().label('Created'),
    updatedAt: joi.string().isoDate().required().label('Changed')
});
/** A check in answers. */
export type CheckView = Value<typeof checkSchema>;

/** A result in answers. */
export const resultSchema = joi.object({
    at: joi
        .string()
        .isoDate()
        .required()
        .label('At')
        .meta({ ui: { column: 1 } }),
    state: joi
        .valid('up', 'down', 'degraded', 'unknown')
        .required()
        .label('State')
        .description('What this try saw; the check is down after more tries')
        .meta({ ui: { ...stateUi, column: 2 } }),
    latencyMs: joi
        .number()
        .allow(null)
        .required()
        .label('Latency')
        .unit('millisecond')
        .meta({ ui: { column: 3 } }),
    code: joi
        .string()
        .allow(null)
        .required()
        .label('Reason')
        .description(
            'Begins with the step that failed: NAME, CONNECT, TLS or ANSWER; else what was not as wanted'
        ),
    message: joi
        .string()
        .allow(null)
        .required()
        .label('What was wrong')
        .meta({ ui: { column: 4 } }),
    phases: joi
        .object({
            name: phase('Name'),
            connect: phase('Connection'),
            tls: phase('TLS'),
            firstByte: phase('First byte')
        })
        .required()
        .label('Steps')
});
/** A result in answers. */
export type ResultView = Value<typeof resultSchema>;
