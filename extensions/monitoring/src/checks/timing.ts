/** The clock that checks are tried by. */
import { performance } from 'node:perf_hooks';

import type { Timing } from './runner.ts';

/** The clock of this machine. Its timers keep no process alive. */
export const realTiming: Timing = {
    now: () => performance.now(),
    after(milliseconds, work) {
        const timer = setTimeout(work, milliseconds).unref();
        return () => clearTimeout(timer);
    }
};
