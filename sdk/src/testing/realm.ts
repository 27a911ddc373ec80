/** Where the plugin's code runs in a test: behind a message port, so that whatever crosses is copied as between threads, and not between. */
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';

import { createGuest, type GuestOptions } from '../boundary/guest.ts';
import { createLink } from '../boundary/link.ts';
import type { Guest, HostDoors } from '../boundary/protocol.ts';
import type { Watch } from './leftovers.ts';
import type { WorkerPlugin } from './worker.ts';

/** A guest and how to let go of what leads to it. */
export interface Realm {
    readonly guest: Guest;
    close(): Promise<void>;
}

/** The guest in this thread, every value copied on its way in and out. */
export function createCopyingRealm(options: GuestOptions, watch: Watch): Realm {
    const { port1, port2 } = new MessageChannel();
    const methods: Record<string, unknown> = {};
    const inside = createLink<HostDoors>(port2 as never, methods);
    const guest = createGuest({ ...options, doors: inside.remote });
    Object.assign(methods, watched(guest, watch));
    const outside = createLink<Guest>(port1 as never, options.doors);
    return {
        guest: outside.remote,
        async close() {
            const gone = new Error('The test host is closed');
            outside.close(gone);
            inside.close(gone);
            port1.close();
            port2.close();
        }
    };
}

/** The guest in this thread, called as it is: what the panel does by default. */
export function createDirectRealm(options: GuestOptions, watch: Watch): Realm {
    return { guest: watched(createGuest(options), watch) as unknown as Guest, close: async () => undefined };
}

/** The guest in a thread of its own. @throws what the plugin's module throws when it is imported */
export async function createWorkerRealm(plugin: WorkerPlugin, doors: HostDoors): Promise<Realm> {
    const worker = new Worker(
        new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url),
        { workerData: plugin }
    );
    // The link answers every message but this one.
    await once(worker, 'message');
    const link = createLink<Guest>(worker as never, doors);
    return {
        guest: link.remote,
        async close() {
            link.close(new Error('The test host is closed'));
            await worker.terminate();
        }
    };
}

/** The same methods; what they start counts for the plugin. */
function watched(guest: Guest, watch: Watch): Record<string, (input: never) => unknown> {
    return Object.fromEntries(
        Object.entries(guest).map(([name, method]) => [
            name,
            (input: never) => watch.run(() => (method as (input: never) => unknown)(input))
        ])
    );
}
