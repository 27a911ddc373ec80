/** Private servers of both kinds on loopback, as an account without rights, ready in about two seconds. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    chmodSync,
    chownSync,
    existsSync,
    globSync,
    mkdirSync,
    mkdtempSync,
    rmSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

import { createConnection } from 'mysql2/promise';
import pg from 'pg';

import { freePort } from '../../support/ports.ts';

const run = promisify(execFile);
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const identity = isRoot ? { uid: nobody, gid: nobody } : {};
/** Options by which MariaDB does not wait for the disk: what is lost with the machine is no part of a test. */
const hasty = ['--innodb-flush-method=nosync', '--sync-frm=OFF', '--innodb-log-file-size=16M'];
/** The folder of PostgreSQL's programs, the newest there is. */
const bin = globSync('/usr/lib/postgresql/*/bin').sort().at(-1) ?? '/usr/lib/postgresql/bin';

/** Why tests with MariaDB cannot run here; undefined where they can. */
export const noMariadb = existsSync('/usr/sbin/mariadbd') ? undefined : 'mariadb-server is not installed';
/** Why tests with PostgreSQL cannot run here; undefined where they can. */
export const noPostgresql = existsSync(join(bin, 'postgres')) ? undefined : 'postgresql is not installed';

/** A server that runs, and its most powerful account. */
export interface Instance {
    readonly kind: 'mysql' | 'postgresql';
    readonly port: number;
    readonly socket: string;
    readonly username: string;
    readonly password: string;
    readonly folder: string;
    readonly child: ChildProcess;
    /** Runs a statement past the plugin. */
    sql(
        text: string,
        database?: string,
        login?: { username: string; password: string }
    ): Promise<Record<string, unknown>[]>;
    close(): Promise<void>;
}

function makeFolder(name: string): string {
    // Servers run as another account, which must reach its folder.
    chmodSync(tmpdir(), 0o1777);
    const folder = mkdtempSync(join(tmpdir(), `portico-${name}-`));
    if (isRoot) {
        chownSync(folder, nobody, nobody);
    }
    return folder;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGCONT');
        child.kill(signal);
        await once(child, 'exit');
    }
}

async function untilReady(child: ChildProcess, ask: () => Promise<unknown>): Promise<void> {
    for (const limit = performance.now() + 60_000; ; await wait(25)) {
        const failure = await ask().then(
            () => null,
            (error: unknown) => error
        );
        if (failure === null) {
            return;
        }
        if (child.exitCode !== null || performance.now() > limit) {
            throw new Error('The server did not start', { cause: failure });
        }
    }
}

/** Starts MariaDB. */
export async function startMariadb(options: readonly string[] = []): Promise<Instance> {
    const folder = makeFolder('mariadb');
    const [data, socket, port, password] = [
        join(folder, 'data'),
        join(folder, 's.sock'),
        await freePort(),
        'admin-Pass_1'
    ];
    mkdirSync(data);
    const init = join(folder, 'init.sql');
    writeFileSync(
        init,
        `create user if not exists 'admin'@'127.0.0.1' identified by '${password}';\ngrant all on *.* to 'admin'@'127.0.0.1' with grant option;\ncreate user if not exists 'admin'@'localhost' identified by '${password}';\ngrant all on *.* to 'admin'@'localhost' with grant option;\n`
    );
    if (isRoot) {
        chownSync(data, nobody, nobody);
    }
    await run(
        'mariadb-install-db',
        [
            '--no-defaults',
            `--datadir=${data}`,
            '--auth-root-authentication-method=normal',
            '--skip-test-db',
            '--skip-name-resolve',
            ...hasty
        ],
        identity
    );
    const child = spawn(
        '/usr/sbin/mariadbd',
        [
            '--no-defaults',
            `--datadir=${data}`,
            `--socket=${socket}`,
            `--port=${port}`,
            '--bind-address=127.0.0.1',
            '--innodb-buffer-pool-size=32M',
            '--innodb-flush-log-at-trx-commit=0',
            '--skip-log-bin',
            ...hasty,
            `--init-file=${init}`,
            ...options
        ],
        { ...identity, stdio: 'ignore' }
    );
    const sql: Instance['sql'] = async (text, database, login = { username: 'admin', password }) => {
        const connection = await createConnection({
            host: '127.0.0.1',
            port,
            user: login.username,
            password: login.password,
            ...(database === undefined ? {} : { database }),
            multipleStatements: true
        });
        try {
            const [rows] = await connection.query(text);
            return rows as Record<string, unknown>[];
        } finally {
            connection.destroy();
        }
    };
    await untilReady(child, () => sql('select 1'));
    return {
        kind: 'mysql',
        port,
        socket,
        username: 'admin',
        password,
        folder,
        child,
        sql,
        async close() {
            await end(child, 'SIGKILL');
            rmSync(folder, { recursive: true, force: true });
        }
    };
}

/** Starts PostgreSQL. */
export async function startPostgresql(options: readonly string[] = []): Promise<Instance> {
    const folder = makeFolder('postgresql');
    const [data, port, password] = [join(folder, 'data'), await freePort(), 'admin-Pass_1'];
    const file = join(folder, 'password');
    writeFileSync(file, password);
    await run(
        join(bin, 'initdb'),
        [
            '-D',
            data,
            '-U',
            'postgres',
            '--auth-local=scram-sha-256',
            '--auth-host=scram-sha-256',
            `--pwfile=${file}`,
            '-E',
            'UTF8',
            '--locale=C',
            '--no-sync'
        ],
        identity
    );
    const child = spawn(
        join(bin, 'postgres'),
        [
            '-D',
            data,
            '-k',
            folder,
            '-p',
            String(port),
            '-c',
            'listen_addresses=127.0.0.1',
            '-c',
            'fsync=off',
            '-c',
            'max_prepared_transactions=5',
            ...options
        ],
        { ...identity, stdio: 'ignore' }
    );
    const sql: Instance['sql'] = async (
        text,
        database = 'postgres',
        { username, password: secret } = { username: 'postgres', password }
    ) => {
        const client = new pg.Client({ host: '127.0.0.1', port, user: username, password: secret, database });
        client.on('error', () => undefined);
        try {
            await client.connect();
            const result = (await client.query(text)) as pg.QueryResult | pg.QueryResult[];
            return (Array.isArray(result) ? (result.at(-1)?.rows ?? []) : result.rows) as Record<
                string,
                unknown
            >[];
        } finally {
            await client.end().catch(() => undefined);
        }
    };
    await untilReady(child, () => sql('select 1'));
    return {
        kind: 'postgresql',
        port,
        socket: folder,
        username: 'postgres',
        password,
        folder,
        child,
        sql,
        async close() {
            await end(child, 'SIGQUIT');
            rmSync(folder, { recursive: true, force: true });
        }
    };
}
