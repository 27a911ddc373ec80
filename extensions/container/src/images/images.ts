/** Images: listed, pulled, pushed, tagged, and removed. */
import { type Actor, errors, isFailure, type TaskRun, type TaskView } from '@portico/sdk';

import type { InspectedImage, ListedImage } from '../engine/documents.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { LayerProgress, progressOf } from './progress.ts';
import { parseReference } from './reference.ts';
import type { Registries } from './registries.ts';

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

/** Whether the registry has a newer image under the same tag. */
export interface ImageUpdate {
    readonly state: 'current' | 'outdated' | 'unknown';
    readonly digest: string | null;
    readonly checkedAt: string | null;
}

/** What a pull gave. */
export interface Pulled {
    readonly id: string;
    readonly digest: string | null;
}

/** What a task tells while it pulls. */
export type PullRun = Pick<TaskRun, 'progress' | 'log' | 'signal'>;

const unknownUpdate: ImageUpdate = { state: 'unknown', digest: null, checkedAt: null };

/** The images of the engine. */
export class Images {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #registries: Registries;
    /** What was checked since the plugin started, by the id of the image. */
    readonly #updates = new Map<string, ImageUpdate>();

    constructor(
        ctx: Ctx,
        parts: { readonly engine: Engine; readonly inventory: Inventory; readonly registries: Registries }
    ) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#inventory = parts.inventory;
        this.#registries = parts.registries;
    }

    async list(dangling: boolean | undefined): Promise<readonly ImageView[]> {
        const [images, users] = await Promise.all([
            this.#engine.call<readonly ListedImage[]>('GET', '/images/json', {
                query:
                    dangling === undefined
                        ? {}
                        : { filters: JSON.stringify({ dangling: [String(dangling)] }) }
            }),
            this.#users()
        ]);
        return images.map((image) => ({
            ...namesOf(image),
            bytes: image.Size,
            createdAt: new Date(image.Created * 1_000).toISOString(),
            usedBy: users.get(image.Id) ?? [],
            update: this.#updates.get(image.Id) ?? unknownUpdate
        }));
    }

    /** @throws NOT_FOUND 40400 */
    async get(reference: string): Promise<ImageView> {
        const image = await this.#mustFind(reference);
        return {
            ...namesOf(image),
            bytes: image.Size,
            createdAt: new Date(Date.parse(image.Created)).toISOString(),
            usedBy: (await this.#users()).get(image.Id) ?? [],
            update: this.#updates.get(image.Id) ?? unknownUpdate
        };
    }

    async #mustFind(reference: string): Promise<InspectedImage> {
        const image = await this.#inventory.image(reference);
        if (image === null) {
            throw errors.notFound('There is no image of that name');
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
            throw errors.inUse(usedBy.join(', '));
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
                for await (const line of progressOf(response)) {
                    run.progress(layers.add(line));
                    digest = line.aux?.Digest ?? digest;
                }
                run.signal.throwIfAborted();
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
        if (pull === 'never') {
            throw errors.notFound(`There is no image ${image}`);
        }
        return this.pull(image, run);
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
            for await (const line of progressOf(response)) {
                run.progress(layers.add(line));
                if (line.status !== undefined && /complete|exists|Digest/.test(line.status)) {
                    run.log(`${line.id === undefined ? '' : `${line.id}: `}${line.status}`);
                }
            }
        } catch (error) {
            if (isFailure(error) && (error.code === 40400 || error.code === 42254)) {
                throw fail.REGISTRY_FAILED({ message: error.message });
            }
            throw error;
        }
        // An answer that was cut by its signal may end without an error.
        run.signal.throwIfAborted();
        const found = await this.#mustFind(image);
        return { id: found.Id, digest: digestIn(found, image) };
    }

    /** Asks the registry which image a tag stands for now. @throws ENGINE_LACKS 50150 on Podman */
    async check(reference: string): Promise<ImageUpdate> {
        const { kind } = await this.#engine.info();
        if (kind === 'podman') {
            throw fail.ENGINE_LACKS({ what: 'Podman asks no registry for a digest' });
        }
        const image = await this.#mustFind(reference);
        const now = new Date().toISOString();
        const known = digestIn(image, reference);
        const answer = await this.#engine
            .call<{ Descriptor: { digest: string } }>('GET', `/distribution/${reference}/json`, {
                headers: await this.#registries.headersFor(reference),
                patienceMs: 30_000
            })
            .catch((error: unknown) => {
                if (isFailure(error) && error.code !== 50350) {
                    return null;
                }
                throw error;
            });
        const digest = answer?.Descriptor.digest ?? null;
        const state =
            digest === null || known === null ? 'unknown' : digest === known ? 'current' : 'outdated';
        const update: ImageUpdate = { state, digest, checkedAt: now };
        this.#updates.set(image.Id, update);
        return update;
    }

    /** Begins a task that checks images against their registries. */
    beginCheck(images: readonly string[], actor: Actor): Promise<TaskView> {
        return this.#ctx.task(
            { kind: 'check', title: 'Check images', access: 'control', key: 'check', actor },
            async (run) => {
                const results: object[] = [];
                for (const [index, image] of images.entries()) {
                    run.signal.throwIfAborted();
                    run.progress(index / images.length, `Checking ${image}`);
                    results.push({ image, ...(await this.check(image)) });
                }
                return { images: results };
            }
        );
    }

    /** Names of images that containers are made of. */
    async used(): Promise<readonly string[]> {
        const listed = await this.#inventory.list();
        return [...new Set(listed.map(({ Image: image }) => image))].filter(
            (image) => !image.startsWith('sha256:')
        );
    }
}

function namesOf({ Id: id, RepoTags: tags, RepoDigests: digests }: ListedImage | InspectedImage) {
    const named = (names: readonly string[] | null): readonly string[] =>
        (names ?? []).filter((name) => !name.startsWith('<none>'));
    return { id, tags: named(tags), digests: named(digests) };
}

/** The digest by which the registry of a name knows an image; null for an image that came from no registry. */
export function digestIn({ RepoDigests: digests }: InspectedImage, reference: string): string | null {
    const repository = parseReference(reference)?.repository ?? reference;
    const found = (digests ?? []).find((each) => {
        const name = each.split('@')[0] ?? '';
        return (
            name === repository ||
            name === `docker.io/${repository}` ||
            name === `docker.io/library/${repository}`
        );
    });
    return found?.split('@')[1] ?? null;
}
