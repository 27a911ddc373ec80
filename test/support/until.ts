/** Waits of tests: by looking again and again with a limit, never by a fixed time. */
import { setTimeout as wait } from 'node:timers/promises';

/** The pause between two looks grows with what was waited for already: looking often takes the processor from what is waited for. */
const pauseMs = (waitedMs: number): number => Math.min(Math.max(waitedMs / 50, 10), 40);

/**
 * Waits until `probe` answers something other than null, undefined or false, and returns that. An error counts as not yet.
 *
 * @param what - what is waited for; a function is asked when the limit has passed
 * @throws Error that names `what`, with the last error as its cause, when the limit has passed
 */
export async function until<Value>(
    probe: () => Promise<Value | null | undefined | false> | Value | null | undefined | false,
    what: string | (() => string) = probe.toString(),
    limitMs = 60_000
): Promise<Value> {
    const began = performance.now();
    let cause: unknown;
    do {
        try {
            const value = await probe();
            if (value !== null && value !== undefined && value !== false) {
                return value;
            }
        } catch (error) {
            cause = error;
        }
        await wait(pauseMs(performance.now() - began));
    } while (performance.now() - began < limitMs);
    throw new Error(`Not within ${limitMs} ms: ${typeof what === 'string' ? what : what()}`, { cause });
}
