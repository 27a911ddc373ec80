import { isDeepStrictEqual } from 'node:util';

import { messageOf, Mutex } from '@portico/sdk';

import { readLog } from '../../platform/log/file.ts';
import type { Logger } from '../../platform/log/log.ts';
import { startOf } from '../../platform/process/process-identity.ts';
import { adminConfig, type EngineFolders, engineHome, prepareHome } from '../files/home.ts';
import {
    type EngineConfig,
    type EngineDriver,
    type EngineProcess,
    EngineRejected,
    EngineUnavailable,
    type EngineUpstream,
    type LoadOptions,
    type LogOptions,
    type ProcessState
} from '../port.ts';
import { EngineStalled, parseUpstreams, pingAdmin, requestAdmin } from './admin.ts';
import { ConfigLoader } from './config/loader.ts';
import { validateConfig } from './config/validation.ts';
import { hideOrigins } from './origin.ts';
import { EngineInstance } from './process/instance.ts';
import { capOutput } from './process/process.ts';
import { Supervisor } from './process/supervisor.ts';
import { defaultTiming, type EngineTiming } from './timing.ts';

/** What the driver works with. */
export interface CaddyDriverOptions {
    /** Path of the binary; null: `caddy` on the PATH. */
    readonly binary: string | null;
    /** The panel's data folder; it exists and is 0700. */
    readonly dataDir: string;
    /** Who the engine runs as; null: the package's user under root, else the panel's own. */
    readonly user: string | null;
    readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
    readonly timing?: Partial<EngineTiming>;
}

/** A message that says that the start of an app failed: listeners of the refused configuration may be open already. */
const startedPartly = / app module: start: /;

/** The engine driver for Caddy, over its admin API. It starts nothing and touches no file before `start`. */
export class CaddyDriver implements EngineDriver {
    readonly #options: CaddyDriverOptions;
    readonly #timing: EngineTiming;
    readonly #instance: EngineInstance;
    readonly #supervisor: Supervisor;
    readonly #closing = new AbortController();
    readonly #listeners = new Set<(process: EngineProcess) => void>();
    #folders: EngineFolders | null = null;
    #state: ProcessState = 'stopped';
    #message: string | null = null;
    #seen: EngineProcess | null = null;
    #base: EngineConfig | null = null;
    readonly #loader: ConfigLoader;
    #asking = new AbortController();
    readonly #process = new Mutex();
    readonly #checks = new Mutex();

    constructor(options: CaddyDriverOptions) {
        this.#options = options;
        this.#timing = { ...defaultTiming, ...options.timing };
        this.#instance = new EngineInstance({
            binary: options.binary,
            home: () => this.#home(),
            timing: this.#timing,
            log: options.log,
            signal: this.#closing.signal,
            ended: () => this.#supervisor.checkNow()
        });
        this.#loader = new ConfigLoader({
            home: () => this.#home(),
            pid: () => this.#instance.identity()?.pid ?? null,
            timing: this.#timing,
            log: options.log
        });
        this.#message = this.#instance.missing();
        this.#state = this.#message === null ? 'stopped' : 'missing';
        this.#supervisor = new Supervisor(this.#timing, {
            // Work under the mutex finds out by itself when the process ends.
            isAlive: () => this.#process.busy || this.#instance.runs(),
            answers: async () =>
                this.#process.busy ||
                (await pingAdmin(this.#home(), this.#timing.pingMs)) ||
                this.#process.busy,
            failed: (reason) => this.#fail(`${reason}${this.#instance.ending()}`),
            recover: () => this.#process.run(() => this.#recover()),
            tidy: () => capOutput(this.#home())
        });
    }

    process(): EngineProcess {
        const [state, message, instance] = [this.#state, this.#message, this.#instance];
        // Lists of hosts ask for it with each request and read only the state: the rest costs a read from the kernel.
        if (this.#seen?.state !== state || this.#seen.message !== message) {
            this.#seen = {
                state,
                message,
                get version() {
                    return instance.version();
                },
                get pid() {
                    return instance.identity()?.pid ?? null;
                },
                get startedAt() {
                    const identity = instance.identity();
                    return state === 'running' && identity !== null ? startOf(identity) : null;
                }
            };
        }
        return this.#seen;
    }

    start(base: EngineConfig): Promise<boolean> {
        return this.#process.run(async () => {
            this.#base = base;
            if (this.#state === 'running' && this.#instance.runs()) {
                return false;
            }

            this.#supervisor.expectRunning();
            try {
                prepareHome(this.#home());
                this.#loader.readLast();
                return (await this.#startWithConfig([this.#loader.last, base])).how === 'started';
            } catch (error) {
                this.#fail(messageOf(error));
                throw new EngineUnavailable(messageOf(error), { cause: error });
            }
        });
    }

    stop(): Promise<boolean> {
        // The supervisor is paused first, so that it does not restart the engine while this stop waits for the mutex.
        this.#supervisor.pause();
        this.#abortLoads();
        return this.#process.run(async () => {
            this.#supervisor.pause();
            const ran = await this.#instance.stop();
            const missing = this.#instance.missing();
            this.#loader.processEnded();
            this.#become(missing === null ? 'stopped' : 'missing', missing);
            return ran;
        });
    }

    load(config: EngineConfig, options: LoadOptions = {}): Promise<void> {
        const { signal } = this.#asking;
        return this.#process.run(async () => {
            this.#checkAdmin(config);
            signal.throwIfAborted();
            if (this.#isDown()) {
                throw new EngineUnavailable(this.#message ?? 'the engine is stopped');
            }

            if (this.#supervisor.isSuspected() || !this.#instance.runs()) {
                await this.#restartWith(config, signal);
                return;
            }

            try {
                await this.#loader.load(config, { ...options, signal });
                this.#succeed();
            } catch (error) {
                signal.throwIfAborted();
                if (error instanceof EngineRejected && startedPartly.test(error.message)) {
                    await this.#restartPrevious(error);
                } else if (error instanceof EngineUnavailable) {
                    if (error instanceof EngineStalled) {
                        // Ended at once: should it go on, it would serve the configuration that the caller is told it did not take.
                        await this.#end();
                    }

                    // It is unknown which configuration the engine has now: the supervisor replaces the process, with the last good one.
                    this.#supervisor.suspect(error.message);
                }

                throw error;
            }
        });
    }

    validate(config: EngineConfig): Promise<void> {
        return this.#checks.run(async () => {
            this.#checkAdmin(config);
            const folders = this.#home();
            prepareHome(folders);
            await validateConfig(folders, this.#instance.binary(), config, this.#closing.signal);
        });
    }

    async config(): Promise<EngineConfig | null> {
        return this.#isDown() ? null : this.#loader.running();
    }

    async answers(withinMs: number): Promise<boolean> {
        return !this.#isDown() && (await pingAdmin(this.#home(), withinMs));
    }

    async upstreams(): Promise<readonly EngineUpstream[]> {
        return this.#isDown()
            ? []
            : parseUpstreams(
                  await requestAdmin(this.#home(), {
                      method: 'GET',
                      path: '/reverse_proxy/upstreams',
                      timeoutMs: this.#timing.pingMs
                  })
              );
    }

    async *logs(options: LogOptions): AsyncIterable<string> {
        const folders = this.#home();
        const lines = readLog(
            { paths: [folders.outputFile, folders.logFile], uids: [folders.owner.uid, folders.panel.uid] },
            { ...options, signal: AbortSignal.any([options.signal, this.#closing.signal]) }
        );
        for await (const line of lines) {
            yield hideOrigins(line);
        }
    }

    onChange(listener: (process: EngineProcess) => void): void {
        this.#listeners.add(listener);
    }

    async close(): Promise<void> {
        this.#supervisor.close();
        this.#closing.abort();
        this.#abortLoads();
        this.#listeners.clear();
        await Promise.all([this.#process.idle(), this.#checks.idle()]);
    }

    /**
     * Finds the engine or starts it, and gives it a configuration: the one that it runs, or the first candidate that it takes.
     * If it takes none, it is left running without one, so that a better one can be loaded.
     * @returns `refusal`: what the engine said about the first candidate that it refused
     */
    async #startWithConfig(
        candidates: readonly (EngineConfig | null)[]
    ): Promise<{ readonly how: 'found' | 'started'; readonly refusal: EngineRejected | null }> {
        const how = await this.#instance.ensureRunning();
        if (how === 'found') {
            const running = await this.#loader.running();
            if (running !== null) {
                this.#loader.remember(running);
                this.#succeed();
                return { how, refusal: null };
            }
        }

        let refusal: EngineRejected | null = null;
        for (const candidate of candidates.filter((config) => config !== null)) {
            try {
                await this.#loader.load(candidate);
                this.#succeed();
                return { how, refusal };
            } catch (error) {
                if (!(error instanceof EngineRejected)) {
                    throw error;
                }

                refusal ??= error;
                this.#options.log.warn('Engine refused a configuration that it was to start with', {
                    reason: error.message
                });
                if (startedPartly.test(error.message)) {
                    await this.#end();
                    await this.#instance.ensureRunning();
                }
            }
        }

        throw refusal ?? new EngineUnavailable('there is no configuration to start the engine with');
    }

    #isDown(): boolean {
        return this.#state === 'stopped' || this.#state === 'missing';
    }

    async #end(): Promise<void> {
        this.#loader.processEnded();
        await this.#instance.end();
    }

    /** After a load that failed half-way: starts a new process with the previous configuration, since the old one may serve a mixture. */
    async #restartPrevious(cause: EngineRejected): Promise<void> {
        this.#options.log.warn('Engine refused a listener; it is restarted with the configuration before', {
            reason: cause.message
        });
        try {
            await this.#end();
            await this.#startWithConfig([this.#loader.last, this.#base]);
        } catch (error) {
            this.#fail(messageOf(error));
            throw new EngineUnavailable(
                `${cause.message}; the previous configuration could not be restored: ${messageOf(error)}`,
                { cause: error }
            );
        }
    }

    /** A load while the process is down: starts it with the new configuration, which may be what lets it run. */
    async #restartWith(config: EngineConfig, signal: AbortSignal): Promise<void> {
        try {
            await this.#end();
            const { how, refusal } = await this.#startWithConfig([config, this.#loader.last, this.#base]);
            if (how === 'found') {
                await this.#loader.load(config, { signal });
            }

            if (refusal !== null) {
                throw refusal;
            }
        } catch (error) {
            if (this.#state !== 'running') {
                this.#fail(messageOf(error));
            }

            throw error;
        }
    }

    /** One attempt of the supervisor. */
    async #recover(): Promise<void> {
        if (this.#state !== 'failing' && this.#state !== 'missing') {
            return;
        }

        try {
            prepareHome(this.#home());
            if (this.#supervisor.isSuspected() || !this.#instance.runs()) {
                await this.#end();
            }

            await this.#startWithConfig([this.#loader.last, this.#base]);
        } catch (error) {
            this.#fail(messageOf(error));
        }
    }

    #succeed(): void {
        this.#supervisor.watch();
        this.#become('running', this.#state === 'missing' ? null : this.#message);
    }

    #fail(reason: string): void {
        const missing = this.#instance.runs() ? null : this.#instance.missing();
        this.#options.log.error('Engine fails', { reason: missing ?? reason });
        this.#become(missing === null ? 'failing' : 'missing', missing ?? reason);
        this.#supervisor.retry();
    }

    #become(state: ProcessState, message: string | null): void {
        const changed = state !== this.#state || message !== this.#message;
        this.#state = state;
        this.#message = message;
        if (changed) {
            const now = this.process();
            for (const listener of this.#listeners) {
                listener(now);
            }
        }
    }

    #home(): EngineFolders {
        this.#folders ??= engineHome(this.#options.dataDir, this.#options.user);
        return this.#folders;
    }

    /** A configuration with another admin API would lock the panel out of the engine. */
    #checkAdmin(config: EngineConfig): void {
        if (!isDeepStrictEqual(config['admin'], adminConfig(this.#home()))) {
            throw new EngineRejected("the configuration does not keep the panel's admin socket");
        }
    }

    /** Ends loads that are under way, so that a stop does not wait for an engine that hangs. */
    #abortLoads(): void {
        this.#asking.abort(new EngineUnavailable('the engine was stopped before it took the configuration'));
        this.#asking = new AbortController();
    }
}
