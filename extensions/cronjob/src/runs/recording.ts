/** Writes admitted runs down. */
import { randomUUID } from 'node:crypto';

import type { EntityManager } from '@portico/sdk/db';

import { RunEntity, type RunRow, type TaskRow } from '../entities.ts';
import { shownValues } from '../parameters/values.ts';
import { findRuns } from '../queries.ts';
import type { Admission, RunRequest } from './admission.ts';

/** Records a run in the state that it was admitted in. A skip that repeats the one before makes no second run. @param now - milliseconds since 1970 */
export async function recordRun(
    em: EntityManager,
    task: TaskRow,
    {
        request,
        admission,
        now
    }: { readonly request: RunRequest; readonly admission: Admission; readonly now: number }
): Promise<RunRow> {
    const repeated = await findRepeatedSkip(em, task.id, request, admission);
    if (repeated !== null) {
        Object.assign(repeated, {
            times: repeated.times + 1,
            finishedAt: now,
            version: repeated.version + 1
        });
        return repeated;
    }
    const { trigger, dueAt, attempt, given } = request;
    const values = shownValues({}, task);
    const run = {
        ...{ trigger, dueAt, attempt },
        parentRunId: null,
        depth: 0,
        askedBy: null,
        parameters: values === null ? null : JSON.stringify(values),
        secretParameters: null,
        ...given,
        ...admission,
        taskId: task.id,
        version: 1,
        times: 1,
        createdAt: now,
        startedAt: admission.state === 'running' ? now : null,
        finishedAt: admission.state === 'skipped' ? now : null,
        exitCode: null,
        signal: null,
        cpuSeconds: null,
        memoryPeakBytes: null,
        status: null,
        mark: randomUUID(),
        scratch: null
    };
    return { ...run, id: await em.insert(RunEntity, run) };
}

/** While a task that is due each second is busy, its history gets one entry, and not thousands. Finds that entry. */
async function findRepeatedSkip(
    em: EntityManager,
    taskId: number,
    { trigger }: RunRequest,
    { state, reason }: Admission
): Promise<RunRow | null> {
    if (state !== 'skipped' || trigger !== 'schedule') {
        return null;
    }
    const [last] = await findRuns(em, { taskId }, { newestFirst: true, limit: 1 });
    return last?.state === 'skipped' && last.trigger === 'schedule' && last.reason === reason ? last : null;
}
