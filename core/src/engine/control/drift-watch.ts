import { hashOf } from '@portico/sdk';

import type { Logger } from '../../platform/log/log.ts';
import type { EngineDriver } from '../port.ts';
import type { EngineState } from '../sync/engine-state.ts';

/** What a drift watch works with. */
export interface DriftWatchOptions {
    readonly driver: EngineDriver;
    readonly state: EngineState;
    /** Runs work on its own in the sync queue. */
    readonly exclusive: (work: () => Promise<void>) => Promise<void>;
    /** Whether a drift is repaired. */
    readonly repairs: () => boolean;
    /** Milliseconds between two checks. */
    readonly everyMs: number;
    readonly log: Logger;
}

/**
 * Compares the running configuration with the given one, again and again. It finds an engine that was changed through its admin socket. The
 * table is not compared: only the panel's user may write it, and reading it costs one step for each name.
 */
export class DriftWatch {
    readonly #options: DriftWatchOptions;
    #timer: NodeJS.Timeout | null = null;
    #closed = false;

    constructor(options: DriftWatchOptions) {
        this.#options = options;
    }

    start(): void {
        if (!this.#closed) {
            this.#timer = setTimeout(() => void this.#run(), this.#options.everyMs);
            this.#timer.unref();
        }
    }

    close(): void {
        this.#closed = true;
        if (this.#timer !== null) {
            clearTimeout(this.#timer);
        }
    }

    async #run(): Promise<void> {
        try {
            await this.#check();
        } catch (error) {
            // The supervisor finds out about an engine that does not answer.
            this.#options.log.debug('The engine could not be compared', { error });
        }

        this.start();
    }

    async #check(): Promise<void> {
        const { driver, state, exclusive, repairs } = this.#options;
        if (driver.process().state !== 'running' || state.memory.wanted === 'stopped') {
            return;
        }

        const { served } = state.context;
        const { generation, loadedHash } = served;
        if (loadedHash === null) {
            return;
        }

        // Outside the queue, so that no change waits for it. A sync in between makes the comparison void.
        const drifted = hashOf(await driver.config()) !== loadedHash;
        if (this.#closed || state.context.served !== served || served.generation !== generation) {
            return;
        }

        if (drifted && repairs()) {
            await exclusive(() => state.repairDrift());
        } else {
            state.noteDrift(drifted);
        }
    }
}
