/** Answers of routes whose work is a task. */
import { type Actor, joi, type Reply, reply, type Task, type TaskRun } from '@portico/sdk';

import type { Ctx } from './settings.ts';

/** The schema of a task as the core answers it. */
export const taskSchema = joi
    .object({
        id: joi.number().integer().required().label('Number'),
        kind: joi.string().required().label('Kind'),
        state: joi
            .valid('queued', 'running', 'succeeded', 'failed', 'cancelled')
            .required()
            .label('State')
            .meta({
                ui: {
                    tones: {
                        queued: 'busy',
                        running: 'busy',
                        succeeded: 'good',
                        failed: 'bad',
                        cancelled: 'warning'
                    }
                }
            }),
        progress: joi
            .number()
            .min(0)
            .max(1)
            .allow(null)
            .required()
            .label('Progress')
            .description('From 0 to 1'),
        startedAt: joi.string().isoDate().allow(null).required().label('Started'),
        finishedAt: joi.string().isoDate().allow(null).required().label('Ended'),
        result: joi.any().label('Result'),
        error: joi.any().label('Error')
    })
    .unknown(true);

/** What a task is about. */
export interface TaskDescription {
    /** The kind, without the name of the plugin. */
    readonly kind: string;
    readonly title: string;
    /** The permission that its log and its cancel need. */
    readonly access: string;
    readonly actor: Actor;
    readonly resource: string;
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
