/** What restic is given to open a repository: private files, an environment without secrets, and arguments without secrets. */
import { createCipheriv, randomBytes } from 'node:crypto';
import { rootCertificates } from 'node:tls';

import { type Connection, endpointUrl, type Secrets } from './connection.ts';

/** Everything that restic needs for one repository. */
export interface Target {
    /** restic's own address of it. It may have a secret in it. */
    readonly repository: string;
    readonly password: string;
    readonly files: Readonly<Record<string, string>>;
    readonly env: Readonly<Record<string, string>>;
    /** Extended options of restic, as `sftp.command=…`. */
    readonly options: readonly string[];
    /** A section of rclone's configuration. */
    readonly rclone: string | null;
    /** Trusted certificates in PEM; null: the machine's. */
    readonly ca: string | null;
    readonly uploadKiBps: number | null;
    readonly downloadKiBps: number | null;
    /** Texts that no message may show. */
    readonly secrets: readonly string[];
}

/** How a target is built. */
export interface TargetOptions {
    /** A script that prints the file `login` of its working folder: ssh asks it for a password. */
    readonly askpass: string;
    /** The address to which ssh connects, in place of the name. */
    readonly address?: string | undefined;
    /** Distinguishes files and remotes of two targets of one call. */
    readonly suffix?: string;
    /** Reaches `sftp` and `s3` by rclone: restic itself can hold only one of a kind. */
    readonly byRclone?: boolean;
    readonly uploadKiBps?: number | null;
    readonly downloadKiBps?: number | null;
}

type Parts = Partial<Pick<Target, 'files' | 'env' | 'options' | 'rclone'>> & Pick<Target, 'repository'>;

/** Builds what restic needs. */
export function buildTarget(connection: Connection, secrets: Secrets, options: TargetOptions): Target {
    const parts = partsOf(connection, secrets, options);
    return {
        files: {},
        env: {},
        options: [],
        rclone: null,
        ...parts,
        password: secrets.password,
        ca: connection.ca ?? null,
        uploadKiBps: options.uploadKiBps ?? null,
        downloadKiBps: options.downloadKiBps ?? null,
        secrets: [
            secrets.password,
            secrets.privateKey,
            secrets.loginPassword,
            secrets.secretAccessKey,
            ...(secrets.loginPassword === undefined ? [] : [encodeURIComponent(secrets.loginPassword)]),
            ...(connection.obscured ?? []).map((name) => secrets.options?.[name])
        ].filter((text) => text !== undefined && text.length > 3) as string[]
    };
}

function partsOf(connection: Connection, secrets: Secrets, options: TargetOptions): Parts {
    const { type, path = '', bucket, prefix = '', endpoint, region, pathStyle = false } = connection;
    const { suffix = '', byRclone = false } = options;
    const remote = `target${suffix}`;
    switch (type) {
        case 'local':
            return { repository: path };
        case 'sftp':
            return byRclone
                ? sftpByRclone(connection, secrets, options)
                : sftpParts(connection, secrets, options);
        case 's3': {
            const at = [bucket, ...prefix.split('/')].filter((part) => part !== '').join('/');
            const { origin } = endpointUrl(endpoint ?? '');
            return byRclone
                ? {
                      repository: `rclone:${remote}:${at}`,
                      rclone: section(remote, {
                          type: 's3',
                          provider: 'Other',
                          access_key_id: connection.accessKeyId,
                          secret_access_key: secrets.secretAccessKey,
                          endpoint: origin,
                          region,
                          force_path_style: String(pathStyle)
                      })
                  }
                : {
                      repository: `s3:${origin}/${at}`,
                      files: {
                          credentials: `[default]\naws_access_key_id = ${connection.accessKeyId}\naws_secret_access_key = ${secrets.secretAccessKey}\n`
                      },
                      env: { AWS_SHARED_CREDENTIALS_FILE: 'credentials', AWS_PROFILE: 'default' },
                      options: [
                          ...(region === undefined ? [] : [`s3.region=${region}`]),
                          `s3.bucket-lookup=${pathStyle ? 'path' : 'auto'}`
                      ]
                  };
        }
        case 'rest': {
            const url = new URL(connection.url ?? '');
            url.username = connection.username === undefined ? '' : encodeURIComponent(connection.username);
            url.password =
                secrets.loginPassword === undefined ? '' : encodeURIComponent(secrets.loginPassword);
            return { repository: `rest:${url.href}` };
        }
        case 'webdav':
            return {
                repository: `rclone:${remote}:`,
                rclone: section(remote, {
                    type: 'webdav',
                    url: connection.url,
                    vendor: 'other',
                    user: connection.username,
                    pass: obscure(secrets.loginPassword)
                })
            };
        case 'rclone': {
            const given = Object.entries(secrets.options ?? {}).map(([name, value]) => [
                name,
                connection.obscured?.includes(name) === true ? obscure(value) : value
            ]);
            return {
                repository: `rclone:${remote}:${path}`,
                rclone: section(remote, { type: connection.remoteType, ...Object.fromEntries(given) })
            };
        }
    }
}

/** ssh knows the host by its key alone: no file of the machine is read, and the name stands for whatever address it has. */
function sftpParts(
    { host, port = 22, username, path, hostKey }: Connection,
    { privateKey, loginPassword }: Secrets,
    { askpass, address = host ?? '' }: TargetOptions
): Parts {
    const byPassword = privateKey === undefined;
    const command = [
        'ssh -F none -T -a -x',
        '-o StrictHostKeyChecking=yes -o HostKeyAlias=portico -o CheckHostIP=no',
        '-o UserKnownHostsFile=known_hosts -o GlobalKnownHostsFile=/dev/null -o UpdateHostKeys=no',
        byPassword
            ? '-o PubkeyAuthentication=no -o PreferredAuthentications=password,keyboard-interactive -o NumberOfPasswordPrompts=1'
            : '-o IdentityFile=key -o IdentitiesOnly=yes -o BatchMode=yes',
        '-o IdentityAgent=none -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4',
        `-p ${port} -l ${username} -s -- ${address} sftp`
    ].join(' ');
    return {
        repository: `sftp:${username}@target:${path}`,
        files: {
            known_hosts: `portico ${hostKey}\n`,
            ...(byPassword ? { login: loginPassword ?? '' } : { key: `${privateKey.trim()}\n` })
        },
        env: byPassword ? { SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force' } : {},
        options: [`sftp.command=${command}`]
    };
}

function sftpByRclone(
    { host = '', port = 22, username, path, hostKey }: Connection,
    { privateKey, loginPassword }: Secrets,
    { address = host, suffix = '' }: TargetOptions
): Parts {
    const remote = `target${suffix}`;
    const name = port === 22 ? address : `[${address}]:${port}`;
    return {
        repository: `rclone:${remote}:${path}`,
        files: { [`known_hosts${suffix}`]: `${name} ${hostKey}\n` },
        rclone: section(remote, {
            type: 'sftp',
            host: address,
            port: String(port),
            user: username,
            ...(privateKey === undefined
                ? { pass: obscure(loginPassword) }
                : { key_pem: privateKey.trim().replaceAll(/\r?\n/g, '\\n') }),
            known_hosts_file: `known_hosts${suffix}`,
            disable_hashcheck: 'true',
            shell_type: 'none'
        })
    };
}

function section(name: string, options: Readonly<Record<string, string | undefined>>): string {
    const lines = Object.entries(options)
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([key, value]) => `${key} = ${value}`);
    return `[${name}]\n${lines.join('\n')}\n`;
}

/** How rclone writes passwords into its configuration (its package `fs/config/obscure`): with a key that everyone knows. */
const obscureKey = Buffer.from('9c935b48730a554d6bfd7c63c886a92bd390198eb8128afbf4de162b8b95f638', 'hex');

function obscure(plain: string | undefined): string | undefined {
    if (plain === undefined) {
        return undefined;
    }
    const iv = randomBytes(16);
    const cipher = createCipheriv('aes-256-ctr', obscureKey, iv);
    return Buffer.concat([iv, cipher.update(plain, 'utf8')]).toString('base64url');
}

/** What a program is given for one target, or for two of them. */
export interface Invocation {
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly files: Readonly<Record<string, string>>;
    readonly secrets: readonly string[];
}

/** Puts together what restic is given. @param from - the repository that a copy reads */
export function invocationOf(target: Target, from?: Target): Invocation {
    const targets = from === undefined ? [target] : [target, from];
    const rclone = targets.map((each) => each.rclone ?? '').join('\n');
    const least = (name: 'uploadKiBps' | 'downloadKiBps'): number =>
        Math.min(...targets.map((each) => each[name] ?? Infinity));
    const [upload, download] = [least('uploadKiBps'), least('downloadKiBps')];
    const ca = trusted(targets);
    return {
        args: [
            ...targets.flatMap((each) => each.options).map((option) => `--option=${option}`),
            ...(ca === null ? [] : ['--cacert=ca']),
            ...(upload === Infinity ? [] : [`--limit-upload=${upload}`]),
            ...(download === Infinity ? [] : [`--limit-download=${download}`])
        ],
        env: {
            ...Object.assign({}, ...targets.map((each) => each.env)),
            RESTIC_REPOSITORY_FILE: 'repository',
            RESTIC_PASSWORD_FILE: 'password',
            ...(from === undefined
                ? {}
                : {
                      RESTIC_FROM_REPOSITORY_FILE: 'from-repository',
                      RESTIC_FROM_PASSWORD_FILE: 'from-password'
                  }),
            RCLONE_CONFIG: 'rclone.conf',
            ...(ca === null ? {} : { RCLONE_CA_CERT: 'ca' })
        },
        files: {
            ...Object.assign({}, ...targets.map((each) => each.files)),
            repository: target.repository,
            password: target.password,
            'rclone.conf': rclone,
            ...(from === undefined
                ? {}
                : { 'from-repository': from.repository, 'from-password': from.password }),
            ...(ca === null ? {} : { ca })
        },
        secrets: targets.flatMap((each) => each.secrets)
    };
}

/** Where one of two targets trusts the machine's certificates, both do, beside those of the other. */
function trusted(targets: readonly Target[]): string | null {
    const own = targets.map(({ ca }) => ca).filter((ca) => ca !== null);
    return own.length === 0
        ? null
        : [...own, ...(own.length < targets.length ? rootCertificates : [])].join('\n');
}

/** A text without secrets. */
export function hide(text: string, secrets: readonly string[]): string {
    return secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
}
