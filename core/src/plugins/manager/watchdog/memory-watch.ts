/** Watches the memory of the process. Only when much of it is used, V8 samples who allocates; so a plugin can be named before the memory ends. */
import type { HeapProfiler, Session } from 'node:inspector';

import { culpritOf } from './culprit.ts';

/** Limits of memory in bytes, against which the use of plugins is judged. */
export interface MemoryLimits {
    /** The most that the heap of the main thread may have. */
    readonly heap: number;
    /** What the machine, or the control group, has for the process. */
    readonly process: number;
}

/** From this share of a limit on, allocations are sampled; below the second one they are no longer. */
const beginAt = 0.5;
const endBelow = 0.4;
/** At this share a plugin is named that holds most of what was allocated since. */
const dangerAt = 0.75;
const mostlyShare = 0.5;
/** One sample for so many bytes. */
const samplingInterval = 128 * 1024;
const mebi = (bytes: number): number => Math.round(bytes / 1024 / 1024);

/** Names plugins that eat the memory, each of them once. */
export class MemoryWatch {
    readonly #limits: MemoryLimits;
    readonly #plugins: ReadonlyMap<string, string>;
    readonly #connect: () => Promise<Session>;
    readonly #named: (plugin: string, message: string) => void;
    readonly #known = new Set<string>();
    #session: Session | null = null;
    #isBusy = false;

    constructor(options: {
        readonly limits: MemoryLimits;
        readonly plugins: ReadonlyMap<string, string>;
        readonly connect: () => Promise<Session>;
        readonly named: (plugin: string, message: string) => void;
    }) {
        this.#limits = options.limits;
        this.#plugins = options.plugins;
        this.#connect = options.connect;
        this.#named = options.named;
    }

    /** Looks at the memory now. Call it again and again. */
    async check(): Promise<void> {
        const resident = process.memoryUsage.rss();
        const limit = Math.min(this.#limits.heap, this.#limits.process);
        if (this.#isBusy || (this.#session === null && resident < beginAt * limit)) {
            return;
        }
        this.#isBusy = true;
        try {
            if (this.#session === null) {
                this.#session = await this.#connect();
                await ask(this.#session, 'HeapProfiler.startSampling', { samplingInterval });
            } else if (resident < endBelow * limit) {
                await ask(this.#session, 'HeapProfiler.stopSampling');
                this.#session.disconnect();
                this.#session = null;
            } else {
                await this.#nameEater(this.#session, resident);
            }
        } finally {
            this.#isBusy = false;
        }
    }

    async #nameEater(session: Session, resident: number): Promise<void> {
        const { usedSize } = await ask<{ readonly usedSize: number }>(session, 'Runtime.getHeapUsage');
        const isHeap = usedSize > dangerAt * this.#limits.heap;
        if (!isHeap && resident < dangerAt * this.#limits.process) {
            return;
        }
        const { profile } = await ask<HeapProfiler.GetSamplingProfileReturnType>(
            session,
            'HeapProfiler.getSamplingProfile'
        );
        const held = new Map<string | null, number>();
        addUp(profile.head, null, this.#plugins, held);
        const total = [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
        for (const [plugin, bytes] of held) {
            if (plugin !== null && bytes > mostlyShare * total && !this.#known.has(plugin)) {
                this.#known.add(plugin);
                const [used, most] = isHeap
                    ? [usedSize, this.#limits.heap]
                    : [resident, this.#limits.process];
                this.#named(
                    plugin,
                    `It took most of the memory that the panel allocated: ${mebi(used)} of ${mebi(most)} MiB are used`
                );
            }
        }
    }
}

/** Adds up what lives, by plugin. What the panel or a library allocates for a plugin's code is the plugin's. */
function addUp(
    node: HeapProfiler.SamplingHeapProfileNode,
    owner: string | null,
    plugins: ReadonlyMap<string, string>,
    held: Map<string | null, number>
): void {
    const { url, lineNumber: line } = node.callFrame;
    const own = culpritOf({ url, line }, plugins)?.plugin ?? owner;
    held.set(own, (held.get(own) ?? 0) + node.selfSize);
    node.children.forEach((child) => addUp(child, own, plugins, held));
}

function ask<T>(session: Session, method: string, parameters: object = {}): Promise<T> {
    return new Promise((resolve, reject) => {
        session.post(method, parameters, (error, answer) =>
            error === null ? resolve(answer as T) : reject(error)
        );
    });
}
