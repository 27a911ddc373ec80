/** Stacks: planned, deployed, controlled, brought back, and removed. */
import { type Actor, errors, isFailure, type TaskRun, type TaskView } from '@portico/sdk';

import type { Making } from '../containers/making.ts';
import type { ListedContainer } from '../engine/documents.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { StackRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Images } from '../images/images.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import type { StackControl } from './control.ts';
import { Deploy, imagesOf } from './deploy.ts';
import type { Planner, ServiceImage, StackPlan, StackSource } from './planner.ts';
import { pullImages } from './pull.ts';
import type { Revision, StackStore } from './revisions.ts';
import { type StackView, stackView } from './view.ts';

/** What the stacks need. */
export interface StacksOptions {
    readonly ctx: Ctx;
    readonly engine: Engine;
    readonly inventory: Inventory;
    readonly images: Images;
    readonly making: Making;
    readonly planner: Planner;
    readonly store: StackStore;
    readonly control: StackControl;
}

/** How a deploy is done. */
export interface DeployInput {
    readonly start: boolean;
    readonly waitSeconds: number;
    readonly onFailure: 'rollback' | 'keep';
    readonly consent: string | null;
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

interface Change extends StackSource, DeployInput {
    readonly name: string;
    readonly owner: string | null;
    readonly because: string;
    readonly description?: string | undefined;
    readonly before: Revision | null;
    readonly pinned?: ReadonlyMap<string, ServiceImage> | undefined;
    readonly pull: boolean;
    readonly by: string | null;
    /** A stack that has never run is forgotten when it fails. */
    readonly isNew: boolean;
}

/** The stacks. */
export class Stacks {
    readonly #options: StacksOptions;

    constructor(options: StacksOptions) {
        this.#options = options;
    }

    /** Managed stacks, and those that only labels tell of. */
    async list(): Promise<readonly StackView[]> {
        const { store, inventory } = this.#options;
        const [rows, listed] = await Promise.all([store.list(), inventory.list()]);
        const names = new Set([
            ...rows.map(({ name }) => name),
            ...listed.flatMap(({ Labels: labels }) => labels?.[labelOf.project] ?? [])
        ]);
        return Promise.all(
            [...names].map(async (name) => {
                const row = rows.find((each) => each.name === name) ?? null;
                return this.#view(name, row, listed);
            })
        );
    }

    /** @throws NOT_FOUND 40400 */
    async get(name: string): Promise<StackView> {
        const { store, inventory } = this.#options;
        const [row, listed] = await Promise.all([store.find(name), inventory.list()]);
        if (row === null && !listed.some(({ Labels: labels }) => labels?.[labelOf.project] === name)) {
            throw errors.notFound('There is no stack of that name');
        }
        return this.#view(name, row, listed);
    }

    async #view(name: string, row: StackRow | null, listed: readonly ListedContainer[]): Promise<StackView> {
        const { store } = this.#options;
        const mine = listed.filter(({ Labels: labels }) => labels?.[labelOf.project] === name);
        const revision =
            row === null
                ? null
                : ((await store.revisions(name)).find(
                      (each) => each.revision === Math.max(1, row.revision)
                  ) ?? null);
        return stackView(name, row, revision, mine);
    }

    /** What a compose file would come to; changes nothing. */
    async plan(input: StackSource & { readonly name: string }): Promise<StackPlan> {
        const { planner, store } = this.#options;
        const row = await store.find(input.name);
        const before = row === null ? null : await store.revision(input.name, row.revision);
        return planner.plan({ ...input, owner: row?.owner ?? null, exposed: exposedBy(row, before) });
    }

    /** Begins the first deploy of a stack. */
    async create(
        input: StackSource & DeployInput & { readonly name: string; readonly description: string },
        { actor, plugin }: Asker
    ): Promise<TaskView> {
        const { planner, store, inventory } = this.#options;
        if ((await store.find(input.name)) !== null) {
            throw errors.conflict('name');
        }
        if ((await inventory.list(input.name)).length > 0) {
            throw errors.inUse('containers of a stack of that name that is not managed here');
        }
        const plan = await planner.plan({ ...input, owner: plugin, exposed: [] });
        planner.check(plan, input.consent);
        const { name, description, compose, env } = input;
        const by = actor?.username ?? plugin;
        await store.create(
            { name, description, owner: plugin },
            { compose, env, by, because: 'created', images: imagesOf(plan), exposed: plan.findings }
        );
        return this.#begin(
            { ...input, owner: plugin, because: 'created', before: null, pull: false, by, isNew: true },
            actor
        );
    }

    /** Begins a deploy with another source. @throws STACK_OWNED 40950, VERSION_STALE 41200 */
    async update(
        name: string,
        input: Partial<StackSource> & DeployInput & { readonly description?: string | undefined },
        { actor, plugin, ifMatch }: Asker & { readonly ifMatch: string | null }
    ): Promise<TaskView> {
        const { planner, store } = this.#options;
        const row = await this.#mine(name, plugin);
        if (ifMatch !== null && ifMatch !== String(row.version)) {
            throw errors.stale(row.version);
        }
        const before = await store.revision(name, row.revision);
        const source = { compose: input.compose ?? before.compose, env: input.env ?? before.env };
        const plan = await planner.plan({
            name,
            owner: row.owner,
            ...source,
            exposed: exposedBy(row, before)
        });
        planner.check(plan, input.consent);
        return this.#begin(
            {
                ...input,
                ...source,
                name,
                owner: row.owner,
                because: 'changed',
                before: row.revision === 0 ? null : before,
                pull: false,
                by: actor?.username ?? plugin,
                isNew: false
            },
            actor
        );
    }

    /** Begins a deploy of a revision that is kept: compose text, environment and images together. */
    async rollback(
        name: string,
        { revision, ...input }: DeployInput & { readonly revision: number },
        { actor, plugin }: Asker
    ): Promise<TaskView> {
        const { planner, store } = this.#options;
        const row = await this.#mine(name, plugin);
        const [before, wanted] = [
            await store.revision(name, row.revision),
            await store.revision(name, revision)
        ];
        const pinned = new Map(Object.entries(wanted.images));
        const plan = await planner.plan({
            name,
            owner: row.owner,
            compose: wanted.compose,
            env: wanted.env,
            exposed: exposedBy(row, before),
            pinned
        });
        planner.check(plan, input.consent);
        const { compose, env } = wanted;
        return this.#begin(
            {
                ...input,
                name,
                owner: row.owner,
                compose,
                env,
                because: `rollback to ${revision}`,
                before,
                pinned,
                pull: false,
                by: actor?.username ?? plugin,
                isNew: false
            },
            actor
        );
    }

    /** Begins an action. `redeploy` makes what runs be what the revision says; with `pull` it takes newer images of the same tags. */
    async act(
        name: string,
        action: StackAction,
        { services, pull }: { readonly services: readonly string[]; readonly pull: boolean },
        { actor, plugin }: Asker
    ): Promise<TaskView> {
        const { store, ctx, control } = this.#options;
        const row = await store.find(name);
        if (action === 'up' || action === 'redeploy') {
            const found = await store.get(name);
            const before = await store.revision(name, found.revision);
            const pinned = pull ? undefined : new Map(Object.entries(before.images));
            return this.#begin(
                {
                    name,
                    owner: found.owner,
                    compose: before.compose,
                    env: before.env,
                    because: action,
                    before,
                    pinned,
                    pull,
                    by: actor?.username ?? plugin,
                    isNew: false,
                    start: true,
                    waitSeconds: 60,
                    onFailure: 'rollback',
                    consent: null
                },
                actor
            );
        }
        if (row === null) {
            await this.get(name);
        }
        return ctx.task(
            {
                kind: action,
                title: `${action} ${name}`,
                access: 'control',
                resource: name,
                key: `stack:${name}`,
                ...(actor === null ? {} : { actor })
            },
            async (run) => {
                await control.act(name, action, services, run);
                return this.get(name).catch(() => null);
            }
        );
    }

    /** Begins a task that removes a stack with its containers and networks, and with `volumes` its volumes. */
    async remove(name: string, volumes: boolean, { actor, plugin }: Asker): Promise<TaskView> {
        const { ctx, store, control } = this.#options;
        await this.#mine(name, plugin);
        return ctx.task(
            {
                kind: 'remove',
                title: `Remove the stack ${name}`,
                access: 'write',
                resource: name,
                key: `stack:${name}`,
                ...(actor === null ? {} : { actor })
            },
            async (run) => {
                await control.act(name, 'down', [], run);
                if (volumes) {
                    await control.removeLabelled(name, 'volumes');
                }
                await store.remove(name);
                return null;
            }
        );
    }

    /** @throws NOT_FOUND 40400, STACK_OWNED 40950 for what another made */
    async #mine(name: string, plugin: string | null): Promise<StackRow> {
        const row = await this.#options.store.get(name);
        if (row.owner !== plugin) {
            throw fail.STACK_OWNED({ owner: row.owner ?? 'none' });
        }
        return row;
    }

    #begin(change: Change, actor: Actor | null): Promise<TaskView> {
        const { ctx, store } = this.#options;
        const { name, isNew } = change;
        return ctx
            .task(
                {
                    kind: 'deploy',
                    title: `Deploy ${name}`,
                    access: change.because === 'redeploy' || change.because === 'up' ? 'control' : 'write',
                    resource: name,
                    key: `stack:${name}`,
                    ...(actor === null ? {} : { actor })
                },
                async (run) => {
                    try {
                        await this.#deploy(change, run);
                    } catch (error) {
                        if (isNew && change.onFailure === 'rollback') {
                            await store.remove(name);
                        }
                        throw error;
                    }
                    return this.get(name);
                }
            )
            .catch(async (error: unknown) => {
                if (isNew && isFailure(error) && error.code === 40901) {
                    await store.remove(name);
                }
                throw error;
            });
    }

    async #deploy(change: Change, run: TaskRun): Promise<void> {
        const { engine, inventory, making, planner, store, images } = this.#options;
        const { name, before } = change;
        const first = await planner.plan({ ...change, exposed: before?.exposed ?? [] });
        planner.check(first, change.consent);
        const pinned = await pullImages(first.images, change.pull, { images, inventory, run });
        // The engine may have changed while images came: what is carried out is judged again.
        const plan = await planner.plan({ ...change, pinned, exposed: before?.exposed ?? [] });
        planner.check(plan, change.consent);
        const commit = async (): Promise<void> => {
            const { compose, env, by, because, description } = change;
            await store.commit(
                name,
                { compose, env, by, because, images: imagesOf(plan), exposed: plan.findings },
                description
            );
        };
        const deploy = new Deploy({ engine, inventory, making }, plan, {
            stack: name,
            start: change.start,
            waitSeconds: change.waitSeconds,
            onFailure: change.onFailure,
            run
        });
        try {
            await deploy.run();
        } catch (error) {
            if (change.onFailure === 'keep' && !run.signal.aborted) {
                await commit();
            }
            throw error;
        }
        if (!isSame(change, plan, before)) {
            await commit();
        }
    }
}

/** What a revision exposes that runs; nothing before the first has run. */
const exposedBy = (row: StackRow | null, before: Revision | null): Revision['exposed'] =>
    row === null || row.revision === 0 || before === null ? [] : before.exposed;

/** Whether a deploy made the same as before, so that there is no new revision of it. */
function isSame({ compose, env, description }: Change, plan: StackPlan, before: Revision | null): boolean {
    return (
        before !== null &&
        description === undefined &&
        before.compose === compose &&
        before.env === env &&
        [...plan.images].every(([service, { imageId }]) => before.images[service]?.imageId === imageId)
    );
}
