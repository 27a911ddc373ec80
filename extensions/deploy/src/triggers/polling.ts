/** Asks repositories for new commits, for projects whose git server sends no pushes. */
import type { Queue } from '../deployments/queue.ts';
import type { Project, Store } from '../deployments/store.ts';
import type { Connections } from '../git/connections.ts';
import type { Git } from '../git/git.ts';
import type { Ctx } from '../settings.ts';

const tickSeconds = 10;

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly queue: Queue;
    readonly git: Git;
    readonly connections: Connections;
}

/** Polls projects, one after the other. */
export class Polling {
    readonly #parts: Parts;
    /** When each project is asked next, on the clock that never goes back. */
    readonly #due = new Map<number, number>();
    /** The commit that was deployed, or seen, last. */
    readonly #seen = new Map<number, string>();

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Begins to poll. */
    async start(): Promise<void> {
        await this.#parts.ctx.schedule('poll', { everySeconds: tickSeconds }, ({ signal }) =>
            this.#tick(signal)
        );
    }

    async #tick(signal: AbortSignal): Promise<void> {
        const { ctx, store } = this.#parts;
        for (const project of await store.projects()) {
            const { enabled, triggers } = project.config;
            if (
                !enabled ||
                triggers.pollSeconds === 0 ||
                (this.#due.get(project.id) ?? 0) > performance.now()
            ) {
                continue;
            }
            this.#due.set(project.id, performance.now() + triggers.pollSeconds * 1_000);
            await this.poll(project, signal).catch((error: unknown) => {
                ctx.log.warn('A repository could not be asked', {
                    project: project.name,
                    error: (error as Error).message
                });
            });
            signal.throwIfAborted();
        }
    }

    /** Deploys the head of a project's branch when it is another commit than that of the newest deployment. */
    async poll(project: Project, signal: AbortSignal): Promise<void> {
        const { store, queue, git, connections } = this.#parts;
        const ref = `refs/heads/${project.config.source.branch}`;
        const head = await git.head(await connections.remote(project.config.source), ref, signal);
        const last =
            this.#seen.get(project.id) ??
            (await store.page(project.id, { limit: 1 })).rows[0]?.commit ??
            null;
        if (head === null || head === last) {
            return;
        }
        this.#seen.set(project.id, head);
        await queue.add({
            projectId: project.id,
            trigger: 'poll',
            ref,
            commit: head,
            from: null,
            clearCache: false
        });
    }
}
