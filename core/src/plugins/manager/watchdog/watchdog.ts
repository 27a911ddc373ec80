/** Names the plugin that blocks the event loop, ends the process or takes its memory. All plugins share the panel's process, so each can do that. */
import { totalmem } from 'node:os';
import { extname } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';

import type { ErrorOwner } from '../../runtime/isolation/error-owner.ts';
import { keepIncident, type KeptIncident } from './incident.ts';
import type { WatchedPlugin, WatchOptions, WatchTiming } from './watch-thread.ts';

const usualTiming: WatchTiming = { everyMs: 500, blockedMs: 10_000, endedMs: 30_000 };

/** V8's default on 64 bits. */
const youngGeneration = 192 * 1024 * 1024;

/** What a watchdog needs. */
export interface WatchdogOptions {
    /** The folder of incidents; it is created with the first one. */
    readonly folder: string;
    readonly errorOwner: ErrorOwner;
    /** Is told an incident after which the process goes on. */
    readonly noted: (incident: KeptIncident) => void;
    /** The watching itself failed; the panel goes on without it. */
    readonly failed: (error: Error) => void;
    readonly timing?: Partial<WatchTiming>;
}

/** Watches the plugins of this process, until `close`. */
export class Watchdog {
    readonly #options: WatchdogOptions;
    readonly #thread: Worker;
    readonly #beating: NodeJS.Timeout;
    readonly #onExit = (): void => this.#noteExit();

    constructor(options: WatchdogOptions) {
        this.#options = options;
        const timing = { ...usualTiming, ...options.timing };
        const beat = new Int32Array(new SharedArrayBuffer(4));
        const workerData: WatchOptions = {
            beat,
            folder: options.folder,
            limits: { heap: heapOfThread(), process: memoryOfProcess() },
            timing
        };
        this.#thread = new Worker(new URL(`./watch-thread${extname(import.meta.url)}`, import.meta.url), {
            workerData,
            resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 1 }
        });
        this.#thread.on('message', options.noted);
        this.#thread.on('error', options.failed);
        this.#thread.unref();
        this.#beating = setInterval(() => Atomics.add(beat, 0, 1), timing.everyMs).unref();
        process.on('exit', this.#onExit);
    }

    /** Says which folder a plugin's code lies in. */
    watch(plugin: WatchedPlugin): void {
        this.#thread.postMessage(plugin);
    }

    async close(): Promise<void> {
        process.off('exit', this.#onExit);
        clearInterval(this.#beating);
        await this.#thread.terminate();
    }

    /** Runs inside of `process.exit`, so the code that called it is on the stack. */
    #noteExit(): void {
        const plugin = this.#options.errorOwner.running();
        if (plugin !== null) {
            keepIncident(this.#options.folder, {
                plugin,
                code: 'PROCESS_EXITED',
                message: "It ended the panel's process by process.exit",
                at: Date.now()
            });
        }
    }
}

/** Bytes that what lives long may take of the heap. V8's limit also has its young generation in it, in which nothing stays. */
function heapOfThread(): number {
    const { heap_size_limit: limit } = getHeapStatistics();
    return Math.max(limit - youngGeneration, limit / 2);
}

/** Bytes that the control group allows, or that the machine has. */
function memoryOfProcess(): number {
    const allowed = process.constrainedMemory();
    return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem();
}
