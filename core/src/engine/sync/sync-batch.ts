/** The apply queue's work: one batch of changes, and then those that may not be loaded yet. */
import { createBatch, waitOf } from './batch.ts';
import type { SyncPorts, Waiter } from './ports.ts';

/** Settles a batch. Never throws: each waiter learns its own fate. @returns the changes that must wait for the next load, and until when */
export const syncBatch = async (
    ports: SyncPorts,
    waiters: readonly Waiter[]
): Promise<{ readonly left: readonly Waiter[]; readonly wait: Promise<void> | null }> => {
    const run = createBatch(ports);
    try {
        await run.run(waiters);
    } catch (error) {
        await run.abandon(error, waiters).catch((cause: unknown) => {
            // A defect; nobody may wait for ever because of it.
            ports.served().invalidate();
            for (const waiter of waiters) {
                waiter.reject(cause);
            }
        });
    }

    ports.pems.clear();
    return {
        left: run.left,
        wait:
            run.left.length === 0
                ? null
                : new Promise((done) => {
                      setTimeout(done, Math.max(0, waitOf(ports)));
                  })
    };
};
