/** Work that may be small or large: small is done at once, large is a task. */
import { type Actor, joi, type Reply, reply, type Task, type TaskRun } from '@portico/sdk';

import type { Ctx } from './settings.ts';

/** A task, as the API shows it everywhere. */
export const taskSchema = joi
    .object({
        id: joi.number().integer().required(),
        kind: joi.string().required(),
        state: joi.valid('queued', 'running', 'succeeded', 'failed', 'cancelled').required(),
        progress: joi.number().min(0).max(1).allow(null).required(),
        startedAt: joi.string().isoDate().allow(null).required(),
        finishedAt: joi.string().isoDate().allow(null).required(),
        result: joi.any(),
        error: joi.any()
    })
    .unknown(true);

/** What a task is called and about. */
export interface Job {
    /** Without the plugin's name. */
    readonly kind: string;
    readonly title: string;
    readonly actor: Actor;
    readonly resource: string;
}

/** Answers 202 with a task that does the work. */
export async function asTask<T>(
    ctx: Ctx,
    { kind, title, actor, resource }: Job,
    work: (run: TaskRun) => Promise<T>
): Promise<Reply<Task>> {
    return reply.accepted(await ctx.task({ kind, title, access: 'write', actor, resource }, work));
}

/** Progress at most four times a second: a task's log is no place for each of a million files. */
export function paced(run: TaskRun): (fraction: number | null) => void {
    let last = 0;
    return (fraction) => {
        const now = Date.now();
        if (now - last >= 250) {
            last = now;
            run.progress(fraction);
        }
    };
}
