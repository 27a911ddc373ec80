/** Carries changes of stacks out: images come, the plan is judged again, containers change, and the revision is kept. */
import type { Making } from '../../containers/making.ts';
import type { Adopted } from '../../engine/adopted.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Inventory } from '../../engine/inventory.ts';
import type { Images } from '../../images/images.ts';
import type { Planner, StackPlan } from '../planner.ts';
import type { Revision, StackStore } from '../revisions.ts';
import type { DeployInput, ServiceImage, StackSource } from '../source.ts';
import type { WorkRun } from '../work.ts';
import { Deploy } from './deploy.ts';
import { partOf } from './order.ts';
import { pullImages } from './pull.ts';

/** What a deployer works with. */
export interface DeployerOptions {
    readonly engine: Engine;
    readonly inventory: Inventory;
    readonly adopted: Adopted;
    readonly images: Images;
    readonly making: Making;
    readonly planner: Planner;
    readonly store: StackStore;
}

/** A change that was checked. */
export interface StackChange extends StackSource, DeployInput {
    readonly name: string;
    readonly owner: string | null;
    readonly because: string;
    readonly description?: string | undefined;
    readonly before: Revision | null;
    readonly pinned?: ReadonlyMap<string, ServiceImage> | undefined;
    /** The services that are deployed; none: all. */
    readonly services: readonly string[];
    /** Their names are asked for newer images. */
    readonly pull: boolean;
    readonly by: string | null;
    /** A stack that has never run is forgotten when it fails. */
    readonly isNew: boolean;
}

/** Carries out changes of stacks that were checked. */
export class Deployer {
    readonly #options: DeployerOptions;

    constructor(options: DeployerOptions) {
        this.#options = options;
    }

    /** @throws DEPLOY_FAILED 42252, REGISTRY_FAILED 50250, what {@link Planner.check} throws, and what the engine says */
    async deploy(change: StackChange, run: WorkRun): Promise<void> {
        const { engine, inventory, making, planner, store, images } = this.#options;
        const { name, before, start, waitSeconds, onFailure } = change;
        const exposed = before?.exposed ?? [];
        const first = await planner.plan({ ...change, exposed });
        planner.check(first, change.consent);
        const pinned = await pullImages(
            first.images,
            (service) => change.pull && isChosen(service, change.services),
            { images, inventory, run }
        );
        // The engine may have changed while images came: what is carried out is judged again.
        const plan = await planner.plan({ ...change, digests: undefined, pinned, exposed });
        planner.check(plan, change.consent);
        const commit = async (): Promise<void> => {
            const { compose, env, by, because, description } = change;
            await store.commit(
                name,
                { compose, env, by, because, images: imagesOf(plan), exposed: plan.findings },
                description
            );
        };
        const deploy = new Deploy({ engine, inventory, making }, partOf(plan, change.services), {
            stack: name,
            start,
            waitSeconds,
            onFailure,
            run
        });
        try {
            await deploy.run();
        } catch (error) {
            if (onFailure === 'keep' && !run.signal.aborted) {
                await commit();
            }
            throw error;
        }
        await this.#options.adopted.forget(name, new Set((await inventory.list(name)).map(({ Id }) => Id)));
        if (!isSame(change, plan, before)) {
            await commit();
        }
    }
}

/** The images that a plan was carried out with, as they are kept with the revision. */
export const imagesOf = ({ images }: StackPlan): Readonly<Record<string, ServiceImage>> =>
    Object.fromEntries(images);

/** Whether a service is one of those that are deployed. */
export const isChosen = (service: string, services: readonly string[]): boolean =>
    services.length === 0 || services.includes(service);

/** Whether a deploy made the same as before, so that there is no new revision of it. */
function isSame(
    { compose, env, description }: StackChange,
    plan: StackPlan,
    before: Revision | null
): boolean {
    return (
        before !== null &&
        description === undefined &&
        before.compose === compose &&
        before.env === env &&
        [...plan.images].every(([service, { imageId }]) => before.images[service]?.imageId === imageId)
    );
}
