/** The draft: the model that people work on. Each change makes a new version of it; the kernel hears of none before an apply. */
import { Mutex } from '@portico/sdk';

import { StateEntity, type StateRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import type { Model } from './model.ts';

/** What a change gives back. */
export interface Changed<T> {
    readonly model: Model;
    readonly result: T;
}

/** The draft with its version. */
export class Draft {
    readonly #ctx: Ctx;
    readonly #mutex = new Mutex();
    #model: Model | null = null;
    #version = 0;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Counts the changes of the draft. */
    async version(): Promise<number> {
        await this.model();
        return this.#version;
    }

    /** The draft as it is now. */
    async model(): Promise<Model> {
        if (this.#model === null) {
            const row = await this.#ctx.db.read((em) => readState(em));
            this.#model = JSON.parse(row.draft) as Model;
            this.#version = row.draftVersion;
        }
        return this.#model;
    }

    /** Changes the draft. `allot` gives a new id. What `work` throws changes nothing. */
    change<T>(work: (model: Model, allot: () => number) => Changed<T>): Promise<T> {
        return this.#mutex.run(async () => {
            const before = await this.model();
            const { changed, row } = await this.#ctx.db.write(async (em) => {
                const row = await readState(em);
                const allot = (): number => (row.nextId += 1) - 1;
                const changed = work(before, allot);
                if (changed.model !== before) {
                    row.draft = JSON.stringify(changed.model);
                    row.draftVersion += 1;
                }
                return { changed, row: { draftVersion: row.draftVersion } };
            });
            this.#model = changed.model;
            this.#version = row.draftVersion;
            return changed.result;
        });
    }
}

/** The row of the state, managed by the entity manager. */
export async function readState(em: Parameters<Parameters<Ctx['db']['read']>[0]>[0]): Promise<StateRow> {
    return (await em.findOneOrFail(StateEntity, { id: 1 })) as StateRow;
}
