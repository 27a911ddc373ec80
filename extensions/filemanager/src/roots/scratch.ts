/**
 * Names beside a target that something is written to before it takes the target's place in one step. They are journalled, so that a
 * panel that was killed in the middle leaves nothing behind once it runs again.
 */
import { randomUUID } from 'node:crypto';

import { ScratchEntity } from '../entities.ts';
import { isMissing } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { join, parentOf, privateFolder } from './path.ts';
import type { Root, Roots } from './roots.ts';

export class Scratch {
    readonly #ctx: Ctx;
    readonly #roots: Roots;

    constructor(ctx: Ctx, roots: Roots) {
        this.#ctx = ctx;
        this.#roots = roots;
    }

    /** Hands the work a free name in the folder of `target`; what still has that name afterwards is removed. */
    async beside<T>(root: Root, target: string, work: (path: string) => Promise<T>): Promise<T> {
        const id = randomUUID();
        const path = join(parentOf(target), `${privateFolder}-${id}`);
        await this.#ctx.db.write((em) => em.insert(ScratchEntity, { id, folder: root.folder, path }));
        try {
            return await work(path);
        } finally {
            await this.#forget(root, id, path);
        }
    }

    /** What an earlier generation left, as the work of removing it. */
    async leftOver(): Promise<(signal: AbortSignal) => Promise<void>> {
        const rows = await this.#ctx.db.read((em) => em.find(ScratchEntity, {}));
        return async (signal) => {
            for (const { id, folder, path } of rows) {
                signal.throwIfAborted();
                await this.#forget(this.#roots.formerly(folder), id, path);
            }
        };
    }

    async #forget(root: Root, id: string, path: string): Promise<void> {
        try {
            await root.files.remove(path, { recursive: true });
        } catch (error) {
            if (!isMissing(error)) {
                // The row stays, and the next start tries again.
                this.#ctx.log.warn('Something half-written could not be removed', {
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
