/** The schemas of channels and deliveries. */
import { joi, type Value } from '@portico/sdk';

import { eventPattern } from './channels/patterns.ts';
import { addressPattern, senderPattern } from './delivery/email.ts';

const name = () => joi.string().max(100).description('A name for users');
const events = () =>
    joi
        .array()
        .items(joi.string().max(100).pattern(eventPattern, 'event pattern'))
        .min(1)
        .max(50)
        .unique()
        .description('`certificate.expiring`, `certificate.*` or `*`')
        .meta({ ui: { ref: 'channels.events' } });
const enabled = () =>
    joi.boolean().description('A disabled channel gets nothing new; its waiting deliveries stay');
const secret = () =>
    joi
        .secret()
        .max(200)
        .description(
            'Signs the messages: `whsec_` and base64 of 24 to 64 bytes. When it is not given, it is generated and shown once, in the answer. Never read back'
        );
const password = () => joi.secret().max(1024);
const own = {
    url: joi
        .secret()
        .max(2048)
        .description(
            'webhook: http or https; no user name, no password. Only its origin is read back; sent back like that, the address stays as it is'
        ),
    secret: secret(),
    host: joi.string().max(253).description('email: name or address of the server'),
    port: joi
        .number()
        .integer()
        .min(1)
        .max(65_535)
        .description('email: default 465 with tls, 587 with starttls, 25 with none'),
    security: joi
        .string()
        .valid('none', 'starttls', 'tls')
        .description('email: default starttls, which is refused where the server does not offer it'),
    from: joi
        .string()
        .max(400)
        .pattern(senderPattern, 'sender')
        .description('email: an address, or a name and an address in angle brackets'),
    to: joi
        .array()
        .items(joi.string().max(320).pattern(addressPattern, 'address'))
        .min(1)
        .max(20)
        .unique()
        .description('email: addresses')
} as const;
const ignored = joi.any().description('Read only; ignored in a write');
const readOnly = { id: ignored, passwordSet: ignored, createdAt: ignored, updatedAt: ignored };
const version = joi.number().integer().min(1).description('Acts as If-Match');

/** The body of `POST /api/settings/channels`; which fields are needed depends on `type`. */
export const channelCreate = joi.object({
    name: name().required(),
    type: joi.string().valid('webhook', 'email').required(),
    events: events().default(['*']),
    enabled: enabled().default(true),
    ...own,
    username: joi.string().max(255).allow(null).description('email: only where the server asks for one'),
    password: password().description('email: never read back'),
    version,
    ...readOnly
});

/** A change of a channel. `type` may be sent back, but not changed. */
export const channelUpdate = joi.object({
    name: name(),
    type: joi.string().valid('webhook', 'email'),
    events: events(),
    enabled: enabled(),
    ...own,
    username: joi
        .string()
        .max(255)
        .allow(null)
        .description('email: null clears it, and the password with it'),
    password: password().description(
        'email: never read back. To be sent again when `host` changes or `security` becomes none'
    ),
    version,
    ...readOnly
});

/** The path of a channel. */
export const channelParams = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});
/** The path of a delivery. */
export const deliveryParams = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    n: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required()
});

/** The query of the list of deliveries. */
export const deliveryQuery = joi.object({
    state: joi.string().valid('pending', 'delivered', 'failed'),
    limit: joi.number().integer().min(1).max(500).default(100),
    cursor: joi.string().max(20).pattern(/^\d+$/, 'cursor')
});

const time = joi.string().isoDate();

/** A notification channel as the API shows it, without its secrets. */
export const channelView = joi.object({
    id: joi.number().integer().required(),
    name: joi.string().required(),
    type: joi.string().valid('webhook', 'email').required(),
    events: joi.array().items(joi.string()).required(),
    enabled: joi.boolean().required(),
    url: joi.string().description('webhook: only the origin of its address'),
    secret: joi.string().description('webhook: only in the answer to the creation of a channel without one'),
    host: joi.string(),
    port: joi.number().integer(),
    security: joi.string().valid('none', 'starttls', 'tls'),
    username: joi.string().allow(null),
    passwordSet: joi.boolean(),
    from: joi.string(),
    to: joi.array().items(joi.string()),
    version: joi.number().integer().required(),
    createdAt: time.required(),
    updatedAt: time.required()
});

/** One message to one channel, and how far its delivery got. */
export const deliveryView = joi.object({
    n: joi.number().integer().required(),
    messageId: joi.string().required().description('`webhook-id`; the same for all attempts and replays'),
    event: joi.string().required(),
    severity: joi.string().valid('info', 'warning', 'error').required(),
    title: joi.string().allow('').required(),
    state: joi.string().valid('pending', 'delivered', 'failed').required(),
    attempts: joi.number().integer().required(),
    createdAt: time.required(),
    lastAttemptAt: time.allow(null).required(),
    nextAttemptAt: time.allow(null).required(),
    finishedAt: time.allow(null).required(),
    status: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .description('Status code of HTTP or SMTP at the last attempt'),
    error: joi.string().allow(null).required(),
    response: joi.string().allow(null).required().description('The beginning of the answer of the receiver'),
    replayOf: joi.number().integer().allow(null).required()
});

/** A new channel as a client sends it. */
export type ChannelCreate = Value<typeof channelCreate>;
/** A change as a client sends it. */
export type ChannelUpdate = Value<typeof channelUpdate>;
/** A channel as the API shows it. */
export type ChannelView = Value<typeof channelView>;
/** Which deliveries a client asks for. */
export type DeliveryQuery = Value<typeof deliveryQuery>;
/** A delivery as the API shows it. */
export type DeliveryView = Value<typeof deliveryView>;

/** An event that a channel can be told of. */
export const eventNameView = joi.object({
    name: joi.string().required().description('As a channel takes it in `events`'),
    title: joi.string().required()
});
