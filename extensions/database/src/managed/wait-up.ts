/** Waiting for a server that starts. */
import { setTimeout as wait } from 'node:timers/promises';

const pollMs = 50;

/** How long is waited, and when it is of no use any more. */
export interface Patience {
    readonly seconds: number;
    readonly signal: AbortSignal;
    /** Whether the server has ended, so that it will never answer. What this throws ends the wait too. */
    hasEnded(): Promise<boolean>;
}

/** Asks a server again and again until it answers. @throws what the last question did, when the time is over or the server has ended */
export async function waitUp(
    ask: () => Promise<unknown>,
    { seconds, signal, hasEnded }: Patience
): Promise<void> {
    for (const end = performance.now() + seconds * 1_000; ; await wait(pollMs)) {
        signal.throwIfAborted();
        try {
            await ask();
            return;
        } catch (error) {
            if ((await hasEnded()) || performance.now() > end) {
                throw error;
            }
        }
    }
}
