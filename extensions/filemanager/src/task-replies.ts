/** Answers of routes whose work is a task. */
import { type Actor, type Reply, reply, type Task, type TaskRun } from '@portico/sdk';

import type { Ctx } from './settings.ts';

/** What a task is about. */
export interface TaskDescription {
    /** The kind, without the name of the plugin. */
    readonly kind: string;
    readonly title: string;
    readonly actor: Actor;
    readonly resource: string;
    /** The permission to see the result; default `write`. */
    readonly access?: string;
}

/** Starts a task and answers 202 with it. */
export async function acceptTask<T>(
    ctx: Ctx,
    { kind, title, actor, resource, access = 'write' }: TaskDescription,
    work: (run: TaskRun) => Promise<T>
): Promise<Reply<Task>> {
    return reply.accepted(await ctx.task({ kind, title, access, actor, resource }, work));
}

/** Makes a reporter of progress that passes on at most four reports a second. */
export function throttledProgress(run: TaskRun): (fraction: number | null) => void {
    let last = 0;
    return (fraction) => {
        const now = Date.now();
        if (now - last >= 250) {
            last = now;
            run.progress(fraction);
        }
    };
}
