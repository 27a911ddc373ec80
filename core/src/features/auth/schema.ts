/** The shapes of `/api/auth` on the wire. */
import { joi } from '@portico/sdk';

const time = joi.string().isoDate();
const username = joi.string().max(128);
const password = joi.secret().max(1024, 'utf8');
const code = joi.secret().max(64);
const id = joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER);

/** Path parameters of a session or an API token. */
export const idParams = joi.object({ id: id.required() });

/** The answer of `GET /api/auth/login`. */
export const challenge = joi.object({
    algorithm: joi.string().valid('SHA-256').required(),
    challenge: joi
        .string()
        .hex()
        .length(64)
        .required()
        .description('Hex SHA-256 of the salt and the number, which is to be found'),
    maxnumber: joi.number().integer().required().description('The number is below it'),
    salt: joi.string().required(),
    signature: joi.string().hex().length(64).required()
});

/** The body of `POST /api/auth/login`. */
export const credentials = joi.object({
    username: username.required(),
    password: password.required(),
    altcha: joi
        .string()
        .max(8192)
        .allow('', null)
        .description('Base64 of the solved challenge as JSON: algorithm, challenge, number, salt, signature'),
    totp: code.allow('', null).description('Six digits, or a recovery code')
});

const pair = {
    token: joi.secret().required(),
    expiresAt: time.required(),
    refreshToken: joi.secret().required(),
    refreshExpiresAt: time.required()
};
const self = {
    id: id.required(),
    username: joi.string().required(),
    role: joi.string().required(),
    permissions: joi
        .array()
        .items(joi.string())
        .required()
        .description('What one may as of now; with an API token only what that was given'),
    totpEnabled: joi.boolean().required(),
    mustChangePassword: joi.boolean().required()
};

/** The answer of `POST /api/auth/refresh`. */
export const tokenPair = joi.object(pair);

/** The answer of `POST /api/auth/login`. */
export const login = joi.object({ ...pair, user: joi.object(self).required() });

/** The answer of `GET /api/auth/me`. */
export const me = joi.object({
    ...self,
    token: joi
        .object({
            kind: joi.string().valid('session', 'token').required(),
            id: id.required().description('Of the session or the API token'),
            name: joi.string().allow(null).required(),
            fresh: joi.boolean().required(),
            freshUntil: time.allow(null).required(),
            expiresAt: time.required().description('When the session or the API token ends by itself')
        })
        .required()
});

/** The body of `PUT /api/auth/password`. */
export const passwordChange = joi.object({
    currentPassword: password.required(),
    newPassword: password.required()
});

/** One session in a list. */
export const session = joi.object({
    id: id.required(),
    createdAt: time.required(),
    lastSeenAt: time.required().description('To the minute'),
    expiresAt: time.required(),
    ip: joi.string().allow('').required(),
    userAgent: joi.string().allow('', null).required(),
    current: joi.boolean().required()
});

/** The body that begins the setup of a second factor. */
export const enrolmentRequest = joi.object({ password: password.required() });

/** The secret of a second factor that is being set up. */
export const enrolment = joi.object({
    secret: joi.secret().required(),
    uri: joi.secret().required(),
    qr: joi.secret().required().description('SVG as a data URI')
});

/** The body that confirms a second factor with its first code. */
export const confirmation = joi.object({
    code: code.required(),
    currentCode: code.description('Of the active second factor, where one is replaced')
});

/** The recovery codes, which are shown once. */
export const confirmed = joi.object({ recoveryCodes: joi.array().items(joi.secret()).required() });

/** The body that removes a second factor. */
export const totpRemoval = joi.object({
    password: password.required(),
    code: code.required().description('Six digits, or a recovery code')
});

/** The body of a step-up: the password or a code. */
export const stepUp = joi.object({ password, totp: code });

/** Until when a session counts as freshly proven. */
export const freshness = joi.object({ freshUntil: time.required() });

/** The body that asks for a ticket. */
export const ticketRequest = joi.object({
    path: joi
        .string()
        .max(4096)
        .pattern(/^\/api\/[\x21-\x22\x24-\x7e]*$/, 'path: it begins with /api/')
        .required()
        .description('Path with its query')
});

/** A ticket for one request to one path. */
export const ticket = joi.object({ ticket: joi.secret().required(), expiresAt: time.required() });

const permissions = joi
    .array()
    .items(joi.string().pattern(/^[a-z][a-z0-9-]*:[a-z][a-z0-9-]*$/, 'permission'))
    .max(1000);

const tokenInput = {
    name: joi.string().min(1).max(100).required(),
    permissions: permissions.description('None by default'),
    expiresAt: joi.string().isoDate().max(40).allow(null).description('A year from now by default')
};

/** The body that creates an API token. */
export const newToken = joi.object(tokenInput);

/** The body with which the command line creates an API token for a user. */
export const consoleToken = joi.object({ ...tokenInput, username: username.required() });

const token = {
    id: id.required(),
    name: joi.string().required(),
    permissions: joi.array().items(joi.string()).required(),
    createdAt: time.required(),
    expiresAt: time.allow(null).required().description('Null for a mandate that lasts until it is ended'),
    lastUsedAt: time.allow(null).required().description('To the minute'),
    plugin: joi.string().allow(null).required().description('The plugin that holds the mandate; else null'),
    routes: joi
        .array()
        .items(joi.string())
        .allow(null)
        .required()
        .description('The routes that the mandate is for; else null'),
    clientId: joi
        .string()
        .allow(null)
        .required()
        .description('The OAuth client that holds the grant; else null'),
    resource: joi
        .string()
        .allow(null)
        .required()
        .description('The path below which the tokens of the grant are good; else null'),
    version: joi.number().integer().required()
};

/** One API token without its secret, one mandate, or one grant. */
export const tokenView = joi.object(token);

/** A new API token, with its secret. */
export const createdToken = joi.object({ ...token, token: joi.secret().required() });
