/** Boots copies of panels, each in a process of its own, to prove that a backup comes back. */
import { fork } from 'node:child_process';
import { constants, readdirSync, rmSync } from 'node:fs';
import { cp, lstat, mkdtemp, rm } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Mutex, type PanelRehearsal } from '@portico/sdk';

import { databaseName } from '../../platform/data-dir/data-dir.ts';
import { compileCache } from '../../platform/process/compile-cache.ts';

/** The answers of the process that boots the copy: `ready` when the panel takes requests, then what was found. */
export type RehearsalMessage =
    | { readonly ready: true }
    | {
          readonly found: {
              readonly hosts: number;
              readonly users: number;
              readonly plugins: number;
              readonly auditChain: boolean;
          };
      }
    | { readonly failed: string };

const prefix = 'rehearsal-';
/** What a panel needs for its boot. Plugins are not loaded, so their code and data stay where they are. */
const parts = [databaseName, `${databaseName}-wal`, 'audit.head', 'keys', 'plugins.lock.json'];
/** A panel that is not ready by then does not boot. */
const patienceMs = 120_000;
const failed = { booted: false, readyMs: 0, hosts: 0, users: 0, plugins: 0, auditChain: false };

/** One rehearsal at a time. */
export class Rehearsals {
    readonly #dataDir: string;
    readonly #mutex = new Mutex();

    /** Removes what a panel that was killed has left. */
    constructor(dataDir: string) {
        this.#dataDir = dataDir;
        for (const name of readdirSync(dataDir).filter((each) => each.startsWith(prefix))) {
            rmSync(join(dataDir, name), { recursive: true, force: true });
        }
    }

    /**
     * Boots a copy of what is needed of a data folder. The folder itself is only read.
     *
     * @throws the signal's reason
     */
    async rehearse(folder: string, signal: AbortSignal): Promise<PanelRehearsal> {
        const { promise: given, reject: giveUp } = Promise.withResolvers<never>();
        given.catch(() => undefined);
        const giveUpWaiting = (): void => giveUp(signal.reason as Error);
        signal.addEventListener('abort', giveUpWaiting, { once: true });
        const turn = this.#mutex.run(() => {
            signal.throwIfAborted();
            signal.removeEventListener('abort', giveUpWaiting);
            return this.#rehearse(folder, signal);
        });
        return Promise.race([turn, given]);
    }

    async #rehearse(folder: string, signal: AbortSignal): Promise<PanelRehearsal> {
        const copy = await mkdtemp(join(this.#dataDir, prefix));
        try {
            await copyParts(folder, copy, signal);
            return await boot(copy, signal);
        } catch (error) {
            signal.throwIfAborted();
            return { ...failed, message: (error as Error).message };
        } finally {
            await rm(copy, { recursive: true, force: true, maxRetries: 3 });
        }
    }
}

async function copyParts(folder: string, copy: string, signal: AbortSignal): Promise<void> {
    // Without them, a new panel would be made, and boot.
    for (const name of [databaseName, join('keys', 'master')]) {
        if ((await lstat(join(folder, name)).catch(() => null))?.isFile() !== true) {
            throw new Error(`There is no ${name} in ${folder}`);
        }
    }
    for (const name of parts) {
        const from = join(folder, name);
        if ((await lstat(from).catch(() => null)) !== null) {
            signal.throwIfAborted();
            await cp(from, join(copy, name), {
                recursive: true,
                mode: constants.COPYFILE_FICLONE,
                filter: refuseLinks
            });
        }
    }
}

/** A link could lead the copied panel to keys that are not in the folder. */
async function refuseLinks(path: string): Promise<boolean> {
    const stat = await lstat(path);
    if (!stat.isFile() && !stat.isDirectory()) {
        throw new Error(`${path} is neither a file nor a folder`);
    }
    return true;
}

function boot(dataDir: string, signal: AbortSignal): Promise<PanelRehearsal> {
    const began = performance.now();
    const child = fork(
        fileURLToPath(new URL(`./rehearsal-child${extname(import.meta.url)}`, import.meta.url)),
        [],
        {
            env: { PATH: process.env['PATH'] ?? '', ...compileCache() },
            cwd: dataDir,
            execArgv: process.execArgv.filter((each) => !/^--(inspect|test)/.test(each)),
            stdio: ['ignore', 'ignore', 'ignore', 'ipc']
        }
    );
    const kill = (): void => void child.kill('SIGKILL');
    const timer = setTimeout(kill, patienceMs);
    signal.addEventListener('abort', kill, { once: true });
    return new Promise<PanelRehearsal>((resolve, reject) => {
        let readyMs = 0;
        let found: PanelRehearsal | null = null;
        child.on('message', (message: RehearsalMessage) => {
            if ('ready' in message) {
                readyMs = Math.round(performance.now() - began);
            } else if ('found' in message) {
                found = { booted: true, message: null, readyMs, ...message.found };
            } else {
                found = { ...failed, message: message.failed };
            }
        });
        child.on('error', reject);
        child.on('close', () => {
            clearTimeout(timer);
            signal.removeEventListener('abort', kill);
            if (signal.aborted) {
                reject(signal.reason as Error);
            } else {
                const why =
                    performance.now() - began >= patienceMs
                        ? `The panel was not ready within ${patienceMs / 1000} s`
                        : 'The process of the panel ended';
                resolve(found ?? { ...failed, message: why });
            }
        });
        child.send(dataDir, (error) => (error === null ? undefined : kill()));
    });
}
