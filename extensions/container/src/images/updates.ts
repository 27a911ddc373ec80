/** Whether registries have newer images under the same names: asked by people, and by the clock. */
import { type Actor, errors, isFailure, type ScheduledRun, type TaskView } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { ImageCheckEntity, type ImageCheckRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { digestIn, digestsIn } from './digest.ts';
import type { Registries } from './registries.ts';
import type { RegistryClient } from './registry-client.ts';

/** Whether the registry has a newer image under the same tag. */
export interface ImageUpdate {
    readonly state: 'current' | 'outdated' | 'unknown';
    readonly digest: string | null;
    readonly checkedAt: string | null;
}

/** An image that runs. */
export interface BoundImage {
    readonly id: string;
    /** Null: it came from no registry. */
    readonly digest: string | null;
}

/** Of an image that was never asked for. */
export const unknownUpdate: ImageUpdate = { state: 'unknown', digest: null, checkedAt: null };

const hourMs = 3_600_000;

/** Whether something is to be done again; also when the clock was set back. */
export const isDue = (now: Date, lastMs: number, everyHours: number): boolean =>
    now.getTime() < lastMs || now.getTime() - lastMs >= everyHours * hourMs;

/** Asks registries, and keeps what they said. */
export class ImageUpdates {
    readonly #ctx: Ctx;
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #registries: Registries;
    readonly #client: RegistryClient;

    constructor(
        ctx: Ctx,
        parts: {
            readonly engine: Engine;
            readonly inventory: Inventory;
            readonly registries: Registries;
            readonly client: RegistryClient;
        }
    ) {
        this.#ctx = ctx;
        this.#engine = parts.engine;
        this.#inventory = parts.inventory;
        this.#registries = parts.registries;
        this.#client = parts.client;
    }

    /** What registries said, by the id of the image. */
    async read(): Promise<ReadonlyMap<string, ImageUpdate>> {
        return new Map((await this.#rows()).map((row) => [row.image, updateOf(row)]));
    }

    /**
     * Asks the registry which image a name stands for now.
     *
     * @param bound - the image that runs; default: the one that has the name here
     * @param at - when it is asked
     * @throws NOT_FOUND 40400
     */
    async check(reference: string, bound?: BoundImage, at = new Date()): Promise<ImageUpdate> {
        const { id: image, digest: known } = bound ?? (await this.#boundOf(reference));
        const digest = await this.#digestOf(reference);
        const state =
            digest === null || known === null
                ? 'unknown'
                : (await this.isKnownBy(digest, reference, { id: image, digest: known }))
                  ? 'current'
                  : 'outdated';
        const row = { image, state, digest, checkedAt: at.getTime() };
        await this.#ctx.db.write(async (em) => {
            const before = await findRow(em, ImageCheckEntity, { image });
            await em.upsert(ImageCheckEntity, { ...row, told: before?.told ?? null });
        });
        return updateOf(row);
    }

    /** Whether the registry of a name knows an image by a digest. */
    async isKnownBy(digest: string, reference: string, image: BoundImage): Promise<boolean> {
        if (image.digest === digest) {
            return true;
        }
        const here = await this.#inventory.image(image.id);
        return here !== null && digestsIn(here, reference).includes(digest);
    }

    /** @throws NOT_FOUND 40400 */
    async #boundOf(reference: string): Promise<BoundImage> {
        const image = await this.#inventory.image(reference);
        if (image === null) {
            throw errors.notFound(`There is no image ${reference} here`);
        }
        return { id: image.Id, digest: digestIn(image, reference) };
    }

    /** Null where the registry has none, or gives no answer. */
    async #digestOf(reference: string): Promise<string | null> {
        if ((await this.#engine.info()).kind === 'podman') {
            return this.#client.digestOf(reference);
        }
        try {
            const { Descriptor: descriptor } = await this.#engine.call<{ Descriptor: { digest: string } }>(
                'GET',
                `/distribution/${reference}/json`,
                { headers: await this.#registries.headersFor(reference), patienceMs: 30_000 }
            );
            return descriptor.digest;
        } catch (error) {
            if (isFailure(error) && error.code !== 50350) {
                return null;
            }
            throw error;
        }
    }

    /** Begins a task that checks images. */
    begin(images: readonly string[], actor: Actor): Promise<TaskView> {
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
    async namesInUse(): Promise<readonly string[]> {
        const listed = await this.#inventory.list();
        return [...new Set(listed.map(({ Image: image }) => image))].filter(
            (image) => !image.startsWith('sha256:')
        );
    }

    /** Checks what runs when that is due, and tells of newer images, of each once. */
    async checkDue({ at, signal }: Pick<ScheduledRun, 'at' | 'signal'>): Promise<void> {
        const { checkHours } = this.#ctx.settings;
        const newest = Math.max(0, ...(await this.#rows()).map(({ checkedAt }) => checkedAt));
        if (checkHours === 0 || !isDue(at, newest, checkHours)) {
            return;
        }
        for (const name of await this.namesInUse()) {
            signal.throwIfAborted();
            // A name may have gone from its image, or be of another stack's making: the others are checked.
            const bound = await this.#boundOf(name).catch(() => null);
            if (bound !== null) {
                await this.check(name, bound, at);
                await this.tell(name, bound);
            }
        }
        await this.#forget();
    }

    /** Tells that there is a newer image, of each newer one once. */
    async tell(name: string, { id: image }: BoundImage): Promise<void> {
        const row = (await this.#rows()).find((each) => each.image === image);
        if (row?.state !== 'outdated' || row.told === row.digest) {
            return;
        }
        const { digest: told } = row;
        await this.#ctx.db.write(
            async (em) => void (await em.nativeUpdate(ImageCheckEntity, { image }, { told }))
        );
        await this.#ctx.notify({
            event: 'image-outdated',
            severity: 'info',
            title: 'There is a newer image of what runs',
            text: name,
            data: { image: name, digest: told }
        });
    }

    /** Forgets what was said of images that are gone. */
    async #forget(): Promise<void> {
        for (const { image } of await this.#rows()) {
            if ((await this.#inventory.image(image)) === null) {
                await this.#ctx.db.write(
                    async (em) => void (await em.nativeDelete(ImageCheckEntity, { image }))
                );
            }
        }
    }

    async #rows(): Promise<readonly ImageCheckRow[]> {
        return this.#ctx.db.read((em) => findRows(em, ImageCheckEntity, {}));
    }
}

const updateOf = ({ state, digest, checkedAt }: Omit<ImageCheckRow, 'image' | 'told'>): ImageUpdate => ({
    state: state as ImageUpdate['state'],
    digest,
    checkedAt: new Date(checkedAt).toISOString()
});
