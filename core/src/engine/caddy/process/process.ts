import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
    closeSync,
    constants,
    openSync,
    readdirSync,
    renameSync,
    rmSync,
    statSync,
    truncateSync,
    writeFileSync
} from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import {
    identify,
    isAlive,
    type ProcessIdentity,
    readProc
} from '../../../platform/process/process-identity.ts';
import { adminConfig, type EngineFolders, writeForEngine } from '../../files/home.ts';
import { type EngineConfig, EngineUnavailable } from '../../port.ts';
import { makeOrigin, withOrigin } from '../origin.ts';
import { engineCommand, engineEnvironment } from './binary.ts';

/**
 * The configuration that an engine is started with: an admin socket, and nothing to serve. Its file is at a path that each user can guess, and
 * the engine serves what links in a site's folder lead to: it names no secret folder, and is removed when the engine has read it.
 */
export const startConfig = (folders: EngineFolders): EngineConfig => ({ admin: adminConfig(folders) });

/** A process that holds the lock of the engine's folder, or was started as its engine. */
export interface FoundEngine {
    readonly identity: ProcessIdentity;
    /** False: it holds the lock, but does not run as the engine's user (not yet, or the user was changed). */
    readonly current: boolean;
}

/**
 * Finds the engine of these folders among the machine's processes. It must have been started with our file, and either hold the lock (the
 * kernel says so) or run as the engine's user. A process id on disk and the socket prove nothing, since they may be left over or forged.
 */
export const findEngine = (folders: EngineFolders): FoundEngine | null => {
    const holders = lockHolders(folders.lockFile);
    // Some file systems show the kernel's lock table another inode than they show us: then the command line and the user decide.
    const candidates =
        holders.length > 0
            ? holders
            : readdirSync('/proc')
                  .filter((name) => /^\d+$/.test(name))
                  .map(Number);
    for (const pid of candidates) {
        const identity = identify(pid);
        if (identity !== null && isStartedWith(pid, folders.startFile)) {
            const current = runsAs(pid, folders.owner.uid);
            if (current || holders.length > 0) {
                return { identity, current };
            }
        }
    }

    return null;
};

/**
 * Starts the engine in a session of its own, with nothing of ours in its environment, so that it outlives the panel.
 * The caller waits for its socket to answer.
 * @throws EngineUnavailable when it cannot be started at all
 */
export const spawnEngine = async (
    folders: EngineFolders,
    binary: string
): Promise<{ readonly child: ChildProcess; readonly identity: ProcessIdentity }> => {
    const origin = makeOrigin();
    // Only the process that gets the lock moves its files into place.
    const suffix = `.${randomBytes(6).toString('hex')}`;
    const [startFile, originFile] = [`${folders.startFile}${suffix}`, `${folders.originFile}${suffix}`];
    writeForEngine(folders, startFile, JSON.stringify(withOrigin(startConfig(folders), folders, origin)));
    writeFileSync(originFile, origin, { mode: 0o600, flag: 'wx' });
    rotateOutput(folders);
    const output = openSync(
        folders.outputFile,
        constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW,
        0o600
    );
    try {
        const [file, ...args] = engineCommand(folders, binary, ['run', '--config', folders.startFile], {
            serve: [
                [startFile, folders.startFile],
                [originFile, folders.originFile]
            ]
        });
        const child = spawn(file, args, {
            cwd: folders.scratch,
            detached: true,
            stdio: ['ignore', output, output],
            env: engineEnvironment(folders.scratch)
        });
        await new Promise<void>((done, failed) => {
            child.once('spawn', done);
            child.once('error', (error) =>
                failed(new EngineUnavailable(`the engine could not be started: ${error.message}`))
            );
        });
        child.once('close', () => [startFile, originFile].forEach((path) => rmSync(path, { force: true })));
        child.unref();
        const pid = child.pid ?? 0;
        writeFileSync(folders.pidFile, `${pid}\n`, { mode: 0o600 });
        return { child, identity: identify(pid) ?? { pid, ticks: -1 } };
    } finally {
        closeSync(output);
    }
};

/**
 * Ends a process: by SIGTERM, then by SIGKILL. Never signals another process that got the same id.
 * @param graceMs - for how long it may finish what it is doing
 */
export const endProcess = async (identity: ProcessIdentity, graceMs: number): Promise<void> => {
    for (const [signal, limitMs] of [
        ['SIGTERM', graceMs],
        ['SIGKILL', 10_000]
    ] as const) {
        const end = performance.now() + limitMs;
        if (isAlive(identity)) {
            try {
                process.kill(identity.pid, signal);
            } catch (error) {
                if ((error as NodeJS.ErrnoException).code === 'EPERM') {
                    throw new EngineUnavailable(`the panel may not end the engine's process ${identity.pid}`);
                }
            }
        }

        while (isAlive(identity)) {
            if (performance.now() > end) {
                break;
            }

            await wait(10);
        }
    }

    if (isAlive(identity)) {
        throw new EngineUnavailable(`the engine's process ${identity.pid} does not end`);
    }
};

/** Removes the file that the engine was started with: it has read it, and the file holds the name of its admin API. */
export const forgetStart = (folders: EngineFolders): void => rmSync(folders.startFile, { force: true });

/** Removes the file with the process id. */
export const forgetPid = (folders: EngineFolders): void => rmSync(folders.pidFile, { force: true });

/** Truncates the engine's standard output when it has grown too long. The engine appends, so it goes on at the new end. */
export const capOutput = (folders: EngineFolders): void => {
    try {
        if (sizeOf(folders.outputFile) > outputLimit) {
            truncateSync(folders.outputFile);
        }
    } catch {
        // On a full or read-only disk the file stays as long as it is: that is no reason to fail the engine.
    }
};

/** 8 MiB. */
const outputLimit = 8 * 1024 * 1024;

const rotateOutput = (folders: EngineFolders): void => {
    if (sizeOf(folders.outputFile) > outputLimit / 8) {
        renameSync(folders.outputFile, `${folders.outputFile}.1`);
    }
};

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const isStartedWith = (pid: number, startFile: string): boolean => {
    const args = readProc(`/proc/${pid}/cmdline`)?.split('\0') ?? [];
    const flag = args.indexOf('--config');
    return flag > 0 && args[flag - 1] === 'run' && args[flag + 1] === startFile;
};

const runsAs = (pid: number, uid: number): boolean => {
    const uids = /^Uid:\s+(\d+)\s+(\d+)/m.exec(readProc(`/proc/${pid}/status`) ?? '');
    return Number(uids?.[1]) === uid && Number(uids?.[2]) === uid;
};

const lockHolders = (lockFile: string): readonly number[] => {
    const inode = statSync(lockFile, { throwIfNoEntry: false })?.ino;
    const lines = (readProc('/proc/locks') ?? '').split('\n').map((line) => line.trim().split(/\s+/));
    return lines
        .filter((fields) => fields[1] === 'FLOCK' && fields[5]?.split(':')[2] === String(inode))
        .map((fields) => Number(fields[4]))
        .filter((pid) => pid > 0);
};
