/** One change of a stack at a time: as a task that people follow, or as a part of what another plugin does. */
import { type Actor, errors, isFailure, type TaskRun, type TaskView } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { StackView } from './view.ts';

/** What work tells while it runs. */
export type WorkRun = Pick<TaskRun, 'progress' | 'log' | 'signal'>;

/** A change of a stack that was checked and has not begun. */
export interface StackWork {
    readonly stack: string;
    readonly kind: string;
    readonly title: string;
    /** The permission by which the task can be read and cancelled. */
    readonly access: 'control' | 'write';
    /** Gives the stack as it is afterwards; null when it is gone. */
    run(run: WorkRun): Promise<StackView | null>;
    /** Takes back what was stored for it, when it was not let begin. */
    refused?(): Promise<void>;
}

/** Lets work on a stack begin when no other is under way. */
export class StackRunner {
    readonly #ctx: Ctx;
    /** Stacks that are being changed, and who waits for the end. */
    readonly #busy = new Map<string, Promise<unknown>>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Begins a task. @throws IN_USE 40901 while the stack is being changed */
    async begin(work: StackWork, actor: Actor | null): Promise<TaskView> {
        const { stack, kind, title, access } = work;
        try {
            this.#mustBeFree(stack);
            return await this.#ctx.task(
                {
                    kind,
                    title,
                    access,
                    resource: stack,
                    key: `stack:${stack}`,
                    ...(actor === null ? {} : { actor })
                },
                (run) => this.#hold(stack, () => work.run(run))
            );
        } catch (error) {
            if (isFailure(error) && error.code === 40901) {
                await work.refused?.();
            }
            throw error;
        }
    }

    /**
     * Does the work within the call of another plugin. It is no task: that plugin's own task waits for it, and tasks that wait for tasks could
     * fill the panel's queue.
     *
     * @throws IN_USE 40901 while the stack is being changed
     */
    async perform(work: StackWork, run: WorkRun): Promise<StackView | null> {
        try {
            this.#mustBeFree(work.stack);
        } catch (error) {
            await work.refused?.();
            throw error;
        }
        return this.#hold(work.stack, () => work.run(run));
    }

    /** Resolves when the change that is under way has ended; never rejects. */
    async idle(stack: string): Promise<void> {
        await this.#busy.get(stack)?.catch(() => undefined);
    }

    /** @throws IN_USE 40901 */
    #mustBeFree(stack: string): void {
        if (this.#busy.has(stack)) {
            throw errors.inUse(
                stack,
                'Another change of this stack is under way: wait for its end, or cancel it'
            );
        }
    }

    async #hold<T>(stack: string, work: () => Promise<T>): Promise<T> {
        this.#mustBeFree(stack);
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#busy.set(stack, promise);
        try {
            return await work();
        } finally {
            this.#busy.delete(stack);
            resolve();
        }
    }
}
