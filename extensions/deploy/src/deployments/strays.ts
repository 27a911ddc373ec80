/** What is left of releases that serve no longer: what could not be ended in its time, as the engine of containers was gone, is ended later. */
import { planOfRow } from '../containers/plans.ts';
import type { DeploymentRow } from '../entities.ts';
import type { Variables } from '../env/variables.ts';
import { servedCandidate } from '../releases/environment.ts';
import type { Releases } from '../releases/releases.ts';
import type { Ctx } from '../settings.ts';
import type { Retention } from './retention.ts';
import type { DeploymentChange, Store } from './store.ts';

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly variables: Variables;
    readonly releases: Releases;
    readonly retention: Retention;
}

/** What says whether a deployment of a project is under way, and keeps others away meanwhile. */
interface ProjectQueue {
    isBusy(projectId: number): boolean;
    hold<T>(projectId: number, work: () => Promise<T>): Promise<T>;
}

const everySeconds = 60;

/** Ends deployments that failed, and tries again where that could not be done. */
export class Strays {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Begins to try again, for projects that nothing else is done with. */
    async start(queue: ProjectQueue): Promise<void> {
        await this.#parts.ctx.schedule('strays', { everySeconds }, async () => {
            for (const id of await this.#projects()) {
                if (!queue.isBusy(id)) {
                    await queue.hold(id, () => this.end(id)).catch(this.#later);
                }
            }
        });
    }

    /** Tries again for all projects; `start` was not called yet. */
    async endAll(): Promise<void> {
        for (const id of await this.#projects()) {
            await this.end(id).catch(this.#later);
        }
    }

    /** Ends what is left of a project's releases. */
    async end(projectId: number): Promise<void> {
        const { store, releases, retention } = this.#parts;
        for (const deployment of await store.unended(projectId)) {
            if (deployment.state === 'retired') {
                const { live } = await store.anyProject(projectId);
                await releases.end(
                    deployment,
                    live === null ? null : planOfRow(await store.deployment(live))
                );
            } else {
                await this.#undo(deployment);
            }
            await store.change(deployment.id, { port: null });
            if (!deployment.kept) {
                await retention.discard(deployment);
            }
        }
    }

    /**
     * Takes back what a deployment began that never served, and writes down how it ended. Resolves with what could not be removed now and why; null
     * when nothing is left.
     */
    async fail(deployment: DeploymentRow, ended: DeploymentChange): Promise<string | null> {
        const { store, retention } = this.#parts;
        const left = await this.#tell(() => this.#undo(deployment));
        await store.change(deployment.id, {
            ...ended,
            kept: false,
            ...(left === null ? { port: null } : {})
        });
        return left ?? this.#tell(() => retention.discard(deployment));
    }

    async #undo(deployment: DeploymentRow): Promise<void> {
        const { store, variables, releases } = this.#parts;
        const project = await store.anyProject(deployment.projectId);
        await releases.undo(deployment, await servedCandidate({ store, variables }, project));
    }

    async #tell(work: () => Promise<void>): Promise<string | null> {
        try {
            await work();
            return null;
        } catch (error) {
            this.#later(error);
            return (error as Error).message;
        }
    }

    readonly #later = (_error: unknown): void => this.#parts.ctx.signal.throwIfAborted();

    async #projects(): Promise<ReadonlySet<number>> {
        return new Set((await this.#parts.store.unended()).map(({ projectId }) => projectId));
    }
}
