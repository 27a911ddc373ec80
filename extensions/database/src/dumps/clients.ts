/** The programs that dump: which there are, and how each is told a server without a secret in its arguments. */
import { access, readdir } from 'node:fs/promises';

import { errors } from '@portico/sdk';

import type { ServerRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Address } from '../kinds/kind.ts';
import type { Ctx } from '../settings.ts';

/** A program with what it is given. */
export interface ToolCall {
    readonly file: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly privateFiles: Readonly<Record<string, string>>;
}

/** Holds a folder for each release of PostgreSQL that is installed. */
export const releaseFolder = '/usr/lib/postgresql';
const programFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin'];
const isRoot = process.getuid?.() === 0;
const powerless = { user: 'nobody' };
/** The account of client programs, which owns nothing. */
export const toolUser: { readonly user?: string } = isRoot ? powerless : {};

/** Whether the machine has a program of this name. */
export async function hasProgram(name: string): Promise<boolean> {
    const found = await Promise.all(
        programFolders.map((folder) =>
            access(`${folder}/${name}`).then(
                () => true,
                () => false
            )
        )
    );
    return found.includes(true);
}

/** The program of the newest PostgreSQL on this machine. @throws TOOL_MISSING 50302 */
export async function postgresqlTool(name: string): Promise<string> {
    const found = (await readdir(releaseFolder).catch(() => [])).filter((each) => /^\d+$/.test(each));
    const newest = found.sort((one, other) => Number(one) - Number(other)).at(-1);
    if (newest === undefined) {
        throw errors.toolMissing(name, 'apt-get install postgresql-client');
    }
    return `${releaseFolder}/${newest}/bin/${name}`;
}

/** The call that writes a database to standard output. @throws CLIENT_TOO_OLD 42252, TOOL_MISSING 50302 */
export async function dumpCall(
    ctx: Ctx,
    server: ServerRow,
    password: string,
    {
        database,
        format,
        isRowsOnly = false
    }: {
        readonly database: string;
        readonly format: 'native' | 'sql';
        /** Every value is in a row that names its columns: large objects stay out. */
        readonly isRowsOnly?: boolean;
    }
): Promise<ToolCall> {
    const address = server.socket === null ? await addressOf(ctx, server) : null;
    if (server.kind === 'postgresql') {
        const file = await postgresqlTool('pg_dump');
        await mustBeNewEnough(ctx, file, server);
        return {
            file,
            args: [
                `--format=${format === 'native' ? 'custom' : 'plain'}`,
                '--no-password',
                ...(isRowsOnly ? ['--no-blobs'] : []),
                `--dbname=${conninfo(server, { address, database })}`
            ],
            env: { PGPASSFILE: 'pgpass' },
            privateFiles: {
                pgpass: passwordFile(password),
                ...(server.ca === null ? {} : { 'ca.pem': server.ca })
            }
        };
    }
    const file = 'mariadb-dump';
    await mustBeNewEnough(ctx, file, server);
    return {
        file,
        args: [
            '--defaults-file=client.cnf',
            '--single-transaction',
            '--quick',
            '--routines',
            '--triggers',
            '--events',
            '--hex-blob',
            '--no-tablespaces',
            '--default-character-set=utf8mb4',
            ...(isRowsOnly ? ['--complete-insert'] : []),
            '--',
            database
        ],
        env: {},
        privateFiles: {
            'client.cnf': clientFile(server, password, address),
            ...(server.ca === null ? {} : { 'ca.pem': server.ca })
        }
    };
}

/** The call that turns a dump of `pg_dump` on its standard input into SQL. */
export async function restoreCall(): Promise<ToolCall> {
    return {
        file: await postgresqlTool('pg_restore'),
        args: ['--no-owner', '--no-acl', '--file=-'],
        env: {},
        privateFiles: {}
    };
}

/** An address that the grants let this plugin reach: the program connects by itself. */
async function addressOf(ctx: Ctx, { host }: ServerRow): Promise<string> {
    const [address] = await ctx.resolve(host ?? 'localhost');
    if (address === undefined) {
        throw fail.SERVER_OFFLINE({ message: 'the name has no address' });
    }
    return address;
}

async function mustBeNewEnough(ctx: Ctx, tool: string, { serverVersion, flavour }: ServerRow): Promise<void> {
    const { stdout } = await ctx.exec(tool, ['--version'], toolUser);
    const parts = (text: string | undefined): number[] => (text ?? '').split('.').map(Number);
    const clientVersion = (/from (\d+\.\d+)/i.exec(stdout) ??
        /(\d+\.\d+)[^ ]* *\(?/.exec(stdout.replace(/Ver \S+ Distrib /, '')))?.[1];
    const [client, server] = [parts(clientVersion), parts(serverVersion ?? undefined)];
    const isOlder =
        flavour === 'postgresql'
            ? (client[0] ?? 0) < (server[0] ?? 0)
            : flavour === 'mariadb' &&
              ((client[0] ?? 0) < (server[0] ?? 0) ||
                  ((client[0] ?? 0) === (server[0] ?? 0) && (client[1] ?? 0) < (server[1] ?? 0)));
    if (isOlder) {
        throw fail.CLIENT_TOO_OLD({
            tool: tool.split('/').at(-1),
            clientVersion: clientVersion ?? 'of an unknown version',
            serverVersion
        });
    }
}

/** The file that tells libpq the password of every login. */
export function passwordFile(password: string): string {
    return `*:*:*:*:${password.replace(/[\\:]/g, '\\$&')}\n`;
}

/** As libpq reads it: each value in quotes, so that no name is taken for an address or an option. */
export function conninfo(
    { host, port, socket, username, tls, ca }: ServerRow,
    { address, database }: { readonly address: string | null; readonly database?: string }
): string {
    const values = {
        ...(database === undefined ? {} : { dbname: database }),
        user: username,
        port: String(port),
        ...(socket === null
            ? {
                  host: host ?? 'localhost',
                  hostaddr: address ?? '',
                  sslmode: { disable: 'disable', require: 'require', verify: 'verify-full' }[tls],
                  ...(tls === 'verify' ? { sslrootcert: ca === null ? 'system' : 'ca.pem' } : {})
              }
            : { host: socket.replace(/\/\.s\.PGSQL\.\d+$/, '') })
    };
    return Object.entries(values)
        .map(([name, value]) => `${name}='${value.replace(/['\\]/g, '\\$&')}'`)
        .join(' ');
}

/** The file of options that tells a client program of MariaDB its server. */
export function clientFile(
    { host, port, socket, username, tls, ca }: Address & { readonly username: string },
    password: string,
    address: string | null
): string {
    const quoted = (text: string): string =>
        `"${text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`;
    const encrypted =
        tls === 'disable' || socket !== null
            ? []
            : [
                  'ssl',
                  ...(tls === 'verify' ? ['ssl-verify-server-cert'] : []),
                  ...(ca === null ? [] : ['ssl-ca=ca.pem'])
              ];
    return [
        '[client]',
        `user=${quoted(username)}`,
        `password=${quoted(password)}`,
        ...(socket === null
            ? // A certificate is checked against the name, which another address cannot have.
              [
                  `host=${quoted(tls === 'verify' ? (host ?? 'localhost') : (address ?? 'localhost'))}`,
                  `port=${port}`,
                  'protocol=tcp'
              ]
            : [`socket=${quoted(socket)}`, 'protocol=socket']),
        ...encrypted,
        ''
    ].join('\n');
}
