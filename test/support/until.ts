/** Waits of tests: by looking again and again with a limit, never by a fixed time. */
import { setTimeout as wait } from 'node:timers/promises';

const pauseMs = 10;

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
    const end = performance.now() + limitMs;
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
        await wait(pauseMs);
    } while (performance.now() < end);
    throw new Error(`Not within ${limitMs} ms: ${typeof what === 'string' ? what : what()}`, { cause });
}
