import { isDeepStrictEqual } from 'node:util';

import type { Logger } from '../../../platform/log/log.ts';
import type { EngineFolders } from '../../files/home.ts';
import { type EngineConfig, EngineRejected, type LoadOptions } from '../../port.ts';
import { type AdminRequest, requestWatched, type StallTiming } from '../admin.ts';
import { type Listener, listenersOf, probeListeners } from '../listeners.ts';
import { readOrigin, withOrigin, withoutOrigin } from '../origin.ts';
import { startConfig } from '../process/process.ts';
import { drainFormerConnections } from './former-connections.ts';
import { parseConfig, readLastConfig, saveWhenLoaded } from './last-config.ts';

/** What a loader works with. */
export interface LoaderOptions {
    readonly home: () => EngineFolders;
    /** The process id of the running engine; null when none runs. */
    readonly pid: () => number | null;
    readonly timing: StallTiming & { readonly loadMs: number };
    readonly log: Pick<Logger, 'error'>;
}

/** Loads configurations into the engine and reads them back. It remembers the last one that the engine took. */
export class ConfigLoader {
    readonly #options: LoaderOptions;
    #last: EngineConfig | null = null;
    #listening: readonly Listener[] = [];

    constructor(options: LoaderOptions) {
        this.#options = options;
    }

    /** The configuration that the engine took last; null: unknown. */
    get last(): EngineConfig | null {
        return this.#last;
    }

    /** Reads the last configuration from the disk, unless one is known already. */
    readLast(): void {
        this.#last ??= readLastConfig(this.#options.home());
    }

    /** Notes that the engine's process ended: it listens nowhere. */
    processEnded(): void {
        this.#listening = [];
    }

    /** Notes which configuration the engine runs. */
    remember(config: EngineConfig): void {
        this.#last = config;
        this.#listening = listenersOf(config);
    }

    /**
     * One load. First checks whether its new addresses are free: the engine does not undo a load that fails at binding.
     * @throws EngineRejected, EngineUnavailable
     */
    async load(
        config: EngineConfig,
        { signal, drain = false }: LoadOptions & { readonly signal?: AbortSignal } = {}
    ): Promise<void> {
        const problems = await probeListeners(listenersOf(config), {
            pid: this.#options.pid(),
            listeners: this.#listening
        });
        if (problems.length > 0) {
            throw new EngineRejected(problems.join('; '));
        }

        const home = this.#options.home();
        const body = JSON.stringify(withOrigin(config, home, readOrigin(home)));
        let taken = false;
        try {
            await saveWhenLoaded(home, body, async () => {
                await this.#request({
                    method: 'POST',
                    path: '/load',
                    body,
                    ...(signal === undefined ? {} : { signal })
                });
                taken = true;
            });
        } catch (error) {
            if (!taken) {
                throw error;
            }

            this.#options.log.error("The engine's configuration could not be kept for its next start", {
                reason: (error as Error).message
            });
        }

        const former = this.#listening;
        this.remember(config);
        if (drain) {
            await drainFormerConnections(new Set(former.map(({ port }) => port)));
        }
    }

    /** The configuration that the engine runs; null when it runs only what it was started with. @throws EngineUnavailable */
    async running(): Promise<EngineConfig | null> {
        const home = this.#options.home();
        const config = parseConfig(await this.#request({ method: 'GET', path: '/config/' }));
        const plain = config === null ? null : withoutOrigin(config, home);
        return isDeepStrictEqual(plain, startConfig(home)) ? null : plain;
    }

    #request(asked: Omit<AdminRequest, 'timeoutMs'>): Promise<string> {
        const { home, timing } = this.#options;
        return requestWatched(home(), { ...asked, timeoutMs: timing.loadMs }, timing);
    }
}
