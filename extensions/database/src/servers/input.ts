/** The body of a request that registers or changes a server, and the server as answers show it. */
import { isIP } from 'node:net';

import { joi, type Value } from '@portico/sdk';

import type { ServerRow } from '../entities.ts';
import type { Reached } from './connections.ts';

/** Text without control characters. */
const line = () => joi.string().pattern(/^[^\p{Cc}]*$/u, 'text without control characters');
const kindWords = { mysql: 'MySQL or MariaDB', postgresql: 'PostgreSQL' } as const;
const tlsWords = {
    disable: 'Not encrypted',
    require: 'Encrypted',
    verify: 'Encrypted, and the certificate must be the host’s'
} as const;

const fields = {
    name: line().trim(true).min(1).max(100).label('Name'),
    host: joi
        .string()
        .pattern(/^[A-Za-z0-9.:_-]+$/, 'a host name or an address')
        .max(253)
        .allow(null)
        .label('Host')
        .meta({ ui: { widget: 'host' } }),
    socket: line()
        .pattern(/^\//, 'absolute path')
        .max(200)
        .allow(null)
        .label('Socket')
        .description('A unix socket in place of host and port')
        .meta({ ui: { widget: 'path', advanced: true } }),
    port: joi
        .number()
        .integer()
        .min(1)
        .max(65_535)
        .label('Port')
        .description('Default: the usual one of the kind'),
    username: line()
        .min(1)
        .max(128)
        .label('Account')
        .description('It makes databases and accounts, so it may do that'),
    password: joi.secret().max(1_000).allow('', null).label('Password'),
    reader: joi
        .object({
            username: line().min(1).max(128).required().label('Account'),
            password: joi.secret().max(1_000).allow('').required().label('Password')
        })
        .allow(null)
        .label('Reader')
        .description(
            'An account that may only read, for the console; default: the panel makes `portico_reader`'
        )
        .meta({ ui: { advanced: true } }),
    tls: joi
        .choice(tlsWords)
        .label('Encryption')
        .description('Default: verify; on this machine disable')
        .meta({ ui: { group: 'Encryption' } }),
    ca: joi
        .string()
        .max(65_536)
        .pattern(/^\s*-----BEGIN CERTIFICATE-----/, 'a certificate as PEM')
        .allow(null)
        .label('Authority')
        .description('PEM of the authority that signed the certificate; default: the public ones')
        .meta({ media: 'application/x-pem-file', ui: { group: 'Encryption', advanced: true } })
};
const ignored = joi.readOnly(joi.any());

/** The body of POST `/servers`. */
export const newServer = joi.object({
    ...fields,
    name: fields.name.required(),
    kind: joi.choice(kindWords).required().label('Kind'),
    mode: joi.valid('registered').required().label('Mode').description('`registered`: it runs already'),
    username: fields.username.required()
});
/** What such a body holds. */
export type NewServer = Value<typeof newServer>;

/** The body of PUT `/servers/{id}`; it takes the fields of an answer, too. */
export const changedServer = joi.object({
    ...fields,
    version: joi.number().integer().min(1).label('Version').description('Acts as If-Match'),
    ...Object.fromEntries(
        [
            'id',
            'kind',
            'mode',
            'state',
            'message',
            'serverVersion',
            'flavour',
            'listen',
            'passwordSet',
            'createdAt',
            'updatedAt'
        ].map((name) => [name, ignored] as const)
    )
});
/** What such a body holds. */
export type ChangedServer = {
    readonly [K in Exclude<keyof NewServer, 'kind' | 'mode'>]?: NewServer[K] | undefined;
} & {
    readonly version?: number | undefined;
};

const time = () => joi.string().isoDate().required();

/** A server as answers show it. */
export const serverSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { column: false } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    kind: joi
        .choice(kindWords)
        .required()
        .label('Kind')
        .meta({ ui: { column: 2 } }),
    mode: joi.valid('registered', 'managed').required().label('Mode'),
    state: joi
        .valid('online', 'offline', 'starting', 'stopped', 'failed', 'upgrading')
        .required()
        .label('State')
        .meta({
            ui: {
                column: 3,
                tones: {
                    online: 'good',
                    offline: 'bad',
                    failed: 'bad',
                    starting: 'busy',
                    upgrading: 'busy',
                    stopped: 'neutral'
                }
            }
        }),
    message: joi.string().allow(null).required().label('Message').description('Why it is in this state'),
    serverVersion: joi
        .string()
        .allow(null)
        .required()
        .label('Server version')
        .meta({ ui: { column: 4 } }),
    flavour: joi.valid('mysql', 'mariadb', 'postgresql', null).required().label('Program'),
    host: joi.string().allow(null).required().label('Host'),
    port: joi.number().integer().required().label('Port'),
    socket: joi.string().allow(null).required().label('Socket'),
    username: joi.string().required().label('Account'),
    passwordSet: joi.boolean().required().label('Password is set'),
    reader: joi
        .object({ username: joi.string().required().label('Account') })
        .allow(null)
        .required()
        .label('Reader'),
    tls: joi.choice(tlsWords).required().label('Encryption'),
    ca: joi.string().allow(null).required().label('Authority'),
    listen: joi
        .object({
            address: joi.string().allow(null).required().label('Address'),
            port: joi.number().integer().required().label('Port'),
            socket: joi.string().allow(null).required().label('Socket')
        })
        .required()
        .label('Listens on'),
    createdAt: time().label('Created'),
    updatedAt: time().label('Changed')
});
/** What an answer holds. */
export type ServerView = Value<typeof serverSchema>;

/** A server as answers show it: no secret is in it. */
export function serverView(row: ServerRow, { state, message }: Reached): ServerView {
    const { id, version, name, kind, mode, host, port, socket, tls, ca, username, serverVersion, flavour } =
        row;
    return {
        id,
        version,
        name,
        kind,
        mode,
        state,
        message,
        serverVersion,
        flavour: flavour as ServerView['flavour'],
        host,
        port,
        socket,
        username,
        passwordSet: row.password !== null,
        reader: row.readerName === null ? null : { username: row.readerName },
        tls,
        ca,
        listen: { address: host, port, socket },
        createdAt: new Date(row.createdAt).toISOString(),
        updatedAt: new Date(row.updatedAt).toISOString()
    };
}

/** How connections are protected when the request does not say it. */
export function usualTls(host: string | null): ServerRow['tls'] {
    const isOwn =
        host === null ||
        host === 'localhost' ||
        host === '::1' ||
        (isIP(host) === 4 && host.startsWith('127.'));
    return isOwn ? 'disable' : 'verify';
}
