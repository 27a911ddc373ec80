/**
 * Previews of pull requests. Each runs as a project of its own, which is made for it and goes with it: so it has programs, files, a cache and a
 * host that are its own, and nothing of the project that it belongs to. Code of a fork is built when exactly its commit is approved.
 */
import { KeyedMutex } from '@portico/sdk';

import type { Queue } from '../deployments/queue.ts';
import type { Project, Store } from '../deployments/store.ts';
import type { DeploymentRow, PreviewRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { ProjectChanges } from '../projects/changes.ts';
import type { ProjectConfig, ProjectInput } from '../projects/schema.ts';
import { readProject } from '../projects/shapes.ts';
import type { Ctx } from '../settings.ts';
import type { Ignored } from '../triggers/filter.ts';
import type { PullRequest } from '../triggers/pull-request.ts';
import type { Comments } from './comments.ts';
import type { Preview, PreviewState, PreviewStore } from './store.ts';

interface Parts {
    readonly ctx: Ctx;
    readonly store: Store;
    readonly queue: Queue;
    readonly changes: ProjectChanges;
    readonly previews: PreviewStore;
    readonly comments: Comments;
}

const dayMs = 24 * 60 * 60_000;
const expirySeconds = 600;
/** Pull requests that are remembered of one project; the oldest that are over are forgotten. */
const mostKept = 200;

/** Makes, approves and ends previews. */
export class Previews {
    readonly #parts: Parts;
    readonly #mutex = new KeyedMutex();

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Begins to end previews that got no new commit for too long. */
    async start(): Promise<void> {
        await this.#parts.ctx.schedule(
            'previews',
            { everySeconds: expirySeconds, missed: 'run-once' },
            async ({ at }) => this.expire(at.getTime())
        );
    }

    /** A preview with its state. */
    async view(row: PreviewRow): Promise<Preview> {
        const { store } = this.#parts;
        const newest =
            row.childId === null ? null : ((await store.page(row.childId, { limit: 1 })).rows[0] ?? null);
        return { ...row, state: stateOf(row, newest), deploymentId: newest?.id ?? null };
    }

    /** Takes what a delivery says of a pull request. @throws QUEUE_FULL 42950 */
    async take(project: Project, pull: PullRequest): Promise<PreviewRow | Ignored> {
        const { previews } = this.#parts;
        const { config } = project;
        return this.#mutex.run(String(project.id), async () => {
            const found = await previews.find({ projectId: project.id, number: pull.number });
            if (pull.change === 'closed') {
                return found === null ? 'event' : this.#close(found);
            }
            if (
                config.previews === null ||
                !config.enabled ||
                (pull.fork && config.previews.forks === 'never')
            ) {
                return 'disabled';
            }
            if (pull.target !== config.source.branch) {
                return 'branch';
            }
            const row = await this.#note(project, pull, found);
            if (!row.fork) {
                await this.#build(project, row);
            } else {
                await this.#wait(project, row);
            }
            return previews.get(row.id);
        });
    }

    /** Lets one commit of a fork be built. @throws COMMIT_CHANGED 40952 for another commit than the head */
    async approve(id: number, commit: string): Promise<PreviewRow> {
        const { store, previews } = this.#parts;
        const { projectId } = await previews.get(id);
        return this.#mutex.run(String(projectId), async () => {
            const row = await previews.get(id);
            if (row.commit !== commit || row.closed) {
                throw fail.COMMIT_CHANGED();
            }
            if (row.approvedCommit !== commit || row.childId === null) {
                await previews.change(id, { approvedCommit: commit });
                await this.#build(await store.project(projectId), { ...row, approvedCommit: commit });
            }
            return previews.get(id);
        });
    }

    /** Takes the approval back: what runs of the fork ends, and its host goes. */
    async revoke(id: number): Promise<PreviewRow> {
        const { previews } = this.#parts;
        const { projectId } = await previews.get(id);
        return this.#mutex.run(String(projectId), async () => {
            const row = await previews.get(id);
            await this.#end(row);
            await previews.change(id, { approvedCommit: null });
            return previews.get(id);
        });
    }

    /** Ends a preview; a new commit makes it again. */
    async close(id: number): Promise<PreviewRow> {
        const { projectId } = await this.#parts.previews.get(id);
        return this.#mutex.run(String(projectId), async () =>
            this.#close(await this.#parts.previews.get(id))
        );
    }

    /** Ends all previews of a project, and forgets them. */
    async removeAll(projectId: number): Promise<void> {
        await this.#mutex.run(String(projectId), async () => {
            for (const row of await this.#parts.previews.list(projectId)) {
                await this.#end(row);
                await this.#parts.previews.remove(row.id);
            }
        });
    }

    /** Ends previews whose time is over. */
    async expire(now: number): Promise<void> {
        for (const { id, closed, expiresAt } of await this.#parts.previews.list()) {
            if (!closed && expiresAt <= now) {
                await this.close(id);
            }
        }
    }

    /** Ends what a panel that was killed left: projects of previews that no preview names. */
    async sweep(): Promise<void> {
        const { store, previews, changes } = this.#parts;
        const named = new Set((await previews.list()).map(({ childId }) => childId));
        for (const { id, previewOf } of await store.everyProject()) {
            if (previewOf !== null && !named.has(id)) {
                await changes.remove(id, false);
            }
        }
    }

    /** Brings the comment on the pull request up to date when a deployment of its preview is over. */
    async told(project: Project): Promise<void> {
        const { store, previews, comments } = this.#parts;
        const row = await previews.find({ childId: project.id });
        if (row !== null && project.previewOf !== null) {
            await comments.write(await store.project(project.previewOf), await this.view(row));
        }
    }

    /** Writes down the head of a pull request. What runs of an older head of a fork ends before anything else. */
    async #note(project: Project, pull: PullRequest, found: PreviewRow | null): Promise<PreviewRow> {
        const { previews } = this.#parts;
        const settings = project.config.previews as NonNullable<ProjectConfig['previews']>;
        const { number, ref, commit, branch, fork } = pull;
        const said = {
            ...{ ref, commit, branch, fork, closed: false },
            domain: settings.domain.replaceAll('{number}', String(number)).toLowerCase(),
            expiresAt: Date.now() + settings.expireDays * dayMs
        };
        if (found === null) {
            await this.#forgetOld(project.id);
            return previews.add({
                ...{ projectId: project.id, number, ...said },
                ...{ approvedCommit: null, childId: null, commentId: null }
            });
        }
        if (found.commit !== commit && (fork || found.fork)) {
            await this.#end(found);
        }
        const approvedCommit = found.approvedCommit === commit ? commit : null;
        await previews.change(found.id, { ...said, approvedCommit });
        return previews.get(found.id);
    }

    /** Lets the pull request of a fork wait, and says so once for each head. */
    async #wait(project: Project, row: PreviewRow): Promise<void> {
        const { ctx, comments } = this.#parts;
        if (row.approvedCommit === row.commit) {
            return;
        }
        await ctx.notify({
            event: 'preview-waiting',
            severity: 'info',
            title: `${project.name}: pull request ${row.number} of a fork waits for approval`,
            data: { projectId: project.id, previewId: row.id, commit: row.commit }
        });
        await comments.write(project, await this.view(row));
    }

    /** Makes the project of a preview where there is none, and deploys the head of the pull request. */
    async #build(project: Project, row: PreviewRow): Promise<void> {
        const { store, queue, previews } = this.#parts;
        await this.#makePlace(project, row);
        const input = inputOf(project, row);
        let { childId } = row;
        if (childId === null) {
            const child = await store.addProject(input, { of: project.id, fork: row.fork });
            childId = child.id;
            await previews.change(row.id, { childId });
        } else {
            const child = await store.anyProject(childId);
            await store.configure(childId, input, child.version);
        }
        const { ref, commit, fork } = row;
        await queue.add({
            ...{ projectId: childId, trigger: 'preview', ref, commit, from: null },
            clearCache: fork
        });
    }

    /** Ends the oldest preview where there are as many as the project allows. */
    async #makePlace(project: Project, row: PreviewRow): Promise<void> {
        const most = project.config.previews?.max ?? 1;
        const running = (await this.#parts.previews.list(project.id)).filter(
            ({ id, childId }) => childId !== null && id !== row.id
        );
        for (const old of running.sort((one, other) => other.expiresAt - one.expiresAt).slice(most - 1)) {
            await this.#close(old);
        }
    }

    async #forgetOld(projectId: number): Promise<void> {
        for (const old of (await this.#parts.previews.list(projectId)).slice(mostKept - 1)) {
            await this.#end(old);
            await this.#parts.previews.remove(old.id);
        }
    }

    async #close(row: PreviewRow): Promise<PreviewRow> {
        const { store, previews, comments } = this.#parts;
        await this.#end(row);
        await previews.change(row.id, { closed: true, approvedCommit: null });
        const closed = await previews.get(row.id);
        await comments.write(await store.project(row.projectId), await this.view(closed));
        return closed;
    }

    /** Ends what runs of a preview: its host, its programs and its files. */
    async #end({ id, childId }: PreviewRow): Promise<void> {
        const { queue, changes, previews } = this.#parts;
        if (childId === null) {
            return;
        }
        await queue.drain(childId);
        await queue.hold(childId, () => changes.remove(childId, false));
        await previews.change(id, { childId: null });
    }
}

/** What the project of a preview is: that of the pull request's project, with a domain, files and a cache of its own. */
function inputOf({ name, config }: Project, { number, domain, fork }: PreviewRow): ProjectInput {
    const { source, build, run, host, health, hooks, envGroups } = config;
    const input = readProject({
        name: 'preview',
        // A submodule of a fork could be any repository that the connection opens.
        source: fork ? { ...source, submodules: false } : source,
        build: fork ? { ...build, cache: [] } : build,
        // Only of an image, the port is one inside the container; two programs cannot have the same one of the machine.
        run: {
            ...run,
            port: build.kind === 'dockerfile' ? run.port : null,
            ...(fork ? { shared: [] } : {})
        },
        host: { domain, ssl: host?.ssl ?? false, sslMode: host?.sslMode ?? 'auto' },
        ...{ health, hooks, envGroups },
        triggers: { auto: false },
        keep: 1
    });
    // A name that no admin can give.
    return { ...input, name: `${name}#${number}` };
}

function stateOf(row: PreviewRow, newest: DeploymentRow | null): PreviewState {
    if (row.closed) {
        return 'closed';
    }
    if (row.fork && row.approvedCommit !== row.commit) {
        return 'awaiting-approval';
    }
    if (newest === null || newest.finishedAt === null) {
        return newest?.state === 'live' ? 'live' : 'building';
    }
    return newest.state === 'live' ? 'live' : 'failed';
}
