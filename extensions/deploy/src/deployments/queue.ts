/** The order of deployments: one of a project at a time, some of different projects at once. */
import { errors } from '@portico/sdk';

import type { DeploymentRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import type { Logs } from './log.ts';
import type { Pipeline } from './pipeline.ts';
import { activeStates, type NewDeployment, type Store } from './store.ts';

/** A deployment under way. */
interface Running {
    readonly id: number;
    readonly number: number;
    readonly controller: AbortController;
    switching: boolean;
    readonly ended: Promise<void>;
}

/** Lets deployments wait and begin. */
export class Queue {
    readonly #ctx: Ctx;
    readonly #store: Store;
    readonly #logs: Logs;
    readonly #pipeline: Pipeline;
    readonly #running = new Map<number, Running>();
    /** Projects whose deployments wait for a change of the project to end. */
    readonly #held = new Set<number>();
    #starting: Promise<void> = Promise.resolve();

    constructor(ctx: Ctx, store: Store, logs: Logs, pipeline: Pipeline) {
        this.#ctx = ctx;
        this.#store = store;
        this.#logs = logs;
        this.#pipeline = pipeline;
    }

    /** Adds a deployment; it begins when its turn comes. @throws QUEUE_FULL 42950 */
    async add(wanted: NewDeployment): Promise<DeploymentRow> {
        const most = this.#ctx.settings.queue;
        const made = await this.#store.addDeployment(wanted, most);
        if (made === null) {
            throw fail.QUEUE_FULL({ waiting: most });
        }
        this.#logs.wake();
        this.pump();
        return made.added;
    }

    /** Lets waiting deployments begin. */
    pump(): void {
        this.#starting = this.#starting
            .then(() => this.#startWaiting())
            .catch((error: unknown) => {
                if (!this.#ctx.signal.aborted) {
                    this.#ctx.log.error('No deployment could begin', { error: String(error) });
                }
            });
    }

    /** Whether a deployment of a project is under way. */
    isBusy(projectId: number): boolean {
        return this.#running.has(projectId);
    }

    /**
     * Cancels a deployment, and resolves when nothing of it runs any more.
     *
     * @throws DEPLOYING 40950 once its switch has begun; IN_USE 40901 when it is over
     */
    async cancel(id: number): Promise<DeploymentRow> {
        const deployment = await this.#store.deployment(id);
        const running = this.#running.get(deployment.projectId);
        if (running?.id === id) {
            if (running.switching) {
                throw fail.DEPLOYING({ number: running.number });
            }
            running.controller.abort(new Error('Cancelled'));
            await running.ended;
        } else if (deployment.state === 'queued') {
            await this.#store.change(id, { state: 'cancelled', reason: 'CANCELLED', finishedAt: Date.now() });
            this.#logs.wake();
        } else if (activeStates.includes(deployment.state)) {
            throw fail.DEPLOYING({ number: deployment.number });
        } else {
            throw errors.inUse(
                deployment.number,
                `Deployment ${deployment.number} is over: it is ${deployment.state}`
            );
        }
        return this.#store.deployment(id);
    }

    /** Does work on a project while no deployment of it is under way, and none begins. @throws DEPLOYING 40950; IN_USE 40901 for a second change */
    async hold<T>(projectId: number, work: () => Promise<T>): Promise<T> {
        const running = this.#running.get(projectId);
        if (running !== undefined || this.#held.has(projectId)) {
            throw running === undefined
                ? errors.inUse(projectId, 'Another change of this project is under way: wait for its end')
                : fail.DEPLOYING(
                      { number: running.number },
                      { message: `Deployment ${running.number} is under way: wait for its end, or cancel it` }
                  );
        }
        this.#held.add(projectId);
        try {
            return await work();
        } finally {
            this.#held.delete(projectId);
            this.pump();
        }
    }

    /** Cancels what is under way of a project, or waits for its switch, and lets nothing of it begin. */
    async drain(projectId: number): Promise<void> {
        for (const { id, projectId: other } of await this.#store.inStates(['queued'])) {
            if (other === projectId) {
                await this.#store.change(id, {
                    state: 'cancelled',
                    reason: 'CANCELLED',
                    finishedAt: Date.now()
                });
            }
        }
        const running = this.#running.get(projectId);
        if (running !== undefined) {
            if (!running.switching) {
                running.controller.abort(new Error('Cancelled'));
            }
            await running.ended;
        }
    }

    async #startWaiting(): Promise<void> {
        for (const deployment of await this.#store.inStates(['queued'])) {
            if (this.#running.size >= this.#ctx.settings.concurrentBuilds) {
                return;
            }
            if (!this.#running.has(deployment.projectId) && !this.#held.has(deployment.projectId)) {
                await this.#start(deployment);
            }
        }
    }

    async #start({ id, number, projectId }: DeploymentRow): Promise<void> {
        const project = await this.#store.anyProject(projectId);
        const controller = new AbortController();
        const { promise: ended, resolve: end } = Promise.withResolvers<void>();
        const running: Running = { id, number, controller, switching: false, ended };
        this.#running.set(projectId, running);
        const over = (): void => {
            this.#running.delete(projectId);
            end();
            this.#logs.wake();
            if (!this.#ctx.signal.aborted) {
                this.pump();
            }
        };
        try {
            await this.#ctx.task(
                {
                    kind: 'deploy',
                    title: `Deployment ${number} of ${project.name}`,
                    access: 'run',
                    resource: project.name
                },
                async (task) => {
                    try {
                        await this.#pipeline.run(id, {
                            taskId: task.id,
                            signal: AbortSignal.any([task.signal, controller.signal]),
                            told: (fraction, text) => task.progress(fraction, text),
                            beginSwitch: () => {
                                controller.signal.throwIfAborted();
                                task.signal.throwIfAborted();
                                running.switching = true;
                            }
                        });
                        return { deploymentId: id };
                    } finally {
                        over();
                    }
                }
            );
        } catch (error) {
            over();
            throw error;
        }
    }
}
