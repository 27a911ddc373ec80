/** One action on many tasks: on all of them, or on none. */
import { errors } from '@portico/sdk';

import type { TaskRow } from '../entities.ts';
import { checkValues, parametersOfRow } from '../parameters/values.ts';
import { findTasks } from '../queries.ts';
import type { WantedRun } from '../runs/admission.ts';
import { tagsOf } from './draft.ts';
import { forgetSteps } from './steps.ts';
import type { TasksOptions } from './tasks.ts';

/** What is done to each task. */
export type BatchAction = 'enable' | 'disable' | 'delete' | 'run' | 'tag' | 'untag';

const mostTags = 20;

/** Does one action to many tasks, in one write. */
export class Batches {
    readonly #options: TasksOptions;

    constructor(options: TasksOptions) {
        this.#options = options;
    }

    /**
     * @param tags - of `tag` and `untag`
     * @throws NOT_FOUND 40400 for an id without a task; VALIDATION_FAILED 40001 when a task would have more than 20 tags
     */
    async apply(
        ids: readonly number[],
        action: BatchAction,
        { tags, askedBy }: { readonly tags: readonly string[]; readonly askedBy: string | null }
    ): Promise<void> {
        const { ctx, machine, mutex, runs, scheduler } = this.#options;
        const boot = await machine.boot();
        await mutex.run(async () => {
            const started = await ctx.db.write(async (em) => {
                const tasks = await findTasks(em, { id: { $in: [...ids] } });
                if (tasks.length < ids.length) {
                    const found = new Set(tasks.map(({ id }) => id));
                    throw errors.notFound(`There is no task ${ids.find((id) => !found.has(id))}`);
                }
                if (action === 'delete') {
                    await forgetSteps(em, ids);
                    tasks.forEach((task) => em.remove(task));
                    await em.flush();
                    return [];
                }
                const wanted: WantedRun[] = [];
                for (const task of tasks) {
                    if (action === 'run') {
                        checkValues({}, task);
                        const given = { askedBy };
                        const request = { trigger: 'manual', dueAt: null, attempt: 1, given } as const;
                        wanted.push({ task, request });
                    } else if (this.#change(task, action, tags, boot)) {
                        Object.assign(task, { version: task.version + 1, updatedAt: machine.now() });
                    }
                }
                return runs.admit(em, wanted);
            });
            started.forEach((each) => runs.launch(each));
        });
        if (action === 'delete') {
            await Promise.all(ids.map((id) => runs.stopAll(id)));
        } else if (action === 'disable') {
            ids.forEach((id) => runs.cancelRetries(id));
        }
        scheduler.checkSoon();
    }

    /** Whether anything changed. */
    #change(
        task: TaskRow,
        action: Exclude<BatchAction, 'delete' | 'run'>,
        tags: readonly string[],
        boot: string | null
    ): boolean {
        if (action === 'tag' || action === 'untag') {
            const before = tagsOf(task);
            const after =
                action === 'tag'
                    ? [...new Set([...before, ...tags])]
                    : before.filter((each) => !tags.includes(each));
            if (after.length > mostTags) {
                throw errors.invalid([
                    { path: 'tags', message: `The task ${task.name} would have more than ${mostTags} tags` }
                ]);
            }
            task.tags = JSON.stringify(after);
            return after.length !== before.length;
        }
        const enabled = action === 'enable';
        if (task.enabled === enabled) {
            return false;
        }
        if (
            enabled &&
            parametersOfRow(task).some(({ required, default: usual }) => required && usual === null)
        ) {
            throw errors.invalid([
                {
                    path: 'ids',
                    message: `The task ${task.name} requires parameters that have no default: its schedule says none`
                }
            ]);
        }
        const now = this.#options.machine.now();
        Object.assign(task, { enabled, awaitedSince: now, overdueSince: null });
        this.#options.scheduler.plan(task, boot);
        if (!enabled) {
            task.retryAt = null;
        }
        return true;
    }
}
