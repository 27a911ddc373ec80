/** Takes stacks into care that were made past the panel. Nothing restarts: the next deploy makes them what the file says. */
import { posix } from 'node:path';

import { type Actor, errors, isFailure } from '@portico/sdk';

import { withAbsoluteBinds } from '../../compose/edit.ts';
import type { Adopted } from '../../engine/adopted.ts';
import type { InspectedContainer, ListedContainer } from '../../engine/documents.ts';
import type { Inventory } from '../../engine/inventory.ts';
import { fail } from '../../errors.ts';
import type { Ctx } from '../../settings.ts';
import { labelOf } from '../../spec/spec.ts';
import { imagesOf } from '../deploying/deployer.ts';
import { ownerNow } from '../owner.ts';
import type { Planner } from '../planner.ts';
import type { StackStore } from '../revisions.ts';
import { isStackName, stackNameWords, type StackSource } from '../source.ts';
import { composeOf } from './from-containers.ts';

const mostBytes = 1_048_576;

/** What the adoption works with. */
export interface AdoptionParts {
    readonly inventory: Inventory;
    readonly adopted: Adopted;
    readonly planner: Planner;
    readonly store: StackStore;
}

/** Adopts stacks, and single containers as stacks of one service. */
export class Adoption {
    readonly #ctx: Ctx;
    readonly #parts: AdoptionParts;

    constructor(ctx: Ctx, parts: AdoptionParts) {
        this.#ctx = ctx;
        this.#parts = parts;
    }

    /**
     * Keeps the source of a stack as its first revision, with the images that its containers run. Without a text it is the file that the
     * labels name, whose relative binds become absolute: they keep their meaning. Where there is none, it is written from the containers. A
     * single container of that name becomes a stack of one service.
     *
     * @throws NOT_FOUND 40400; CONFLICT 40900 for a stack that is managed; STACK_OWNED 40950; VALIDATION_FAILED 40001; COMPOSE_INVALID
     * 42250; COMPOSE_UNSUPPORTED 42251
     */
    async adopt(name: string, given: Partial<StackSource>, actor: Actor): Promise<void> {
        const { inventory, adopted, store } = this.#parts;
        if ((await store.find(name)) !== null) {
            throw errors.conflict('name', `The stack ${name} is managed here already`);
        }
        const listed = await inventory.list(name);
        if (listed.length > 0) {
            return this.#keep(name, listed, given, actor);
        }
        const single = await this.#single(name);
        await adopted.add({ container: single.Id, stack: name, service: name });
        try {
            await this.#keep(name, await inventory.list(name), given, actor);
        } catch (error) {
            await adopted.forget(name);
            throw error;
        }
    }

    /** @throws NOT_FOUND 40400, STACK_OWNED 40950, VALIDATION_FAILED 40001 */
    async #single(name: string): Promise<InspectedContainer> {
        const container = await this.#parts.inventory.findContainer(name);
        const labels = container?.Config.Labels ?? {};
        if (container?.Name.replace(/^\//, '') !== name || labels[labelOf.project] !== undefined) {
            throw errors.notFound('There is no stack and no single container of that name');
        }
        const owner = await ownerNow(this.#ctx, labels[labelOf.owner]);
        if (owner !== null) {
            throw fail.STACK_OWNED({ owner });
        }
        if (!isStackName(name)) {
            const message = `A stack has ${stackNameWords} in its name: give the container another one first`;
            throw errors.invalid([{ path: 'name', message }]);
        }
        return container;
    }

    async #keep(
        name: string,
        listed: readonly ListedContainer[],
        given: Partial<StackSource>,
        actor: Actor
    ): Promise<void> {
        const { planner, store } = this.#parts;
        const source = {
            compose: given.compose ?? (await this.#textOf(name, listed)),
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
        await store.create({ name, description: '', owner: null, runs: true }, first);
    }

    /** The file that the labels name, else one written from the containers. */
    async #textOf(name: string, listed: readonly ListedContainer[]): Promise<string> {
        const file = listed.map(({ Labels: labels }) => labels?.[labelOf.configFiles]).find(Boolean);
        const text = file === undefined ? null : await this.#read(file);
        if (text !== null && file !== undefined) {
            return withAbsoluteBinds(text, posix.dirname(file));
        }
        const lasting = listed.filter(({ Labels: labels }) => labels?.[labelOf.oneOff] !== 'True');
        const known = await Promise.all(lasting.map(({ Id: id }) => this.#parts.inventory.known(id)));
        return composeOf(name, known);
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
