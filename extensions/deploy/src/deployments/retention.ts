/** Which releases are kept. */
import type { ReleasePlan } from '../build/plan.ts';
import { imagesOf } from '../containers/plans.ts';
import type { DeploymentRow } from '../entities.ts';
import type { Releases } from '../releases/releases.ts';
import type { Project, Store } from './store.ts';

/** Removes releases that are kept no longer. */
export class Retention {
    readonly #store: Store;
    readonly #releases: Releases;

    constructor(store: Store, releases: Releases) {
        this.#store = store;
        this.#releases = releases;
    }

    /** Keeps the newest releases of a project, and the one that serves. */
    async prune({ id, config }: Project): Promise<void> {
        const { live } = await this.#store.anyProject(id);
        const kept = await this.#store.kept(id);
        const releases = [...new Set(kept.map(releaseOf))];
        const served = kept.find((each) => each.id === live);
        const stay = new Set(releases.slice(0, config.keep));
        for (const deployment of kept) {
            if (
                !stay.has(releaseOf(deployment)) &&
                releaseOf(deployment) !== (served === undefined ? null : releaseOf(served))
            ) {
                await this.forget(deployment);
            }
        }
    }

    /** Keeps the release of a deployment no longer. */
    async forget(deployment: DeploymentRow): Promise<void> {
        await this.#store.change(deployment.id, { kept: false });
        await this.discard(deployment);
    }

    /** Removes the files of a deployment's release, unless another deployment that is kept has the same one. */
    async discard(deployment: DeploymentRow): Promise<void> {
        const release = releaseOf(deployment);
        const others = await this.#store.kept(deployment.projectId);
        if (!others.some((each) => each.id !== deployment.id && releaseOf(each) === release)) {
            await this.#releases.discard(deployment.projectId, release, imagesOf(deployment));
        }
    }
}

/** The number of the release that a deployment has. */
function releaseOf({ number, plan }: DeploymentRow): number {
    return plan === null ? number : (JSON.parse(plan) as ReleasePlan).release;
}
