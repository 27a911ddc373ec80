/** A process that lives and does nothing. */
import { readdirSync, readFileSync } from 'node:fs';

import { until } from '../until.ts';

/** Stops a process, and waits until its last thread has: until then it may still answer. */
export async function freeze(pid: number | null): Promise<void> {
    process.kill(pid ?? 0, 'SIGSTOP');
    await until(
        () =>
            readdirSync(`/proc/${pid}/task`).every((task) =>
                /\) T /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8'))
            ),
        'every thread is stopped'
    );
}
