/** Starts, stops and removes what a stack has, managed or not. */
import type { Making } from '../containers/making.ts';
import type { Engine } from '../engine/engine.ts';
import type { Inventory } from '../engine/inventory.ts';
import { labelOf } from '../spec/spec.ts';
import { nameOf } from './planner.ts';
import type { WorkRun } from './work.ts';

const slowMs = 330_000;

/** Works on the containers, networks and volumes that have the label of a stack. */
export class StackControl {
    readonly #engine: Engine;
    readonly #inventory: Inventory;
    readonly #making: Making;

    constructor(engine: Engine, inventory: Inventory, making: Making) {
        this.#engine = engine;
        this.#inventory = inventory;
        this.#making = making;
    }

    /** Acts on each container; no service named: on those of all. `down` keeps volumes. */
    async act(
        name: string,
        action: 'down' | 'start' | 'stop' | 'restart',
        services: readonly string[],
        run: WorkRun
    ): Promise<void> {
        const listed = (await this.#inventory.list(name)).filter(
            ({ Labels: labels }) =>
                services.length === 0 || services.includes(labels?.[labelOf.service] ?? '')
        );
        for (const [index, container] of listed.entries()) {
            run.signal.throwIfAborted();
            run.progress(index / listed.length, nameOf(container));
            await this.#actOn(container.Id, action);
        }
        if (action === 'down' && services.length === 0) {
            await this.removeLabelled(name, 'networks');
        }
    }

    async #actOn(id: string, action: 'down' | 'start' | 'stop' | 'restart'): Promise<void> {
        switch (action) {
            case 'down':
                await this.#making.stop(id);
                return this.#making.remove(id);
            case 'start':
                return this.#making.start(id);
            case 'stop':
                return this.#making.stop(id);
            case 'restart':
                await this.#engine.call('POST', `/containers/${id}/restart`, { patienceMs: slowMs });
        }
    }

    /** Removes the networks or volumes that were made for a stack. */
    async removeLabelled(name: string, kind: 'networks' | 'volumes'): Promise<void> {
        const there =
            kind === 'networks' ? await this.#inventory.networks() : await this.#inventory.volumes();
        for (const { Name, Labels: labels } of there.values()) {
            if (labels?.[labelOf.project] === name) {
                await this.#engine.call('DELETE', `/${kind}/${encodeURIComponent(Name)}`);
            }
        }
    }
}
