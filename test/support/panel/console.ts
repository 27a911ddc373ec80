/** The command line as a user calls it, and data folders for it to work on. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import Sqlite from 'better-sqlite3';

import { runCommandLine } from '../../../core/src/cli/command-line.ts';
import { openStorage } from '../../../core/src/composition/storage.ts';
import { engineHome } from '../../../core/src/engine/files/home.ts';
import { Audit } from '../../../core/src/features/audit/audit.ts';
import { Auth } from '../../../core/src/features/auth/auth.ts';
import { Settings } from '../../../core/src/features/settings/settings.ts';
import { Accounts } from '../../../core/src/features/users/accounts/accounts.ts';
import { Console } from '../../../core/src/features/users/console.ts';
import { Passwords } from '../../../core/src/features/users/passwords/passwords.ts';
import { Permissions } from '../../../core/src/features/users/roles/permissions.ts';
import { Roles } from '../../../core/src/features/users/roles/roles.ts';
import { Users } from '../../../core/src/features/users/users.ts';
import { systemClock } from '../../../core/src/platform/clock.ts';
import { readConfig } from '../../../core/src/platform/config.ts';
import { lockDataDir, prepareDataDir } from '../../../core/src/platform/data-dir/data-dir.ts';
import { checkKeys } from '../../../core/src/platform/keys/check.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { createLog } from '../../../core/src/platform/log/log.ts';
import { createInternalCall } from '../../../core/src/server/http/request/internal-call.ts';
import { freePort } from '../ports.ts';

export const shim = resolve(import.meta.dirname, '../../../core/bin/portico.js');

export interface Ran {
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
}

export interface RunOptions {
    readonly input?: string;
    readonly env?: NodeJS.ProcessEnv;
    /** Default: the Node that runs the test. */
    readonly node?: string;
    readonly cwd?: string;
    readonly uid?: number;
}

/** The environment of a command, without the test's own settings. The home is a temporary folder; npm uses the cache of the real one. */
export function environmentOf(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    return {
        PATH: process.env['PATH'],
        HOME: tmpdir(),
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        npm_config_cache: join(homedir(), '.npm'),
        ...more
    };
}

/** Runs `portico …` to its end. */
export function portico(
    args: readonly string[],
    { input = '', env = {}, node = process.execPath, cwd = tmpdir(), uid }: RunOptions = {}
): Promise<Ran> {
    return new Promise((done, failed) => {
        const child = spawn(node, [shim, ...args], {
            cwd,
            env: environmentOf(env),
            ...(uid === undefined ? {} : { uid, gid: uid })
        });
        const texts = { stdout: '', stderr: '' };
        child.stdout.on('data', (chunk: Buffer) => (texts.stdout += chunk.toString()));
        child.stderr.on('data', (chunk: Buffer) => (texts.stderr += chunk.toString()));
        child.on('error', failed);
        child.on('close', (code) => done({ code, ...texts }));
        child.stdin.on('error', () => undefined); // the command may end without reading
        child.stdin.end(input);
    });
}

/** Runs a command in the process of the test: what it says and does is the same, at a tenth of the cost, but not that a process ends by itself. */
export async function runHere(
    args: readonly string[],
    { env = {}, cwd = tmpdir() }: Pick<RunOptions, 'env' | 'cwd'> = {}
): Promise<Ran> {
    const texts = { stdout: '', stderr: '' };
    const { code } = await runCommandLine(args, {
        stdout: { write: (text) => (texts.stdout += text) },
        stderr: { write: (text) => (texts.stderr += text) },
        env: environmentOf(env),
        cwd: () => cwd
    });
    return { code, ...texts };
}

const seen = new Set<string>();

/** Runs a command as {@link portico} does with input, and the first time that a test file runs it; as {@link runHere} does else. */
export function command(
    args: readonly string[],
    options: Pick<RunOptions, 'env' | 'cwd' | 'input'> = {}
): Promise<Ran> {
    const name = args
        .slice(0, 2)
        .filter((word) => !word.startsWith('-'))
        .join(' ');
    const isFirst = !seen.has(name);
    seen.add(name);
    return isFirst || options.input !== undefined ? portico(args, options) : runHere(args, options);
}

/** A Node on the PATH that is older than the panel needs; null when there is none. */
export function oldNode(): string | null {
    const candidates = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'node'));
    return (
        candidates.find((candidate) => {
            try {
                return (
                    Number(
                        /^v(\d+)/.exec(execFileSync(candidate, ['--version'], { encoding: 'utf8' }))?.[1]
                    ) < 24
                );
            } catch {
                return false;
            }
        }) ?? null
    );
}

export const firstPassword = 'a long first password';

/** Makes a data folder by a panel that starts once and ends. It has the user `admin`. */
export async function panelFolder(): Promise<string> {
    const dataDir = mkdtempSync(join(tmpdir(), 'portico-console-'));
    prepareDataDir(dataDir);
    const lock = lockDataDir(dataDir);
    const clock = systemClock;
    const log = createLog({ level: 'silent', write: () => undefined });
    const keyring = createKeyring(dataDir);
    const db = await openStorage(dataDir);
    await checkKeys(db, keyring, join(dataDir, 'keys'));
    const settings = await Settings.load({
        db,
        keyring,
        config: readConfig({ PORTICO_DATA_DIR: dataDir }, '/'),
        clock,
        log
    });
    const audit = await Audit.open({
        db,
        keyring,
        headFile: join(dataDir, 'audit.head'),
        clock,
        log,
        retentionDays: () => 365
    });
    const roles = new Roles({ db, clock, permissions: new Permissions() });
    const accounts = new Accounts({ db, clock, passwords: new Passwords(), roles });
    const auth = new Auth({
        db,
        clock,
        keyring,
        recorder: audit,
        accounts,
        settings,
        resolve: () => null,
        jwtSecret: null
    });
    const users = new Users({ db, clock, accounts, roles, logins: auth });
    await new Console({ db, accounts, users, logins: auth }).firstRun(
        createInternalCall({ recorder: audit }),
        firstPassword
    );
    await auth.stop();
    await audit.close();
    await db.close();
    lock?.release();
    return dataDir;
}

const readyMs = 120_000;

export interface RunningPanel {
    readonly url: string;
    readonly child: ChildProcess;
    /** The lines of its log. */
    readonly output: () => string;
    /** Asks it to end, and waits for the end. */
    stop(): Promise<void>;
}

/** Starts `portico start` on a data folder and free ports, and waits until it is ready. */
export async function startPanel(
    dataDir: string,
    {
        env = {},
        node = process.execPath,
        host = '127.0.0.1'
    }: Pick<RunOptions, 'env' | 'node'> & { readonly host?: string } = {}
): Promise<RunningPanel> {
    const [port, http, https] = [await freePort(), await freePort(), await freePort()];
    const child = spawn(node, [shim, 'start', '--stop-engine', '--data-dir', dataDir], {
        cwd: tmpdir(),
        stdio: ['ignore', 'pipe', 'pipe'],
        env: environmentOf({
            PORTICO_HOST: host,
            PORTICO_PORT: String(port),
            PORTICO_ENGINE_HTTP_PORT: String(http),
            PORTICO_ENGINE_HTTPS_PORT: String(https),
            PORTICO_ADMIN_PASSWORD: firstPassword,
            PORTICO_PLUGIN_DIRS: '',
            PORTICO_SERVICES: 'supervisor',
            ...env
        })
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const ended = new Promise<void>((done) => child.once('close', () => done()));
    const panel: RunningPanel = {
        url: `http://${host}:${port}`,
        child,
        output: () => output,
        async stop() {
            child.kill('SIGTERM');
            await ended;
        }
    };
    const end = performance.now() + readyMs;
    while (!(await isReady(panel.url))) {
        if (child.exitCode !== null || performance.now() > end) {
            child.kill('SIGKILL');
            throw new Error(`The panel did not become ready: ${output}`);
        }
        await wait(50);
    }
    return panel;
}

async function isReady(url: string): Promise<boolean> {
    return fetch(`${url}/readyz`).then(
        (answer) => answer.status === 200,
        () => false
    );
}

/** Every audit entry of a folder, oldest first. */
export function auditOf(dataDir: string): Record<string, unknown>[] {
    const db = new Sqlite(join(dataDir, 'portico.db'), { readonly: true });
    try {
        return db.prepare<[], Record<string, unknown>>('select * from audit_entries order by id').all();
    } finally {
        db.close();
    }
}

/** Every byte of the folder as text, in which tests look for secrets that must not be there. */
export function contentOf(dataDir: string): string {
    return ['portico.db', 'portico.db-wal', 'audit.head', 'panel.json']
        .map((name) => {
            try {
                return readFileSync(join(dataDir, name), 'latin1');
            } catch {
                return '';
            }
        })
        .join('\n');
}

/** Removes a data folder, and the files that root's engine keeps outside of it. */
export function removeFolder(dataDir: string): void {
    const { persistent, runtime } = engineHome(dataDir, process.getuid?.() === 0 ? 'root' : null);
    rmSync(persistent, { recursive: true, force: true });
    rmSync(runtime, { recursive: true, force: true });
    rmSync(dataDir, { recursive: true, force: true });
}
