/**
 * Temporary names beside a target, for work that then takes the place of the target in one step. Each name is a row in the database, so
 * that the next start removes what a killed panel left.
 */
import { randomUUID } from 'node:crypto';

import { ScratchEntity } from '../entities.ts';
import { isMissing } from '../files/filesystem.ts';
import type { Ctx } from '../settings.ts';
import { join, parentOf, privateFolder } from './path.ts';
import type { Root, Roots } from './roots.ts';

/** The temporary names of one generation. */
export class Scratch {
    readonly #ctx: Ctx;
    readonly #roots: Roots;

    constructor(ctx: Ctx, roots: Roots) {
        this.#ctx = ctx;
        this.#roots = roots;
    }

    /** Runs work with a free name in the folder of `target`. Removes what still has that name afterwards. */
    async beside<T>(root: Root, target: string, work: (path: string) => Promise<T>): Promise<T> {
        const id = randomUUID();
        const path = join(parentOf(target), `${privateFolder}-${id}`);
        await this.#ctx.db.write((em) => em.insert(ScratchEntity, { id, folder: root.folder, path }));
        try {
            return await work(path);
        } finally {
            await this.#remove(root, id, path);
        }
    }

    /** Finds what an earlier generation left, and resolves with the work that removes it. */
    async findRemains(): Promise<(signal: AbortSignal) => Promise<void>> {
        const rows = await this.#ctx.db.read((em) => em.find(ScratchEntity, {}));
        return async (signal) => {
            for (const { id, folder, path } of rows) {
                signal.throwIfAborted();
                await this.#remove(this.#roots.formerRoot(folder), id, path);
            }
        };
    }

    async #remove(root: Root, id: string, path: string): Promise<void> {
        try {
            await root.files.remove(path, { recursive: true });
        } catch (error) {
            if (!isMissing(error)) {
                // The row stays, so that the next start tries again.
                this.#ctx.log.warn('A temporary file could not be removed', {
                    folder: root.folder,
                    path,
                    error: String(error)
                });
                return;
            }
        }
        await this.#ctx.db.write((em) => em.nativeDelete(ScratchEntity, { id }));
    }
}
