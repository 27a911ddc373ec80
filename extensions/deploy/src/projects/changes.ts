/** Changes of projects that reach beyond the database. */
import type { ReleasePlan } from '../build/plan.ts';
import { imagesOf } from '../containers/plans.ts';
import type { Logs } from '../deployments/log.ts';
import type { Project, Store } from '../deployments/store.ts';
import type { Folders } from '../releases/folders.ts';
import type { Hosts } from '../releases/hosts.ts';
import type { Processes } from '../releases/processes.ts';
import type { Releases } from '../releases/releases.ts';

interface Parts {
    readonly store: Store;
    readonly logs: Logs;
    readonly folders: Folders;
    readonly hosts: Hosts;
    readonly processes: Processes;
    readonly releases: Releases;
}

/** Removes, stops and starts projects, and gives them other domains. */
export class ProjectChanges {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Removes a project with all that was made for it. */
    async remove(id: number, keepFiles: boolean): Promise<void> {
        const { store, logs, folders, hosts, releases } = this.#parts;
        const project = await store.anyProject(id);
        await hosts.remove(project);
        for (const deployment of await store.all(id)) {
            await releases.forget(deployment, keepFiles);
            await logs.remove(deployment.id);
        }
        const images = (await store.all(id)).flatMap((each) => imagesOf(each));
        const top = `projects/${id}`;
        for (const name of keepFiles
            ? ['builds', 'releases', 'artifacts', 'git', 'cache', 'current']
            : ['']) {
            await folders.remove(name === '' ? top : `${top}/${name}`);
        }
        await store.removeProject(id);
        await releases.removeImages(images);
    }

    /** Gives the host the domains that a project has now; when the engine refuses them, the project is as it was. */
    async rename(project: Project, before: Project): Promise<void> {
        const { store, hosts, releases } = this.#parts;
        try {
            const found = await hosts.find(before);
            if (found !== null) {
                await hosts.rename({ ...project, hostId: found.id });
            } else if (project.live !== null) {
                const deployment = await store.deployment(project.live);
                const plan = JSON.parse(deployment.plan ?? 'null') as ReleasePlan | null;
                if (plan !== null) {
                    await store.changeProject(project.id, {
                        hostId: await releases.switch({ project, deployment, plan })
                    });
                }
            }
        } catch (error) {
            await store.configure(before.id, { name: before.name, ...before.config }, project.version);
            throw error;
        }
        if (project.config.host === null) {
            await store.changeProject(project.id, { hostId: null });
        }
    }

    /** Ends or starts the programs of a project; while it is stopped, its host is off. */
    async change(project: Project, change: 'start' | 'stop' | 'restart'): Promise<void> {
        const { store, hosts, processes } = this.#parts;
        if (project.live === null) {
            return;
        }
        const deployment = await store.deployment(project.live);
        if (change === 'stop') {
            await hosts.enable(project, false);
        }
        await processes.change(deployment, change);
        if (change !== 'stop') {
            await hosts.enable(project, true);
        }
        await store.changeProject(project.id, { stopped: change === 'stop' });
    }
}
