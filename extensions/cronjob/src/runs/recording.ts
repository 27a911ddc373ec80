/** Writes admitted runs down. */
import { randomUUID } from 'node:crypto';

import type { EntityManager } from '@portico/sdk/db';

import { RunEntity, type RunRow, type TaskRow } from '../entities.ts';
import { shownValues } from '../parameters/values.ts';
import { findRuns } from '../queries.ts';
import type { AdmittedRun } from './admission.ts';

/** A run with its task. */
export interface StartedRun {
    readonly task: TaskRow;
    readonly run: RunRow;
}

/** Records runs in the states that they were admitted in. A skip that repeats the one before makes no second run. @param now - milliseconds since 1970 */
export async function recordRuns(
    em: EntityManager,
    admitted: readonly AdmittedRun[],
    now: number
): Promise<readonly StartedRun[]> {
    const recorded: StartedRun[] = [];
    for (const each of admitted) {
        const repeated = await findRepeatedSkip(em, each);
        if (repeated === null) {
            const run = newRun(each, now);
            recorded.push({ task: each.task, run: { ...run, id: await em.insert(RunEntity, run) } });
        } else {
            Object.assign(repeated, {
                times: repeated.times + 1,
                finishedAt: now,
                version: repeated.version + 1
            });
            recorded.push({ task: each.task, run: repeated });
        }
    }
    return recorded;
}

function newRun({ task, request, admission }: AdmittedRun, now: number): Omit<RunRow, 'id'> {
    const { trigger, dueAt, attempt, given } = request;
    const values = shownValues({}, task);
    return {
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
}

/** While a task that is due each second is busy, its history gets one entry, and not thousands. Finds that entry. */
async function findRepeatedSkip(
    em: EntityManager,
    { task, request: { trigger }, admission: { state, reason } }: AdmittedRun
): Promise<RunRow | null> {
    if (state !== 'skipped' || trigger !== 'schedule') {
        return null;
    }
    const [last] = await findRuns(em, { taskId: task.id }, { newestFirst: true, limit: 1 });
    return last?.state === 'skipped' && last.trigger === 'schedule' && last.reason === reason ? last : null;
}
