/** Changes of stacks: each is checked at once, and comes back as work that can begin. */
import { type Actor, errors, requireVersion } from '@portico/sdk';

import type { Adopted } from '../engine/adopted.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { StackRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { StackControl } from './control.ts';
import { type Deployer, imagesOf, isChosen, type StackChange } from './deploying/deployer.ts';
import type { Planner } from './planner.ts';
import { exposedBy, type StackStore } from './revisions.ts';
import type { AutoUpdate, DeployInput, StackSource } from './source.ts';
import type { Stacks } from './stacks.ts';
import type { StackWork } from './work.ts';

/** What the changes need. */
export interface StackChangesOptions {
    readonly inventory: Inventory;
    readonly adopted: Adopted;
    readonly planner: Planner;
    readonly store: StackStore;
    readonly stacks: Stacks;
    readonly deployer: Deployer;
    readonly control: StackControl;
}

/** Who asks: a person, or another plugin for one. */
export interface Asker {
    readonly actor: Actor | null;
    /** The plugin; null: a person. */
    readonly plugin: string | null;
}

/** What is done with a stack that exists. */
export const stackActions = ['up', 'down', 'start', 'stop', 'restart', 'redeploy'] as const;
/** One of {@link stackActions}. */
export type StackAction = (typeof stackActions)[number];

const usualDeploy = { start: true, waitSeconds: 60, onFailure: 'rollback', consent: null } as const;

/** Makes, changes and removes stacks. */
export class StackChanges {
    readonly #options: StackChangesOptions;

    constructor(options: StackChangesOptions) {
        this.#options = options;
    }

    /** The first deploy of a stack. @throws CONFLICT 40900, IN_USE 40901 and what {@link Planner.check} throws */
    async create(
        input: StackSource &
            DeployInput & {
                readonly name: string;
                readonly description: string;
                readonly autoUpdate?: AutoUpdate | undefined;
            },
        { actor, plugin }: Asker
    ): Promise<StackWork> {
        const { planner, store, inventory } = this.#options;
        const { name, description, compose, env, consent, autoUpdate } = input;
        if ((await store.find(name)) !== null) {
            throw errors.conflict(
                'name',
                `There is a stack ${name} already: change that one, or take another name`
            );
        }
        if ((await inventory.list(name)).length > 0) {
            throw errors.inUse(
                name,
                'There are containers of a stack of this name that is not managed here: adopt it, or take another name'
            );
        }
        const plan = await planner.plan({ ...input, owner: plugin, exposed: [] });
        planner.check(plan, consent);
        const by = actor?.username ?? plugin;
        await store.create(
            { name, description, owner: plugin, autoUpdate },
            { compose, env, by, because: 'created', images: imagesOf(plan), exposed: plan.findings }
        );
        return this.#deploy({
            ...input,
            owner: plugin,
            because: 'created',
            before: null,
            services: [],
            pull: false,
            by,
            isNew: true
        });
    }

    /** A deploy with another source. @throws STACK_OWNED 40950, VERSION_STALE 41200 and what {@link Planner.check} throws */
    async update(
        name: string,
        input: Partial<StackSource> &
            DeployInput & {
                readonly description?: string | undefined;
                readonly autoUpdate?: AutoUpdate | undefined;
            },
        { actor, plugin, ifMatch }: Asker & { readonly ifMatch: string | null }
    ): Promise<StackWork> {
        const { planner, store } = this.#options;
        const row = await this.mine(name, plugin);
        requireVersion(row, ifMatch);
        const before = await store.revision(name, row.revision);
        const source = { compose: input.compose ?? before.compose, env: input.env ?? before.env };
        const exposed = exposedBy(row, before);
        const { owner } = row;
        const { digests } = input;
        // What is not about the source takes no newer images along.
        const isSource = [input.compose, input.env, digests].some((given) => given !== undefined);
        const pinned = isSource ? undefined : new Map(Object.entries(before.images));
        const plan = await planner.plan({ name, owner, ...source, exposed, digests, pinned });
        planner.check(plan, input.consent);
        const work = this.#deploy({
            ...input,
            ...source,
            name,
            owner,
            because: 'changed',
            before: row.revision === 0 ? null : before,
            pinned,
            services: [],
            pull: false,
            by: actor?.username ?? plugin,
            isNew: false
        });
        return input.autoUpdate === undefined ? work : this.#withAutoUpdate(work, input.autoUpdate);
    }

    /** Stores how a stack updates by itself once its deploy has succeeded. */
    #withAutoUpdate(work: StackWork, { mode, everyHours }: AutoUpdate): StackWork {
        const { store, stacks } = this.#options;
        return {
            ...work,
            async run(run) {
                await work.run(run);
                await store.setAutoUpdate(work.stack, { autoUpdate: mode, autoHours: everyHours });
                return stacks.get(work.stack);
            }
        };
    }

    /**
     * A deploy of a revision that is kept: compose text, variables and images together. A plugin that takes its last change back needs no consent
     * to what ran before that change: it was given then, and a person may not be there to give it again.
     *
     * @throws NOT_FOUND 40400, STACK_OWNED 40950
     */
    async rollback(
        name: string,
        { revision, ...input }: DeployInput & { readonly revision: number },
        { actor, plugin }: Asker
    ): Promise<StackWork> {
        const { planner, store } = this.#options;
        const row = await this.mine(name, plugin);
        const last = await store.revision(name, row.revision);
        const { compose, env, images, exposed } = await store.revision(name, revision);
        const takesBack = plugin !== null && revision === row.revision - 1;
        const before = takesBack ? { ...last, exposed: [...last.exposed, ...exposed] } : last;
        const pinned = new Map(Object.entries(images));
        const { owner } = row;
        const plan = await planner.plan({
            name,
            owner,
            compose,
            env,
            exposed: exposedBy(row, before),
            pinned
        });
        planner.check(plan, input.consent);
        return this.#deploy({
            ...input,
            name,
            owner,
            compose,
            env,
            because: `rollback to ${revision}`,
            before,
            pinned,
            services: [],
            pull: false,
            by: actor?.username ?? plugin,
            isNew: false
        });
    }

    /**
     * An action on some services; none named: on all. `up` and `redeploy` make what runs be what the revision says; with `pull` they take newer
     * images of the same tags.
     *
     * @throws VALIDATION_FAILED 40001 for a service that the stack has not; STACK_OWNED 40950 for newer images of a stack that another plugin made
     */
    async act(
        name: string,
        action: StackAction,
        { services, pull }: { readonly services: readonly string[]; readonly pull: boolean },
        { actor, plugin }: Asker
    ): Promise<StackWork> {
        const { store, control, stacks } = this.#options;
        if (action === 'up' || action === 'redeploy') {
            const found = pull ? await this.mine(name, plugin) : await store.get(name);
            await this.#mustHave(name, services);
            return this.redeploy(found, { because: action, services, pull, by: actor?.username ?? plugin });
        }
        await this.#mustHave(name, services);
        return {
            stack: name,
            kind: action,
            title: `${action} ${name}`,
            access: 'control',
            run: async (run) => {
                await control.act(name, action, services, run);
                return stacks.get(name).catch(() => null);
            }
        };
    }

    /** @throws NOT_FOUND 40400, VALIDATION_FAILED 40001 */
    async #mustHave(name: string, services: readonly string[]): Promise<void> {
        const stack = await this.#options.stacks.get(name);
        const known = stack.services.map((each) => each.name);
        const at = services.findIndex((service) => !known.includes(service));
        if (at >= 0) {
            const message = `The stack has no service ${services[at]}; it has ${known.join(', ')}`;
            throw errors.invalid([{ path: `services.${at}`, message }]);
        }
    }

    /** What runs becomes what the revision says, or with `pull` newer images of the same tags. */
    async redeploy(
        { name, owner, revision }: StackRow,
        {
            because,
            services = [],
            pull,
            by
        }: {
            readonly because: string;
            readonly services?: readonly string[];
            readonly pull: boolean;
            readonly by: string | null;
        }
    ): Promise<StackWork> {
        const before = await this.#options.store.revision(name, revision);
        const { compose, env, images } = before;
        const pinned = new Map(
            Object.entries(images).filter(([service]) => !pull || !isChosen(service, services))
        );
        return {
            ...this.#deploy({
                ...usualDeploy,
                name,
                owner,
                compose,
                env,
                because,
                before,
                pinned,
                services,
                pull,
                by,
                isNew: false
            }),
            access: 'control'
        };
    }

    /** A removal of a stack with its containers and networks, and with `volumes` its volumes. @throws STACK_OWNED 40950 */
    async remove(name: string, volumes: boolean, { plugin }: Asker): Promise<StackWork> {
        const { adopted, store, control } = this.#options;
        await this.mine(name, plugin);
        return {
            stack: name,
            kind: 'remove',
            title: `Remove the stack ${name}`,
            access: 'write',
            async run(run) {
                await control.act(name, 'down', [], run);
                if (volumes) {
                    await control.removeLabelled(name, 'volumes');
                }
                await adopted.forget(name);
                await store.remove(name);
                return null;
            }
        };
    }

    /** @throws NOT_FOUND 40400, STACK_OWNED 40950 for what another made */
    async mine(name: string, plugin: string | null): Promise<StackRow> {
        const row = await this.#options.store.get(name);
        if (row.owner !== plugin) {
            throw fail.STACK_OWNED({ owner: row.owner ?? 'none' });
        }
        return row;
    }

    #deploy(change: StackChange): StackWork {
        const { store, stacks, deployer } = this.#options;
        const { name, isNew, onFailure } = change;
        return {
            stack: name,
            kind: 'deploy',
            title: `Deploy ${name}`,
            access: 'write',
            async run(run) {
                try {
                    await deployer.deploy(change, run);
                } catch (error) {
                    if (isNew && onFailure === 'rollback') {
                        await store.remove(name);
                    }
                    throw error;
                }
                return stacks.get(name);
            },
            ...(isNew ? { refused: () => store.remove(name) } : {})
        };
    }
}
