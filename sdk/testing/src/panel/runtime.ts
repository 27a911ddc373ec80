/** Where the plugin's code runs in a test: behind a message port in this thread, so that everything is copied as between threads, or in a thread of its own. */
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';

import type { GuestRuntime } from '@portico/core/plugin-runtime';
import { type Guest, type HostApi, Link, type Port } from '@portico/sdk/host';

/** An end of a message port as the boundary takes it. */
export function portOf(port: object): Port {
    // Node declares overloads for events that the boundary does not use, so TypeScript does not see that they fit.
    return port as Port;
}

/** A place for the plugin's code, and how to let go of it. */
export interface TestRuntime {
    readonly runtime: GuestRuntime;
    close(): Promise<void>;
}

/** In this thread, called directly: what the panel does. */
export function createDirectRuntime(): TestRuntime {
    return { runtime: (sides, inThread) => inThread(sides), close: async () => undefined };
}

/** In this thread, with every value copied on its way in and out. */
export function createCopyRuntime(): TestRuntime {
    const { port1, port2 } = new MessageChannel();
    const methods: Record<string, unknown> = {};
    return {
        runtime: ({ hostApi, local }, inThread) => {
            const inside = new Link<HostApi>(portOf(port2), methods);
            Object.assign(methods, inThread({ hostApi: inside.remote, local }));
            return new Link<Guest>(portOf(port1), hostApi).remote;
        },
        close: async () => {
            port1.close();
            port2.close();
        }
    };
}

/** What the thread of a plugin is told. */
export interface WorkerPlugin {
    /** Real path of the package. */
    readonly folder: string;
    readonly name: string;
    readonly version: string;
    readonly dataDir: string;
    readonly machine: string;
}

/** In a thread of its own. */
export function createWorkerRuntime(plugin: WorkerPlugin): TestRuntime {
    const worker = new Worker(
        new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url),
        { workerData: plugin }
    );
    return {
        runtime: async ({ hostApi }) => {
            // The link answers every message but this one.
            await once(worker, 'message');
            return new Link<Guest>(portOf(worker), hostApi).remote;
        },
        close: async () => void (await worker.terminate())
    };
}
