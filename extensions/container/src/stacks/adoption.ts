/** Takes stacks into care that were made past the panel. Nothing restarts: the next deploy makes them what the file says. */
import { posix } from 'node:path';

import { type Actor, errors, isFailure } from '@portico/sdk';

import { withAbsoluteBinds } from '../compose/edit.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import { imagesOf } from './deployer.ts';
import type { Planner } from './planner.ts';
import type { StackStore } from './revisions.ts';
import type { StackSource } from './source.ts';

const mostBytes = 1_048_576;

/** Adopts stacks. */
export class Adoption {
    readonly #ctx: Ctx;
    readonly #parts: {
        readonly inventory: Inventory;
        readonly planner: Planner;
        readonly store: StackStore;
    };

    constructor(
        ctx: Ctx,
        parts: { readonly inventory: Inventory; readonly planner: Planner; readonly store: StackStore }
    ) {
        this.#ctx = ctx;
        this.#parts = parts;
    }

    /**
     * Keeps the source of a stack as its first revision, with the images that its containers run. Without a text it is the file that the
     * labels name, whose relative binds become absolute: they keep their meaning.
     *
     * @throws NOT_FOUND 40400; CONFLICT 40900 for a stack that is managed; VALIDATION_FAILED 40001 where no file is found; COMPOSE_INVALID
     * 42250; COMPOSE_UNSUPPORTED 42251
     */
    async adopt(name: string, given: Partial<StackSource>, actor: Actor): Promise<void> {
        const { inventory, planner, store } = this.#parts;
        if ((await store.find(name)) !== null) {
            throw errors.conflict('name');
        }
        const listed = await inventory.list(name);
        if (listed.length === 0) {
            throw errors.notFound('There is no stack of that name');
        }
        const file = listed.map(({ Labels: labels }) => labels?.[labelOf.configFiles]).find(Boolean);
        const compose = given.compose ?? (file === undefined ? null : await this.#read(file));
        if (compose === null) {
            const message = 'The file of the stack is not here: send its text';
            throw errors.invalid([{ path: 'compose', message }]);
        }
        const source = {
            compose:
                given.compose === undefined
                    ? withAbsoluteBinds(compose, posix.dirname(file ?? '/'))
                    : compose,
            env: given.env ?? ''
        };
        const plan = await planner.plan({ name, owner: null, ...source, exposed: [] });
        plan.compiled.refuse();
        const running = new Map(listed.map((each) => [each.Labels?.[labelOf.service] ?? '', each.ImageID]));
        const images = Object.fromEntries(
            Object.entries(imagesOf(plan)).map(([service, image]) => {
                const imageId = running.get(service) ?? image.imageId;
                return [
                    service,
                    { ...image, imageId, digest: imageId === image.imageId ? image.digest : null }
                ];
            })
        );
        const first = { ...source, by: actor.username, because: 'adopted', images, exposed: plan.findings };
        await store.create({ name, description: '', owner: null }, first);
        await store.commit(name, first);
    }

    /** Null for what is no single file of the form that Compose takes, or is not there. */
    async #read(path: string): Promise<string | null> {
        if (!/^\/[^,\0]+\.ya?ml$/.test(path)) {
            return null;
        }
        try {
            const handle = await this.#ctx.files('/').open(path.slice(1));
            try {
                return (await handle.stat()).size > mostBytes ? null : await handle.readFile('utf8');
            } finally {
                await handle.close();
            }
        } catch (error) {
            if (isFailure(error)) {
                return null;
            }
            throw error;
        }
    }
}
