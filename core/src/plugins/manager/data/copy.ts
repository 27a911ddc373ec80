/** Copies data in a child process: a plugin's folder, another folder, or one database. Refuses before it begins when the disk has no room. */
import { fork } from 'node:child_process';
import { lstat, readdir, rm, statfs } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { fail } from '../../../platform/errors.ts';
import { compileCache } from '../../../platform/process/compile-cache.ts';

/** The message to the child process. */
export interface CopyJob {
    readonly from: string;
    /** Must not exist; its parent folder must. */
    readonly to: string;
    /** The plugin may write to the database meanwhile. */
    readonly isOpen: boolean;
    /** `from` is a database that is being written, and nothing else is copied. */
    readonly isDatabase?: boolean;
    /** Leaves out folders with a file `CACHEDIR.TAG` in them: caches, and what their plugin is making just now. */
    readonly withoutCaches?: boolean;
}

/** The answer of the child process. */
export type CopyAnswer =
    { readonly done: true } | { readonly failed: { readonly code: string; readonly message: string } };

/** What a copy needs. */
export interface CopyOptions extends CopyJob {
    readonly signal?: AbortSignal;
    /** Free bytes on the target's disk; default: asks the file system. */
    readonly free?: () => Promise<number>;
    /** What it is, for messages; default: the plugin's data. */
    readonly what?: string;
}

/** Marks a folder that no backup needs: https://bford.info/cachedir/ */
const cacheTag = 'CACHEDIR.TAG';
/** Bytes that a copy leaves free for the rest of the panel. */
const reserve = 64 * 1024 * 1024;
/** Characters of the child's error output that are kept. */
const maxErrorOutput = 2000;

/**
 * Makes a copy that is durable when the promise resolves. When it fails, the partial copy is deleted.
 *
 * @throws STORAGE_FULL 50700 when there is no room, at the beginning or later; the signal's reason
 */
export async function copyData({
    from,
    to,
    isOpen,
    isDatabase = false,
    withoutCaches = false,
    signal,
    free = () => freeBytes(dirname(to)),
    what = "the plugin's data"
}: CopyOptions): Promise<void> {
    signal?.throwIfAborted();
    const [needed, left] = [isDatabase ? await databaseBytes(from) : await sizeOf(from, withoutCaches), await free()];
    if (needed + reserve > left) {
        throw full(
            `A copy of ${what} needs ${mebi(needed)} MiB, and ${mebi(left)} MiB are free; nothing was changed`
        );
    }
    try {
        await inChild({ from, to, isOpen, isDatabase, withoutCaches }, what, signal);
    } catch (error) {
        await rm(to, { recursive: true, force: true });
        throw error;
    }
}

/** Bytes of all files below a folder; 0 when it is not there. @param withoutCaches - see {@link CopyJob.withoutCaches} */
export async function sizeOf(folder: string, withoutCaches = false): Promise<number> {
    let bytes = 0;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    if (withoutCaches && entries.some(({ name }) => name === cacheTag)) {
        return 0;
    }
    for (const entry of entries) {
        const path = join(folder, entry.name);
        bytes += entry.isDirectory()
            ? await sizeOf(path, withoutCaches)
            : ((await lstat(path).catch(() => null))?.size ?? 0);
    }
    return bytes;
}

async function databaseBytes(file: string): Promise<number> {
    const sizes = await Promise.all(
        [file, `${file}-wal`].map(async (path) => (await lstat(path).catch(() => null))?.size ?? 0)
    );
    return sizes.reduce((sum, size) => sum + size, 0);
}

async function freeBytes(folder: string): Promise<number> {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
}

function full(message: string): Error {
    return fail.STORAGE_FULL(null, { message });
}

const mebi = (bytes: number): number => Math.ceil(bytes / 1024 / 1024);

function inChild(job: CopyJob, what: string, signal: AbortSignal | undefined): Promise<void> {
    const conditions = process.execArgv.flatMap((each, index, all) =>
        /^(--conditions=|-C=)/.test(each)
            ? [each]
            : /^(--conditions|-C)$/.test(each)
              ? [each, all[index + 1] ?? '']
              : []
    );
    const child = fork(
        fileURLToPath(new URL(`./copy-child${extname(import.meta.url)}`, import.meta.url)),
        [],
        {
            env: { ...compileCache() },
            execArgv: [...conditions, '--disable-warning=ExperimentalWarning'],
            stdio: ['ignore', 'ignore', 'pipe', 'ipc']
        }
    );
    const kill = (): void => void child.kill('SIGKILL');
    signal?.addEventListener('abort', kill, { once: true });
    let last = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (last = (last + text).slice(-maxErrorOutput)));
    return new Promise<void>((resolve, reject) => {
        let answer: CopyAnswer | null = null;
        child.on('message', (message: CopyAnswer) => {
            answer = message;
        });
        child.on('error', reject);
        child.on('close', () => {
            signal?.removeEventListener('abort', kill);
            if (answer !== null && 'done' in answer) {
                resolve();
            } else if (signal?.aborted === true) {
                reject(signal.reason as Error);
            } else if (answer !== null && ['ENOSPC', 'EDQUOT'].includes(answer.failed.code)) {
                reject(full(`There is no space left for a copy of ${what}; nothing was changed`));
            } else {
                reject(new Error(`A copy of ${what} could not be made: ${answer?.failed.message ?? last}`));
            }
        });
        child.send(job, (error) => (error === null ? undefined : kill()));
    });
}
