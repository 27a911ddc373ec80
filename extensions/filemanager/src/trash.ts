/** The trash: what was removed lies in its root's private folder until it is restored, emptied, or too old. */
import { randomUUID } from 'node:crypto';

import { type Actor, errors, joi, type Value } from '@portico/sdk';

import { TrashEntity, type TrashRow } from './entities.ts';
import { filesystem, isMissing, isTaken } from './errors.ts';
import { move } from './files/move.ts';
import { removeTree } from './files/tree.ts';
import { nameOf, parentOf, privateFolder } from './roots/path.ts';
import { ensurePrivate, privatePath } from './roots/private-folder.ts';
import type { Root, Roots } from './roots/roots.ts';
import type { Ctx } from './settings.ts';

export const trashSchema = joi.object({
    id: joi.number().integer().required(),
    root: joi.string().required(),
    path: joi.string().required().description('Where it was'),
    name: joi.string().required(),
    type: joi.valid('file', 'folder', 'link', 'other').required(),
    size: joi.number().integer().required(),
    deletedAt: joi.string().isoDate().required(),
    deletedBy: joi.string().allow('').required()
});
export type TrashView = Value<typeof trashSchema>;

/** An item with the root that it lies in. */
export interface Held {
    readonly root: Root;
    readonly row: TrashRow;
}

const dayMs = 86_400_000;

export class Trash {
    readonly #ctx: Ctx;
    readonly #roots: Roots;

    constructor(ctx: Ctx, roots: Roots) {
        this.#ctx = ctx;
        this.#roots = roots;
    }

    /** Moves something into the trash in one step. @throws OTHER_DEVICE 40951 */
    async put(root: Root, path: string, actor: Actor): Promise<void> {
        const { type, size } = await filesystem(() => root.files.stat(path));
        await ensurePrivate(root.files, 'trash');
        const key = randomUUID();
        const row = {
            folder: root.folder,
            path,
            key,
            type,
            size,
            at: Date.now(),
            actor: actor.username ?? ''
        };
        await this.#ctx.db.write((em) => em.insert(TrashEntity, row));
        try {
            await move(root.files, path, privatePath('trash', key));
        } catch (error) {
            await this.#ctx.db.write((em) => em.nativeDelete(TrashEntity, { key }));
            throw error;
        }
    }

    /** Newest first. */
    async list(roots: readonly Root[]): Promise<Held[]> {
        const rows = await this.#ctx.db.read((em) =>
            em.find(
                TrashEntity,
                { folder: { $in: roots.map(({ folder }) => folder) } },
                { orderBy: { id: 'desc' } }
            )
        );
        return rows.flatMap((row) => {
            const root = roots.find(({ folder }) => folder === row.folder);
            return root === undefined ? [] : [{ root, row }];
        });
    }

    view({ root, row }: Held): TrashView {
        return {
            id: row.id,
            root: root.name,
            path: row.path,
            name: nameOf(row.path),
            type: row.type as TrashView['type'],
            size: row.size,
            deletedAt: new Date(row.at).toISOString(),
            deletedBy: row.actor
        };
    }

    /** @throws NOT_FOUND 40400 */
    async one(roots: readonly Root[], id: number): Promise<Held> {
        const row = await this.#ctx.db.read((em) => em.findOne(TrashEntity, { id }));
        const root = roots.find(({ folder }) => folder === row?.folder);
        if (row === null || root === undefined) {
            throw errors.notFound();
        }
        return { root, row };
    }

    /** Puts an item back; the folders that it lay in are made again. @throws CONFLICT 40900 when the name is taken */
    async restore({ root, row }: Held, to: string): Promise<void> {
        const parent = parentOf(to);
        if (parent !== '') {
            await filesystem(() => root.files.createFolder(parent, { parents: true, mode: 0o750 })).catch(
                (error: unknown) => {
                    if (!isTaken(error)) {
                        throw error;
                    }
                }
            );
        }
        await move(root.files, privatePath('trash', row.key), to);
        await this.#drop(row.id);
    }

    /** Removes an item for good. */
    async remove({ root, row }: Held, signal: AbortSignal): Promise<void> {
        await removeTree(root.files, privatePath('trash', row.key), { signal, step: () => undefined }).catch(
            (error: unknown) => {
                if (!isMissing(error)) {
                    throw error;
                }
            }
        );
        await this.#drop(row.id);
    }

    /** Removes what is older than the settings keep it. */
    async expire(signal: AbortSignal): Promise<void> {
        const { trashDays } = this.#ctx.settings;
        if (trashDays === 0) {
            return;
        }
        const rows = await this.#ctx.db.read((em) =>
            em.find(TrashEntity, { at: { $lt: Date.now() - trashDays * dayMs } }, { orderBy: { id: 'asc' } })
        );
        for (const row of rows) {
            signal.throwIfAborted();
            await this.remove({ root: this.#roots.formerly(row.folder), row }, signal).catch(
                (error: unknown) =>
                    this.#ctx.log.warn('Something old could not be removed from the trash', {
                        folder: row.folder,
                        path: row.path,
                        error: String(error)
                    })
            );
        }
    }

    /** Items of which a crash left only the row, as the work of finding and forgetting them. A root that cannot be reached now keeps its rows. */
    async leftOver(): Promise<(signal: AbortSignal) => Promise<void>> {
        const rows = await this.#ctx.db.read((em) => em.find(TrashEntity, {}));
        return async (signal) => {
            for (const [folder, items] of Map.groupBy(rows, (row) => row.folder)) {
                signal.throwIfAborted();
                await this.#reconcile(folder, items);
            }
        };
    }

    async #reconcile(folder: string, items: readonly TrashRow[]): Promise<void> {
        try {
            const there = new Set(
                (await this.#roots.formerly(folder).files.list(`${privateFolder}/trash`)).map(
                    ({ name }) => name
                )
            );
            for (const { id } of items.filter(({ key }) => !there.has(key))) {
                await this.#drop(id);
            }
        } catch (error) {
            this.#ctx.log.warn('The trash of a root cannot be looked at', { folder, error: String(error) });
        }
    }

    async #drop(id: number): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(TrashEntity, { id }));
    }
}
