/** Containers that a stack took over: labels cannot be given to a container that exists, so it is kept here whose they are. */
import { findRows } from '@portico/sdk/db';

import { AdoptedEntity, type AdoptedRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { labelOf } from '../spec/spec.ts';
import type { Labels } from './documents.ts';

/** Keeps which containers stacks took over. */
export class Adopted {
    readonly #ctx: Ctx;
    #rows: Promise<ReadonlyMap<string, AdoptedRow>> | null = null;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** By the id of the container. */
    async read(): Promise<ReadonlyMap<string, AdoptedRow>> {
        this.#rows ??= this.#ctx.db
            .read((em) => findRows(em, AdoptedEntity, {}))
            .then((rows) => new Map(rows.map((row) => [row.container, row])));
        return this.#rows;
    }

    async add(row: AdoptedRow): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.upsert(AdoptedEntity, row)));
        this.#rows = null;
    }

    /** Forgets the containers of a stack, but for those named. */
    async forget(stack: string, but: ReadonlySet<string> = new Set()): Promise<void> {
        const gone = [...(await this.read()).values()].filter(
            (row) => row.stack === stack && !but.has(row.container)
        );
        if (gone.length > 0) {
            await this.#ctx.db.write(async (em) => {
                for (const { container } of gone) {
                    await em.nativeDelete(AdoptedEntity, { container });
                }
            });
            this.#rows = null;
        }
    }
}

/** Labels with those that a stack gave. */
export const withStack = (labels: Labels, row: AdoptedRow | undefined): Labels =>
    row === undefined
        ? labels
        : { ...labels, [labelOf.project]: row.stack, [labelOf.service]: row.service, [labelOf.number]: '1' };
