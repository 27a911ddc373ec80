import { BatchRun, remainingWindow } from './batch.ts';
import type { SyncPorts, Waiter } from './ports.ts';
import type { BatchResult } from './queue.ts';

/**
 * Applies a batch of changes. Never throws: each waiter gets its own answer.
 * @returns the changes that must wait for the next load, and the time until it
 */
export const syncBatch = async (
    ports: SyncPorts,
    waiters: readonly Waiter[]
): Promise<BatchResult<Waiter>> => {
    const batch = new BatchRun(ports);
    try {
        await batch.run(waiters);
    } catch (error) {
        await batch.abandon(error, waiters).catch((cause: unknown) => {
            // This is a defect; even then no caller may wait for ever.
            ports.served().invalidate();
            for (const waiter of waiters) {
                waiter.reject(cause);
            }
        });
    }

    ports.pems.clear();
    const { left } = batch;
    return {
        left,
        wait: Promise.all([ports.served().endBridges(), left.length === 0 ? null : windowEnd(ports)])
    };
};

const windowEnd = (ports: SyncPorts): Promise<void> =>
    new Promise((done) => {
        setTimeout(done, Math.max(0, remainingWindow(ports)));
    });
