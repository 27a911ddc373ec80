/** Images: listed, pulled, pushed, tagged, and removed. */
import { type Actor, errors, isFailure, type TaskRun, type TaskView } from '@portico/sdk';

import type { InspectedImage, ListedImage } from '../engine/documents.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { engineWords, fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { digestIn } from './digest.ts';
import { LayerProgress, progressOf } from './progress.ts';
import { parseReference } from './reference.ts';
import type { Registries } from './registries.ts';
import { type ImageUpdate, unknownUpdate } from './updates.ts';

/** When an image is pulled. */
export type PullPolicy = 'missing' | 'always' | 'never';

/** An image as answers show it. */
export interface ImageView {
    readonly id: string;
    readonly tags: readonly string[];
    readonly digests: readonly string[];
    readonly bytes: number;
    readonly createdAt: string;
    /** Names of containers. */
    readonly usedBy: readonly string[];
    readonly update: ImageUpdate;
}

/** What a pull gave. */
export interface Pulled {
    readonly id: string;
    readonly digest: string | null;
}

/** What a task tells while it pulls. */
export type PullRun = Pick<TaskRun, 'progress' | 'log' | 'signal'>;

/** The images of the engine. */
export class Images {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #registries: Registries;
    readonly #updates: { read(): Promise<ReadonlyMap<string, ImageUpdate>> };

    constructor(
        ctx: Ctx,
        parts: {
            readonly engine: Engine;
            readonly inventory: Inventory;
            readonly registries: Registries;
            readonly updates: { read(): Promise<ReadonlyMap<string, ImageUpdate>> };
        }
    ) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#inventory = parts.inventory;
        this.#registries = parts.registries;
        this.#updates = parts.updates;
    }

    /** All images; `dangling`: those without a name, or the others. An engine counts one whose name went to a newer image as both. */
    async list(dangling: boolean | undefined): Promise<readonly ImageView[]> {
        const [images, users, updates] = await Promise.all([
            this.#inventory.images(),
            this.#users(),
            this.#updates.read()
        ]);
        const views = images.map((image) => ({
            ...namesOf(image),
            bytes: image.Size,
            createdAt: new Date(image.Created * 1_000).toISOString(),
            usedBy: users.get(image.Id) ?? [],
            update: updates.get(image.Id) ?? unknownUpdate
        }));
        return views.filter(({ tags }) => dangling === undefined || (tags.length === 0) === dangling);
    }

    /** @throws NOT_FOUND 40400 */
    async get(reference: string): Promise<ImageView> {
        const image = await this.#mustFind(reference);
        return {
            ...namesOf(image),
            bytes: image.Size,
            createdAt: new Date(Date.parse(image.Created)).toISOString(),
            usedBy: (await this.#users()).get(image.Id) ?? [],
            update: (await this.#updates.read()).get(image.Id) ?? unknownUpdate
        };
    }

    async #mustFind(reference: string): Promise<InspectedImage> {
        const image = await this.#inventory.image(reference);
        if (image === null) {
            throw errors.notFound(`There is no image ${reference} here`);
        }
        return image;
    }

    async #users(): Promise<ReadonlyMap<string, readonly string[]>> {
        const users = new Map<string, string[]>();
        for (const { ImageID: id, Names: names } of await this.#inventory.list()) {
            users.set(id, [...(users.get(id) ?? []), (names[0] ?? '').replace(/^\//, '')]);
        }
        return users;
    }

    /** @throws IN_USE 40901 when a container is made of it */
    async remove(reference: string, force: boolean): Promise<void> {
        const { id, usedBy } = await this.get(reference);
        if (usedBy.length > 0) {
            throw errors.inUse(usedBy.join(', '), `Containers are made of this image: ${usedBy.join(', ')}`);
        }
        await this.#engine.call('DELETE', `/images/${encodeURIComponent(id)}`, {
            query: { force },
            patienceMs: 120_000
        });
    }

    async tag(reference: string, tag: string): Promise<ImageView> {
        const { Id: id } = await this.#mustFind(reference);
        const { repository, tag: version } = parseReference(tag) ?? { repository: tag, tag: null };
        await this.#engine.call('POST', `/images/${encodeURIComponent(id)}/tag`, {
            query: { repo: repository, tag: version ?? 'latest' }
        });
        return this.get(id);
    }

    /** Begins a task that pulls. */
    begin(image: string, platform: string | undefined, actor: Actor): Promise<TaskView> {
        return this.#ctx.task(
            {
                kind: 'pull',
                title: `Pull ${image}`,
                access: 'write',
                resource: image,
                key: `pull:${image}`,
                actor
            },
            (run) => this.pull(image, run, platform)
        );
    }

    /** Begins a task that pushes. */
    async beginPush(image: string, actor: Actor): Promise<TaskView> {
        await this.#mustFind(image);
        const { repository, tag } = parseReference(image) ?? { repository: image, tag: null };
        return this.#ctx.task(
            {
                kind: 'push',
                title: `Push ${image}`,
                access: 'write',
                resource: image,
                key: `push:${image}`,
                actor
            },
            async (run) => {
                const response = await this.#engine.open('POST', `/images/${repository}/push`, {
                    query: { tag: tag ?? 'latest' },
                    // The engine demands the header, also where there is no login.
                    headers: { 'x-registry-auth': 'e30=', ...(await this.#registries.headersFor(image)) },
                    signal: run.signal,
                    patienceMs: 60_000
                });
                const layers = new LayerProgress();
                let digest: string | null = null;
                for await (const line of progressOf(response, run.signal)) {
                    run.progress(layers.add(line));
                    digest = line.aux?.Digest ?? digest;
                }
                return { image, digest };
            }
        );
    }

    /** The image of a name, pulled as the policy of pulling says. @throws NOT_FOUND 40400 for one that is absent and never pulled */
    async ensure(image: string, pull: PullPolicy, run: PullRun): Promise<Pulled> {
        const found = pull === 'always' ? null : await this.#inventory.image(image);
        if (found !== null) {
            return { id: found.Id, digest: digestIn(found, image) };
        }
        await this.mustCome(image, pull);
        return this.pull(image, run);
    }

    /** What can be said of an image before a task begins. @throws NOT_FOUND 40400 for one that is absent and never pulled */
    async mustCome(image: string, pull: PullPolicy): Promise<void> {
        if (pull === 'never' && (await this.#inventory.image(image)) === null) {
            throw errors.notFound(`There is no image ${image} here, and it is not to be pulled`);
        }
    }

    /** Pulls an image. @throws REGISTRY_FAILED 50250 */
    async pull(image: string, run: PullRun, platform?: string): Promise<Pulled> {
        run.progress(null, `Pulling ${image}`);
        const reference = parseReference(image);
        if (reference === null) {
            throw errors.notFound(`There is no image ${image}`);
        }
        const { repository, tag, digest } = reference;
        try {
            const response = await this.#engine.open('POST', '/images/create', {
                query: { fromImage: repository, tag: digest ?? tag ?? 'latest', platform },
                headers: await this.#registries.headersFor(image),
                signal: run.signal,
                patienceMs: 60_000
            });
            const layers = new LayerProgress();
            for await (const line of progressOf(response, run.signal)) {
                run.progress(layers.add(line));
                if (line.status !== undefined && /complete|exists|Digest/.test(line.status)) {
                    run.log(`${line.id === undefined ? '' : `${line.id}: `}${line.status}`);
                }
            }
        } catch (error) {
            if (isFailure(error) && (error.code === 40400 || error.code === 42254)) {
                throw fail.REGISTRY_FAILED({ message: engineWords(error) });
            }
            throw error;
        }
        const found = await this.#mustFind(image);
        return { id: found.Id, digest: digestIn(found, image) };
    }
}

function namesOf({ Id: id, RepoTags: tags, RepoDigests: digests }: ListedImage | InspectedImage) {
    const named = (names: readonly string[] | null): readonly string[] =>
        (names ?? []).filter((name) => !name.startsWith('<none>'));
    return { id, tags: named(tags), digests: named(digests) };
}
