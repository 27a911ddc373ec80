/** Stacks as they are: listed, shown, and planned. */
import { errors } from '@portico/sdk';

import type { ListedContainer } from '../engine/documents.ts';
import type { Inventory } from '../engine/inventory.ts';
import type { StackRow } from '../entities.ts';
import { labelOf } from '../spec/spec.ts';
import type { Planner, StackPlan } from './planner.ts';
import { exposedBy, type StackStore } from './revisions.ts';
import type { Digests, StackSource } from './source.ts';
import { type StackView, stackView } from './view.ts';

/** What the stacks need. */
export interface StacksOptions {
    readonly inventory: Inventory;
    readonly planner: Planner;
    readonly store: StackStore;
}

/** Reads the stacks with the state of their containers. */
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

    /** What a compose file would come to; changes nothing. `owner`: the plugin that plans a stack of its own. */
    async plan(
        input: StackSource & {
            readonly name: string;
            readonly owner?: string | null;
            readonly digests?: Digests | undefined;
        }
    ): Promise<StackPlan> {
        const { planner, store } = this.#options;
        const row = await store.find(input.name);
        const before = row === null ? null : await store.revision(input.name, row.revision);
        return planner.plan({
            ...input,
            owner: row === null ? (input.owner ?? null) : row.owner,
            exposed: exposedBy(row, before)
        });
    }
}
