import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

import type { EngineFolders } from '../../files/home.ts';

/**
 * How much the engine's heap may grow until it is collected, in percent of what lives in it, and the memory, as a part of the machine's,
 * above which it is collected more often: docs/adr/0045.
 */
const collector = { growthPercent: 300, memoryShare: 0.5 };

/** The environment of an engine process: nothing of the panel's, except the paths of the machine's root certificates. */
export const engineEnvironment = (home: string): NodeJS.ProcessEnv => {
    const environment: NodeJS.ProcessEnv = {
        HOME: home,
        XDG_DATA_HOME: home,
        XDG_CONFIG_HOME: home,
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        GOGC: String(collector.growthPercent),
        GOMEMLIMIT: String(Math.floor(usableMemory() * collector.memoryShare))
    };
    for (const name of ['SSL_CERT_FILE', 'SSL_CERT_DIR']) {
        const value = process.env[name];
        if (value !== undefined) {
            environment[name] = value;
        }
    }

    return environment;
};

/** Bytes of memory that the machine has, or that a control group leaves to the panel. */
const usableMemory = (): number => {
    const limit = process.constrainedMemory();
    return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
};

/**
 * Where the engine's binary is, or null.
 * @param configured - a path; null: the first `caddy` on the PATH
 */
export const findBinary = (configured: string | null): string | null =>
    configured === null
        ? findCommand('caddy', process.env['PATH'] ?? '')
        : isExecutable(resolve(configured))
          ? resolve(configured)
          : null;

/**
 * The command line that runs the engine's binary as the engine's user, with nothing but the right to bind low ports.
 *
 * `flock`, `setpriv` and `sh` become the engine in turn, so the process id is the engine's, and the lock is held for as long as
 * the engine lives, also without the panel. `sh` has a fixed script: it sets the umask and, under the lock, when no engine can be
 * listening there, removes the socket of an engine that was killed. Before that, also under the lock, another one moves files into place as
 * the panel's user.
 *
 * @param options - `serve`: for the engine itself, the two files to move, from and to; false for a short-lived run
 */
export const engineCommand = (
    folders: EngineFolders,
    binary: string,
    args: readonly string[],
    options: { readonly serve: false | readonly [Move, Move] }
): readonly [string, ...string[]] => {
    const { owner } = folders;
    const rights = options.serve !== false ? '-all,+net_bind_service' : '-all';
    const command = [
        ...(options.serve !== false
            ? [
                  ...[tool('flock'), '-n', '-F', '-E', String(lockHeld), folders.lockFile],
                  ...[
                      '/bin/sh',
                      '-c',
                      'mv -f -- "$1" "$2" && mv -f -- "$3" "$4" || exit; shift 4; exec "$@"'
                  ],
                  'portico-engine',
                  ...options.serve.flat()
              ]
            : []),
        ...(owner.switched
            ? [
                  tool('setpriv'),
                  `--reuid=${owner.uid}`,
                  `--regid=${owner.gid}`,
                  '--clear-groups',
                  `--inh-caps=${rights}`,
                  `--ambient-caps=${rights}`,
                  `--bounding-set=${rights}`,
                  '--no-new-privs'
              ]
            : [])
    ];
    const shell =
        options.serve !== false
            ? [
                  '/bin/sh',
                  '-c',
                  'umask 077; rm -f -- "$1"; shift; exec "$@"',
                  'portico-engine',
                  folders.adminSocket
              ]
            : ['/bin/sh', '-c', 'umask 077; exec "$@"', 'portico-engine'];
    const [file = '', ...rest] = [...command, ...shell, binary, ...args];
    return [file, ...rest];
};

/** A file to move: from and to. */
export type Move = readonly [string, string];

/** Exit code of an engine that was not started because another one holds the lock. */
export const lockHeld = 75;

/** What came of a short-lived run of the binary. */
export interface BinaryResult {
    /** Null: it did not end by itself. */
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
}

/** Runs the binary to its end, as the engine's user and without any right. Never rejects. */
export const runBinary = (
    folders: EngineFolders,
    binary: string,
    args: readonly string[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal; readonly mostBytes?: number }
): Promise<BinaryResult> => {
    const [file, ...rest] = engineCommand(folders, binary, args, { serve: false });
    return new Promise((done) => {
        execFile(
            file,
            rest,
            {
                cwd: '/',
                env: engineEnvironment(folders.scratch),
                timeout: options.timeoutMs,
                killSignal: 'SIGKILL',
                maxBuffer: options.mostBytes ?? 4 * 1024 * 1024,
                ...(options.signal === undefined ? {} : { signal: options.signal })
            },
            (error, stdout, stderr) => {
                done({
                    code: error === null ? 0 : typeof error.code === 'number' ? error.code : null,
                    stdout,
                    stderr
                });
            }
        );
    });
};

const findCommand = (name: string, path: string): string | null =>
    path
        .split(':')
        .filter((folder) => isAbsolute(folder))
        .map((folder) => join(folder, name))
        .find(isExecutable) ?? null;

const tool = (name: string): string => findCommand(name, '/usr/bin:/bin:/usr/sbin:/sbin') ?? name;

const isExecutable = (path: string): boolean => {
    try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
    } catch {
        return false;
    }
};
