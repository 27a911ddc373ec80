/** Asks repositories for new commits, for projects whose git server sends no pushes. */
import type { Queue } from '../deployments/queue.ts';
import type { Project, Store } from '../deployments/store.ts';
import type { Connections } from '../git/connections.ts';
import type { Git } from '../git/git.ts';
import { parseAddress } from '../git/remote/address.ts';
import type { Ctx } from '../settings.ts';

const tickSeconds = 10;

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly queue: Queue;
    readonly git: Git;
    readonly connections: Connections;
}

/** Polls projects: those of one host one after the other, and hosts at the same time, so that a host which hangs holds up its own alone. */
export class Polling {
    readonly #parts: Parts;
    /** When each project is asked next, on the clock that never goes back. */
    readonly #due = new Map<number, number>();
    /** The commit that was deployed, or seen, last. */
    readonly #seen = new Map<number, string>();
    /** Hosts that are being asked. */
    readonly #asked = new Set<string>();

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Begins to poll. */
    async start(): Promise<void> {
        await this.#parts.ctx.schedule('poll', { everySeconds: tickSeconds }, () => this.#tick());
    }

    /** Begins with what is due, and does not wait for it: the next tick asks the other hosts. */
    async #tick(): Promise<void> {
        const due = new Map<string, Project[]>();
        for (const project of await this.#parts.store.projects()) {
            const { enabled, triggers, source } = project.config;
            const isDue = (this.#due.get(project.id) ?? 0) <= performance.now();
            if (enabled && triggers.pollSeconds > 0 && isDue) {
                const { host, port } = parseAddress(source.url);
                const name = `${host}:${port}`;
                due.set(name, [...(due.get(name) ?? []), project]);
            }
        }
        for (const [host, projects] of due) {
            if (!this.#asked.has(host)) {
                this.#asked.add(host);
                void this.#askHost(projects).finally(() => this.#asked.delete(host));
            }
        }
    }

    /** Ends with the generation, whose signal ends git. */
    async #askHost(projects: readonly Project[]): Promise<void> {
        const { ctx } = this.#parts;
        for (const project of projects) {
            if (ctx.signal.aborted) {
                return;
            }
            this.#due.set(project.id, performance.now() + project.config.triggers.pollSeconds * 1_000);
            await this.poll(project, ctx.signal).catch((error: unknown) => {
                if (!ctx.signal.aborted) {
                    ctx.log.warn('A repository could not be asked', {
                        project: project.name,
                        error: (error as Error).message
                    });
                }
            });
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
        await queue.add({
            projectId: project.id,
            trigger: 'poll',
            ref,
            commit: head,
            from: null,
            clearCache: false
        });
        // One that found no place in the queue is tried again.
        this.#seen.set(project.id, head);
    }
}
