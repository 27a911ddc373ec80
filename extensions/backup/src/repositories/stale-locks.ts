/** Locks of restic whose program has ended. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Restic } from '../restic/restic.ts';
import type { Target } from '../targets/target.ts';

const timeoutSeconds = 60;
/** The pauses after each look. */
const pausesMs = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000];

/**
 * Removes the locks whose program has ended. The kernel may name a program for a moment after its end, and restic leaves its lock then: what is
 * left is looked at again, for most of a minute. Locks that remain belong to programs that run, or to other machines.
 *
 * @throws what restic says when the repository does not answer
 */
export async function removeStaleLocks(
    restic: Pick<Restic, 'run'>,
    target: Target,
    signal: AbortSignal
): Promise<void> {
    const options = { timeoutSeconds, signal };
    for (const pauseMs of pausesMs) {
        await restic.run(target, ['unlock'], options);
        let locks = 0;
        await restic.run(target, ['list', 'locks', '--no-lock'], {
            ...options,
            onLine: (line) => void (locks += Number(/^[0-9a-f]{64}$/.test(line)))
        });
        if (locks === 0) {
            return;
        }
        await wait(pauseMs, undefined, { signal });
    }
}
