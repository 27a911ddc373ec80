/** What a repository is made of, and how it is checked. */
import { errors, joi, type Value } from '@portico/sdk';

import type { Connection, RepositoryType, Secrets } from '../targets/connection.ts';

const text = (most: number) =>
    joi
        .string()
        .pattern(/^[^\0\r\n]*$/)
        .max(most);
const ofType = (...types: string[]): string => `Of ${types.join(', ')}`;

/** Fields that every repository has. */
export const commonFields = {
    name: joi
        .string()
        .min(1)
        .max(100)
        .label('Name')
        .meta({ ui: { column: 1 } }),
    appendOnly: joi
        .boolean()
        .label('Append only')
        .description('Nothing in it is removed: no keep rules, no clean-up'),
    uploadKiBps: joi.typed<number | null | undefined>(
        joi.number().integer().min(1).max(10_000_000).allow(null).label('Most upload').unit('KiB/s')
    ),
    downloadKiBps: joi.typed<number | null | undefined>(
        joi.number().integer().min(1).max(10_000_000).allow(null).label('Most download').unit('KiB/s')
    )
};

/** What lies where: it never changes. */
const placeFields = {
    path: joi
        .string()
        .pattern(/^[^\0\r\n]*$/)
        .max(4_000)
        .label('Folder')
        .description(
            'Of local: absolute, on this machine. Of sftp: on that machine. Of rclone: in the remote'
        ),
    host: joi
        .string()
        .pattern(/^[A-Za-z0-9:][A-Za-z0-9.:_-]*$/)
        .max(253)
        .label('Machine')
        .description(ofType('sftp')),
    port: joi.number().integer().min(1).max(65_535).label('Port').description('Of sftp; default 22'),
    endpoint: joi
        .string()
        .pattern(/^(https?:\/\/)?[A-Za-z0-9[][A-Za-z0-9.:[\]-]*\/?$/)
        .max(300)
        .label('Server')
        .description('Of s3, as `https://s3.example.com`'),
    bucket: joi
        .string()
        .pattern(/^[a-z0-9][a-z0-9.-]{1,62}$/)
        .label('Bucket')
        .description(ofType('s3')),
    prefix: joi
        .string()
        .pattern(/^[\w.!'()*-]+(\/[\w.!'()*-]+)*$/)
        .max(500)
        .label('Prefix')
        .description('Of s3: a folder in the bucket'),
    url: joi
        .string()
        .uri({ scheme: ['http', 'https'] })
        .max(2_000)
        .label('Address')
        .description('Of rest and webdav, without a user')
};

/** How it is reached: it may change. */
const accessFields = {
    username: text(200)
        .pattern(/^[^-\s'"\\]/)
        .label('User')
        .description(ofType('sftp', 'rest', 'webdav')),
    hostKey: joi
        .string()
        .pattern(/^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+$/)
        .max(2_000)
        .label('Key of the machine')
        .description('Of sftp, as `ssh-keyscan` shows it, without the name: `ssh-ed25519 AAAA…`'),
    region: joi
        .string()
        .pattern(/^[a-z0-9-]{1,40}$/)
        .label('Region')
        .description(ofType('s3')),
    accessKeyId: joi
        .string()
        .pattern(/^[\w.+/=@-]{1,200}$/)
        .label('Access key')
        .description(ofType('s3')),
    pathStyle: joi.boolean().label('Bucket in the path').description('Of s3: most servers of one’s own'),
    ca: joi
        .string()
        .pattern(/-----BEGIN CERTIFICATE-----/)
        .max(100_000)
        .label('Trusted certificates')
        .description('Of s3, rest and webdav: PEM, in place of the machine’s')
};

const secretFields = {
    privateKey: joi
        .secret()
        .pattern(/^-----BEGIN [A-Z ]*PRIVATE KEY-----/)
        .max(20_000)
        .label('Private key')
        .description('Of sftp: without a passphrase. Or a login password'),
    loginPassword: joi
        .secret()
        .pattern(/^[^\0\r\n]*$/)
        .max(1_000)
        .label('Login password')
        .description(ofType('sftp', 'rest', 'webdav')),
    secretAccessKey: joi
        .secret()
        .pattern(/^[^\0\r\n]*$/)
        .max(1_000)
        .label('Secret access key')
        .description(ofType('s3'))
};

const remoteOptions = joi
    .record(joi.secret().allow('').max(10_000).label('Value'))
    .label('Options')
    .description('As rclone names them. Passwords are given plain');
const remote = joi.object({
    type: joi.string().max(60).required().label('Type').description('As rclone names it: `dropbox`'),
    options: remoteOptions.default({})
});

/** The body of POST `/repositories`. */
export const newRepository = joi.object({
    ...commonFields,
    ...placeFields,
    ...accessFields,
    ...secretFields,
    name: commonFields.name.required(),
    type: joi
        .choice({
            local: 'A folder of this machine',
            sftp: 'A machine with SSH',
            s3: 'A bucket of S3',
            rest: 'A server for restic (REST)',
            webdav: 'A WebDAV server',
            rclone: 'Any remote of rclone'
        })
        .required()
        .label('Type'),
    mode: joi
        .choice({ create: 'Make a new one', open: 'Open an existing one' })
        .default('create')
        .label('Mode'),
    password: joi
        .secret()
        .pattern(/^[^\0\r\n]*$/)
        .min(8)
        .max(1_000)
        .label('Password')
        .description('Encrypts it; default: one that is made. Without it nothing comes back, so keep a copy'),
    appendOnly: commonFields.appendOnly.default(false),
    remote: remote.label('Remote').description('Of rclone')
});
/** What a caller gives for a new repository. */
export type RepositoryInput = Value<typeof newRepository>;

const ignored = joi.readOnly(joi.any());
/** The body of PUT `/repositories/{id}`. */
export const changedRepository = joi.object({
    ...commonFields,
    ...accessFields,
    ...secretFields,
    remote: joi
        .object({ type: ignored, options: remoteOptions })
        .label('Remote')
        .description('Of rclone: its options, all together'),
    version: joi.number().integer().min(1).label('Version').description('Acts as If-Match'),
    path: ignored,
    host: ignored,
    port: ignored,
    endpoint: ignored,
    bucket: ignored,
    prefix: ignored,
    url: ignored,
    id: ignored,
    type: ignored,
    createdAt: ignored,
    lastCheck: ignored,
    secretsSet: ignored,
    state: ignored,
    message: ignored,
    snapshots: ignored,
    storedBytes: ignored
});

/** Which fields a type has, and which of them it needs. */
const fieldsOf: Readonly<
    Record<RepositoryType, { readonly needs: readonly string[]; readonly may: readonly string[] }>
> = {
    local: { needs: ['path'], may: [] },
    sftp: { needs: ['host', 'username', 'hostKey', 'path'], may: ['port', 'privateKey', 'loginPassword'] },
    s3: {
        needs: ['endpoint', 'bucket', 'accessKeyId', 'secretAccessKey'],
        may: ['prefix', 'region', 'pathStyle', 'ca']
    },
    rest: { needs: ['url'], may: ['username', 'loginPassword', 'ca'] },
    webdav: { needs: ['url'], may: ['username', 'loginPassword', 'ca'] },
    rclone: { needs: ['remote'], may: ['path'] }
};
const typed = new Set(Object.values(fieldsOf).flatMap(({ needs, may }) => [...needs, ...may]));

/** The fields of any repository as they were sent. */
type Given = Readonly<Record<string, unknown>>;

/** Checks that a repository has what its type needs, and nothing else. @throws VALIDATION_FAILED 40001 */
export function checkFields(type: RepositoryType, given: Given): void {
    const { needs, may } = fieldsOf[type];
    const missing = needs.find((name) => given[name] === undefined || given[name] === '');
    const strange = [...typed].find(
        (name) => given[name] !== undefined && !needs.includes(name) && !may.includes(name)
    );
    const fault = missing ?? strange;
    if (fault !== undefined) {
        throw invalid(
            fault,
            missing === undefined
                ? `${fault} does not belong to the type ${type}`
                : `${fault} is needed for the type ${type}`
        );
    }
    if (type === 'sftp' && (given['privateKey'] === undefined) === (given['loginPassword'] === undefined)) {
        throw invalid('privateKey', 'Either privateKey or loginPassword is needed for the type sftp');
    }
    const url = given['url'];
    if (typeof url === 'string') {
        const { username, password, search, hash } = new URL(url);
        if (username !== '' || password !== '' || search !== '' || hash !== '') {
            throw invalid(
                'url',
                'url has no user, password, query or fragment: those have fields of their own'
            );
        }
    }
    if ((type === 'sftp' || type === 'rclone') && /(^|\/)\.\.(\/|$)/.test(String(given['path'] ?? ''))) {
        throw invalid('path', 'path has no .. in it');
    }
}

/** What is stored of an input, apart from what is secret. */
export function connectionOf(input: Given, obscured: readonly string[] | undefined): Connection {
    const kept = Object.entries(input).filter(([name]) => name in placeFields || name in accessFields);
    const remoteType = (input['remote'] as { type?: string } | undefined)?.type;
    return {
        type: input['type'] as RepositoryType,
        ...Object.fromEntries(kept.filter(([, value]) => value !== undefined)),
        ...(remoteType === undefined ? {} : { remoteType, obscured })
    };
}

/** What is secret in an input. */
export function secretsOf(input: Given): Omit<Secrets, 'password'> {
    const kept = Object.keys(secretFields).map((name) => [name, input[name]] as const);
    const options = (input['remote'] as { options?: Record<string, string> } | undefined)?.options;
    return {
        ...Object.fromEntries(kept.filter(([, value]) => value !== undefined)),
        ...(options === undefined ? {} : { options })
    };
}

/** Folders that are never a repository, a source or a target: they are the kernel's. */
const kernel = ['/proc', '/sys', '/dev'];

/** A plain absolute path that is not the kernel's. @throws VALIDATION_FAILED 40001 */
export function checkPlace(path: string, field: string): void {
    if (
        !path.startsWith('/') ||
        path === '/' ||
        path.split('/').some((part, index) => (part === '' && index > 0) || part === '.' || part === '..') ||
        kernel.some((folder) => path === folder || path.startsWith(`${folder}/`))
    ) {
        throw invalid(
            field,
            `${field} is the absolute path of a folder, without . and .., and not one of the kernel's`
        );
    }
}

function invalid(path: string, message: string): Error {
    return errors.invalid([{ path, message }]);
}
