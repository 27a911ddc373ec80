/** A call that goes on until the task is over that its route started. */
import type { ApiAnswer, TaskProgress, TaskView } from '@portico/sdk';

import type { Caller } from '../../../../platform/call.ts';
import { createInternalCall } from '../../../../server/http/request/internal-call.ts';
import { type Calling, refusal } from './request.ts';

/** Hears how a task goes. */
export type Follower = (progress: TaskProgress) => Promise<void>;

/**
 * Waits for the end of the task that an answer names; other answers come back as they are. The task is cancelled when the signal aborts.
 * @throws the reason of the signal
 */
export async function followTask(
    by: Calling,
    via: Caller,
    answer: ApiAnswer,
    follow: Follower,
    signal: AbortSignal
): Promise<ApiAnswer> {
    const { tasks, http } = by.ports;
    const id = taskIn(answer);
    if (id === null) {
        return answer;
    }
    let fraction: number | null = null;
    for await (const { event, data } of tasks.events(id, via, { signal })) {
        if (event === 'end') {
            return endOf(data as TaskView);
        }
        const { progress, line } = data as { readonly progress?: number | null; readonly line?: string };
        fraction = progress === undefined ? fraction : progress;
        await follow({ taskId: id, fraction, text: line ?? null });
    }
    // Nothing that the caller holds is needed for this: the caller may be gone.
    await tasks.cancel(
        id,
        createInternalCall({
            caller: via,
            recorder: http.recorder,
            signal,
            ip: by.held.ip,
            id: by.held.requestId
        })
    );
    throw signal.reason;
}

/** The id of the task; null where the answer is not about one of the panel's tasks. */
function taskIn({ status, data, location }: ApiAnswer): number | null {
    if (status !== 202) {
        return null;
    }
    if (location !== null) {
        return Number(/^\/api\/tasks\/(\d+)$/.exec(location)?.[1] ?? Number.NaN) || null;
    }
    const task = data as Partial<TaskView> | null;
    return Number.isSafeInteger(task?.id) && typeof task?.kind === 'string' && 'progress' in task
        ? (task.id ?? null)
        : null;
}

function endOf({ id, state, result, error }: TaskView): ApiAnswer {
    const failed = error as { code: number; reason: string; message: string; data: object | null } | null;
    const answer: ApiAnswer =
        state === 'cancelled'
            ? refusal(50300, 'CANCELLED', 'The task was cancelled')
            : failed !== null
              ? refusal(failed.code, failed.reason, failed.message, failed.data ?? {})
              : {
                    status: 200,
                    code: 0,
                    message: 'ok',
                    data: result,
                    etag: null,
                    next: null,
                    total: null,
                    location: null
                };
    return { ...answer, location: `/api/tasks/${id}` };
}
