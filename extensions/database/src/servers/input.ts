/** The body of a request that registers or changes a server, and the server as answers show it. */
import { isIP } from 'node:net';

import { joi, type Value } from '@portico/sdk';

import type { ManagedRow, ServerRow } from '../entities.ts';
import { presetWords } from '../managed/engine.ts';
import type { ManagedState } from '../managed/states.ts';

/** Text without control characters. */
const line = () => joi.string().pattern(/^[^\p{Cc}]*$/u, 'text without control characters');
const runByPanel = 'Run by the panel';
/** The least memory that a server can work with. */
const leastMemory = 128 * 1024 * 1024;
const kindWords = { mysql: 'MySQL or MariaDB', postgresql: 'PostgreSQL' } as const;
/** How a server runs that the panel runs, with what a user reads. */
export const runtimeWords = {
    native: 'A program of this machine',
    container: 'A container of the official image'
} as const;
const tlsWords = {
    disable: 'Not encrypted',
    require: 'Encrypted',
    verify: 'Encrypted, and the certificate must be the host’s'
} as const;

/** The name of a server. */
export const nameField = line().trim(true).min(1).max(100).label('Name');

const fields = {
    name: nameField,
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
        .meta({ media: 'application/x-pem-file', ui: { group: 'Encryption', advanced: true } }),
    dumpSchedule: joi
        .object({
            cron: joi
                .string()
                .max(200)
                .required()
                .label('Times')
                .description('Five fields, or six with seconds first')
                .meta({ ui: { widget: 'cron' } }),
            timezone: joi.string().max(64).label('Time zone').description('Default: the machine’s'),
            keep: joi
                .number()
                .integer()
                .min(1)
                .max(1_000)
                .label('Dumps kept of a database')
                .description('Default: as the settings say')
        })
        .allow(null)
        .label('Scheduled dumps')
        .description('When all its databases are dumped by themselves')
        .meta({ ui: { advanced: true } })
};
const managedFields = {
    memoryBytes: joi
        .number()
        .integer()
        .min(leastMemory)
        .max(2 ** 50)
        .allow(null)
        .unit('byte')
        .label('Memory')
        .description(
            'All that it may use. Default: no limit, and its caches are sized for a quarter of the machine'
        )
        .meta({ ui: { group: runByPanel } }),
    preset: joi
        .choice(presetWords)
        .label('Preset')
        .description('What it is tuned for; default: web')
        .meta({ ui: { group: runByPanel } }),
    pointInTime: joi
        .boolean()
        .label('Keeps its past')
        .description(
            'So that it can be restored as it was at any time of the last days; default: it does not'
        )
        .meta({ ui: { group: runByPanel } })
};
const ignored = joi.readOnly(joi.any());

/** A server that runs already, as it is registered and exported. */
export const registeredServer = joi.object({
    ...fields,
    name: fields.name.required(),
    kind: joi.choice(kindWords).required().label('Kind'),
    mode: joi.valid('registered').required().label('Mode'),
    username: fields.username.required()
});
/** What such a body holds. */
export type NewServer = Value<typeof registeredServer>;

/** The body of POST `/servers`. */
export const newServer = joi.object({
    ...fields,
    name: fields.name.required(),
    kind: joi.choice(kindWords).required().label('Kind'),
    mode: joi
        .choice({ registered: 'It runs already', managed: 'The panel runs it' })
        .required()
        .label('Mode'),
    username: fields.username.description(
        'Of a server that runs already. It makes databases and accounts, so it may do that'
    ),
    runtime: joi
        .choice(runtimeWords)
        .label('Runtime')
        .description('Default: native')
        .meta({ ui: { group: runByPanel, advanced: true } }),
    release: joi
        .string()
        .max(20)
        .label('Release')
        .description(
            'One of those that are installed, or in a container a number such as 11.4; default: the newest'
        )
        .meta({ ui: { group: runByPanel, advanced: true } }),
    ...managedFields
});
/** Fields that only a server has which runs already. */
const ofRegistered = ['host', 'socket', 'username', 'password', 'reader', 'tls', 'ca'] as const;
/** Fields that only a server has which the panel runs. */
const ofManaged = ['runtime', 'release', 'memoryBytes', 'preset', 'pointInTime'] as const;

/** The first field that has no meaning for a server of this mode; undefined where there is none. */
export function strangeField(mode: 'registered' | 'managed', body: object): string | undefined {
    const given = body as Readonly<Record<string, unknown>>;
    return (mode === 'managed' ? ofRegistered : ofManaged).find(
        (name) => given[name] !== undefined && given[name] !== null
    );
}

/** The body of PUT `/servers/{id}`; it takes the fields of an answer, too. */
export const changedServer = joi.object({
    ...fields,
    ...managedFields,
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
            'runtime',
            'release',
            'previous',
            'remote',
            'allow',
            'createdAt',
            'updatedAt'
        ].map((name) => [name, ignored] as const)
    )
});
/** What such a body holds. */
export type ChangedServer = {
    readonly [K in Exclude<keyof NewServer, 'kind' | 'mode'>]?: NewServer[K] | undefined;
} & {
    readonly memoryBytes?: number | null | undefined;
    readonly preset?: ManagedRow['preset'] | undefined;
    readonly pointInTime?: boolean | undefined;
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
    dumpSchedule: joi
        .object({
            cron: joi.string().required().label('Times'),
            timezone: joi.string().label('Time zone'),
            keep: joi.number().integer().label('Dumps kept of a database')
        })
        .allow(null)
        .required()
        .label('Scheduled dumps'),
    runtime: joi
        .choice(runtimeWords)
        .allow(null)
        .required()
        .label('Runtime')
        .description('Of a server that the panel runs'),
    release: joi.string().allow(null).required().label('Release'),
    previous: joi
        .object({
            release: joi.string().required().label('Release'),
            at: time().label('Upgraded'),
            bytes: joi.number().integer().required().unit('byte').label('Size')
        })
        .allow(null)
        .required()
        .label('Before the upgrade')
        .description('What a rollback goes back to'),
    memoryBytes: joi.number().integer().allow(null).required().unit('byte').label('Memory'),
    preset: joi.choice(presetWords).allow(null).required().label('Preset'),
    pointInTime: joi.boolean().required().label('Keeps its past'),
    remote: joi.boolean().required().label('Reached from other machines'),
    allow: joi.array().items(joi.string()).required().label('From these networks'),
    createdAt: time().label('Created'),
    updatedAt: time().label('Changed')
});
/** What an answer holds. */
export type ServerView = Value<typeof serverSchema>;

/** A server as answers show it: no secret is in it. */
export function serverView(
    row: ServerRow,
    { state, message }: ManagedState,
    managed: ManagedRow | null
): ServerView {
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
        listen: { address: managed?.remote === true ? '*' : host, port, socket },
        runtime: managed?.runtime ?? null,
        release: managed?.release ?? null,
        previous: previousView(managed?.previous ?? null),
        memoryBytes: managed?.memoryBytes ?? null,
        preset: managed?.preset ?? null,
        pointInTime: managed?.pointInTime === 'on',
        remote: managed?.remote ?? false,
        allow: [...(managed?.allow ?? [])],
        dumpSchedule: row.dumpSchedule,
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

function previousView(previous: ManagedRow['previous']): ServerView['previous'] {
    return previous === null
        ? null
        : {
              release: previous.release,
              at: new Date(previous.at).toISOString(),
              bytes: previous.bytes
          };
}
