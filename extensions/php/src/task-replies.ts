/** Answers of routes whose work is a task. */
import { type Actor, type Reply, reply, type Task, type TaskRun } from '@portico/sdk';

import type { Ctx } from './settings.ts';

/** What a task is about. */
export interface TaskDescription {
    /** The kind, without the name of the plugin. */
    readonly kind: string;
    readonly title: string;
    /** The permission that its log and its cancel need. */
    readonly access: string;
    readonly actor: Actor;
    readonly resource: string;
    /** Only one task at a time has this key. */
    readonly key?: string;
    /** Ends the lock that the work holds. */
    readonly lock?: Disposable;
}

/** Starts a task and answers 202 with it. A lock that is given ends with the work, or when the task could not be started. */
export async function acceptTask<T>(
    ctx: Ctx,
    { lock, ...description }: TaskDescription,
    work: (run: TaskRun) => Promise<T>
): Promise<Reply<Task>> {
    const end = (): void => lock?.[Symbol.dispose]();
    try {
        const task = await ctx.task(description, async (run) => {
            try {
                return await work(run);
            } finally {
                end();
            }
        });
        return reply.accepted(task);
    } catch (error) {
        end();
        throw error;
    }
}
