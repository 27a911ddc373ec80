/** How a task ended: its result, or the failure that callers see. */
import { isFailure } from '@portico/sdk';

import type { Logger } from '../../platform/log/log.ts';
import type { LiveTask, TaskError, TaskRow } from './task.ts';

/** How the work of a task ended. */
export type Ending =
    | { readonly state: 'succeeded'; readonly result: unknown }
    | { readonly state: 'failed'; readonly error: TaskError }
    | { readonly state: 'cancelled' };

const mostResultBytes = 1024 * 1024;

/** The fields of the row that an ending changes. A result that cannot be stored is left out, and the log of the task says so. */
export function rowOf(
    ending: Ending,
    task: LiveTask,
    log: Logger
): Pick<TaskRow, 'state' | 'progress' | 'result' | 'error'> {
    return {
        state: ending.state,
        progress: ending.state === 'succeeded' ? 1 : task.row.progress,
        result: ending.state === 'succeeded' ? textOf(ending.result, task, log) : null,
        error: ending.state === 'failed' ? JSON.stringify(ending.error) : null
    };
}

/** What callers see of an error that the work threw. An error that is no failure of ours goes to the log of the panel. */
export function errorOf(task: LiveTask, error: unknown, log: Logger): TaskError {
    if (isFailure(error)) {
        const { code, reason, message, data } = error;
        return { code, reason, message, data };
    }
    log.error('A task failed', { task: task.row.id, kind: task.row.kind, error });
    return {
        code: 50000,
        reason: 'INTERNAL',
        message: `Something went wrong; the log has it under the task ${task.row.id}`,
        data: null
    };
}

function textOf(result: unknown, task: LiveTask, log: Logger): string | null {
    try {
        const text = JSON.stringify(result ?? null);
        if (Buffer.byteLength(text) <= mostResultBytes) {
            return text;
        }
        task.say('The result is larger than 1 MiB and was not kept');
    } catch (error) {
        task.say('The result is not plain data and was not kept');
        log.error('The result of a task is not plain data', { task: task.row.id, error });
    }
    return null;
}
