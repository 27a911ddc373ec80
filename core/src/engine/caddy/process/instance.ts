import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

import type { Logger } from '../../../platform/log/log.ts';
import { isAlive, type ProcessIdentity } from '../../../platform/process/process-identity.ts';
import { checkSocket, type EngineFolders } from '../../files/home.ts';
import { EngineUnavailable, type EngineVersion } from '../../port.ts';
import { parseEngineVersion } from '../../render/version.ts';
import { pingAdmin } from '../admin.ts';
import { findBinary, lockHeld, runBinary } from './binary.ts';
import { endProcess, findEngine, forgetPid, forgetStart, spawnEngine } from './process.ts';

/** Time limits of the process, in milliseconds. */
export interface InstanceTiming {
    /** From the start of the process to its first answer. */
    readonly startMs: number;
    readonly pingMs: number;
    /** For how long an engine that is asked to end may finish its requests. */
    readonly graceMs: number;
}

/** What an instance works with. */
export interface InstanceOptions {
    readonly binary: string | null;
    readonly home: () => EngineFolders;
    readonly timing: InstanceTiming;
    readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
    /** Aborted: no further start. */
    readonly signal: AbortSignal;
    /** A process that was started here ended. */
    readonly ended: () => void;
}

/** How long to wait for an engine that is just starting. */
const adoptionMs = 2000;

/** The grace of an engine that does not answer or must not go on serving. */
const hangingMs = 1000;

/** The one process that is the engine, no matter which process started it, and without regard to what it serves. */
export class EngineInstance {
    readonly #options: InstanceOptions;
    #identity: ProcessIdentity | null = null;
    #version: EngineVersion | null = null;
    #ending = '';

    constructor(options: InstanceOptions) {
        this.#options = options;
    }

    /** Null unless the process lives. */
    identity(): ProcessIdentity | null {
        return this.#identity !== null && isAlive(this.#identity) ? this.#identity : null;
    }

    runs(): boolean {
        return this.identity() !== null;
    }

    version(): EngineVersion | null {
        return this.#version;
    }

    /** How the last process ended, to be put behind a sentence; empty while one lives or when it is unknown. */
    ending(): string {
        return this.runs() ? '' : this.#ending;
    }

    /** Why there is no binary; null when there is one. */
    missing(): string | null {
        const { binary } = this.#options;
        if (findBinary(binary) !== null) {
            return null;
        }

        return binary === null
            ? 'Caddy is not installed: there is no caddy on the PATH. Install it, or name its binary in PORTICO_CADDY'
            : `there is no executable Caddy at ${binary} (PORTICO_CADDY)`;
    }

    /** @throws EngineUnavailable when it is missing */
    binary(): string {
        const binary = findBinary(this.#options.binary);
        if (binary === null) {
            throw new EngineUnavailable(this.missing() ?? 'Caddy has just been removed');
        }

        return binary;
    }

    /** Finds a running engine that answers, or starts one without a configuration. @throws EngineUnavailable */
    async ensureRunning(): Promise<'found' | 'started'> {
        if (await this.#adopt()) {
            return 'found';
        }

        const binary = this.binary();
        const folders = this.#options.home();
        const version = this.#readVersion();
        checkSocket(folders);
        const { child, identity } = await spawnEngine(folders, binary);
        let ended: string | null = null;
        let locked = false;
        child.on('exit', (code, signal) => {
            ended = ` (${signal ?? `code ${code}`})${this.#lastWords()}`;
            locked = code === lockHeld;
            if (this.#identity?.pid === identity.pid) {
                this.#ending = ended;
                this.#options.ended();
            }
        });
        const end = performance.now() + this.#options.timing.startMs;
        while (!(await this.#claim())) {
            if (locked && (await this.#adopt())) {
                return 'found';
            }

            if (ended !== null || this.#options.signal.aborted) {
                throw new EngineUnavailable(
                    locked
                        ? 'another engine holds the lock of this data folder'
                        : `the engine ended at its start${ended ?? ''}`
                );
            }

            if (performance.now() > end) {
                await endProcess(identity, 0);
                throw new EngineUnavailable(
                    `the engine did not answer within ${this.#options.timing.startMs / 1000} s of its start`
                );
            }

            await wait(15);
        }

        this.#version = await version;
        if (this.#identity?.pid !== identity.pid) {
            return 'found';
        }

        this.#options.log.info('Engine started', {
            pid: identity.pid,
            user: folders.owner.name,
            version: this.#version?.text
        });
        return 'started';
    }

    /** Takes over an engine that runs already. One that does not answer, or runs as another user, is ended. */
    async #adopt(): Promise<boolean> {
        const end = performance.now() + adoptionMs;
        while (!(await this.#claim())) {
            const found = findEngine(this.#options.home());
            if (found === null) {
                return false;
            }

            if (performance.now() > end) {
                this.#options.log.warn('An engine that does not answer is ended', {
                    pid: found.identity.pid
                });
                await endProcess(found.identity, hangingMs);
                return false;
            }

            await wait(50);
        }

        this.#version ??= await this.#readVersion();
        this.#options.log.info('Engine found running', { pid: this.#identity?.pid });
        return true;
    }

    /** Makes the running engine ours if it answers. Another driver may have started it in the meantime. */
    async #claim(): Promise<boolean> {
        const folders = this.#options.home();
        const found = findEngine(folders);
        if (found?.current !== true || !(await pingAdmin(folders, this.#options.timing.pingMs))) {
            return false;
        }

        forgetStart(folders);
        this.#identity = found.identity;
        this.#ending = '';
        return true;
    }

    /** Ends a process that does not answer or must not go on serving. */
    async end(): Promise<void> {
        const identity = this.identity();
        this.#identity = null;
        if (identity !== null) {
            await endProcess(identity, hangingMs);
        }
    }

    /** Ends the engine because it should not run. @returns false when there was none */
    async stop(): Promise<boolean> {
        const folders = this.#options.home();
        const identity = this.identity() ?? findEngine(folders)?.identity ?? null;
        this.#identity = null;
        if (identity !== null) {
            await endProcess(identity, this.#options.timing.graceMs);
            this.#options.log.info('Engine stopped', { pid: identity.pid });
        }

        forgetPid(folders);
        return identity !== null;
    }

    async #readVersion(): Promise<EngineVersion | null> {
        const binary = findBinary(this.#options.binary);
        return binary === null
            ? null
            : parseEngineVersion(
                  (await runBinary(this.#options.home(), binary, ['version'], { timeoutMs: 5000 })).stdout
              );
    }

    /** The last line that the process wrote before it ended, for a human. */
    #lastWords(): string {
        try {
            const lines = readFileSync(this.#options.home().outputFile, 'utf8')
                .slice(-8192)
                .split('\n')
                .slice(1);
            const last = lines.findLast((line) => line !== '' && !line.startsWith('{'));
            return last === undefined ? '' : `: ${last.slice(0, 500)}`;
        } catch {
            return '';
        }
    }
}
