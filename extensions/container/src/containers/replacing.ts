/** Puts a container in the place of another one. What fails or is cut leaves the one of before, under its name. */
import type { InspectedContainer } from '../engine/documents.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { PullRun } from '../images/images.ts';
import { labelOf, type Spec } from '../spec/spec.ts';
import type { Making } from './making.ts';

/** What the new container says of the one that it takes the place of, as JSON in its label. */
interface Replaced {
    readonly id: string;
    readonly name: string;
    readonly wasRunning: boolean;
}

/** A container that runs so long after it was made again has taken over. */
const takeOverMs = 30_000;

/** Replaces a container by one with another specification. */
export class Replacing {
    readonly #inventory: Inventory;
    readonly #making: Making;

    constructor(inventory: Inventory, making: Making) {
        this.#inventory = inventory;
        this.#making = making;
    }

    /** Gives the id of the new container, which runs where the old one did. */
    async replace(old: InspectedContainer, spec: Spec, run: PullRun): Promise<string> {
        const replaced = { id: old.Id, name: old.Name.replace(/^\//, ''), wasRunning: old.State.Running };
        const mark = Date.now().toString(36);
        run.progress(null, `Making ${spec.name} again`);
        // The new one exists before the old one is touched: by its label, what a kill cuts is found again.
        const made = await this.#making.create({
            ...spec,
            name: `${spec.name}-next-${mark}`,
            labels: { ...spec.labels, [labelOf.replaces]: JSON.stringify(replaced) }
        });
        try {
            await this.#making.rename(old.Id, `${replaced.name}-before-${mark}`);
            await this.#making.rename(made, spec.name);
            if (replaced.wasRunning) {
                await this.#making.stop(old.Id);
                await this.#making.startInPlace(made);
                await this.#making.waitFor(made, {
                    until: 'running',
                    deadline: Date.now() + takeOverMs,
                    signal: run.signal,
                    service: spec.name
                });
            }
        } catch (error) {
            run.log('The new container does not run: the old one comes back');
            await this.#undo(made, replaced);
            throw error;
        }
        await this.#making.remove(old.Id);
        return made;
    }

    /** Takes back what a panel that was killed left half done. */
    async recover(): Promise<void> {
        for (const { Id: made, Labels: labels } of await this.#inventory.list()) {
            const label = labels?.[labelOf.replaces];
            const replaced = label === undefined ? null : (JSON.parse(label) as Replaced);
            const old = replaced === null ? null : await this.#inventory.findContainer(replaced.id);
            if (replaced === null || old === null) {
                continue;
            }
            if (replaced.wasRunning && old.State.Running && old.Name !== `/${replaced.name}`) {
                // It was being stopped, perhaps, and the engine goes on with that.
                await this.#making.stop(old.Id);
            }
            await this.#undo(made, replaced);
        }
    }

    async #undo(made: string, { id, name, wasRunning }: Replaced): Promise<void> {
        await this.#making.remove(made).catch(() => undefined);
        const old = await this.#inventory.container(id);
        if (old.Name !== `/${name}`) {
            await this.#making.rename(id, name);
        }
        if (wasRunning) {
            await this.#making.startInPlace(id);
        }
    }
}
