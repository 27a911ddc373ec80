/** Starts the plugin's side of the boundary: in this thread, or where the generation's runtime puts it. */
import type { LeakDetector } from '@portico/registry';
import { createGuest, type Guest } from '@portico/sdk/host';

import type { GuestRuntime, GuestSides } from '../generation/generation.ts';
import { confinedGuest } from './confined.ts';
import type { Confine } from './error-owner.ts';

/** @param runtime - runs the guest elsewhere; without one it runs in this thread */
export function startGuest(
    guest: Omit<Parameters<typeof createGuest>[0], keyof GuestSides>,
    sides: GuestSides,
    confine: Confine,
    runtime: GuestRuntime | undefined
): ReturnType<GuestRuntime> {
    const inThread = (given: GuestSides): Guest =>
        confinedGuest(createGuest({ ...guest, ...given }), confine);
    return runtime === undefined ? inThread(sides) : runtime(sides, inThread);
}

/** Enters and leaves the plugin's context both for finding the owner of an error and for finding leaks. */
export function withLeaks(confine: Confine | undefined, leaks: LeakDetector): Confine {
    return {
        enter: (work) => leaks.enter(() => (confine === undefined ? work() : confine.enter(work))),
        leave: (work) => leaks.leave(() => (confine === undefined ? work() : confine.leave(work)))
    };
}
