/** The trash. A removed entry lies in the private folder of its root until it is restored, removed for good, or too old. */
import { randomUUID } from 'node:crypto';

import { type Actor, errors, joi, type Value } from '@portico/sdk';

import { TrashEntity, type TrashRow } from '../entities.ts';
import { allowMissing, filesystem, isMissing, isTaken } from '../files/filesystem.ts';
import { move } from '../files/move.ts';
import { removeTree } from '../files/tree.ts';
import { nameOf, parentOf, privateFolder } from '../roots/path.ts';
import { ensurePrivate, privatePath } from '../roots/private-folder.ts';
import type { Quotas } from '../roots/quotas.ts';
import { refuseReadOnly, type Root, type Roots } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';
import type { Versions } from '../versions/versions.ts';

/** The schema of an item in the trash. */
export const trashSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    root: joi
        .string()
        .required()
        .label('Root')
        .meta({ ui: { column: 2 } }),
    path: joi
        .string()
        .required()
        .label('Path')
        .description('Where it was')
        .meta({ ui: { column: 3 } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    type: joi.valid('file', 'folder', 'link', 'other').required().label('Type'),
    size: joi
        .number()
        .integer()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 4 } }),
    deletedAt: joi
        .string()
        .isoDate()
        .required()
        .label('Removed')
        .meta({ ui: { column: 5 } }),
    deletedBy: joi
        .string()
        .allow('')
        .required()
        .label('Removed by')
        .meta({ ui: { column: 6 } })
});
/** An item as the API answers it. */
export type TrashView = Value<typeof trashSchema>;

/** An item of the trash and its root. */
export interface TrashItem {
    readonly root: Root;
    readonly row: TrashRow;
}

/** What hears of removals. */
export interface TrashParts {
    readonly quotas: Quotas;
    readonly versions: Versions;
}

const dayMs = 86_400_000;

/** The trash of all roots. */
export class Trash {
    readonly #ctx: Ctx;
    readonly #roots: Roots;
    readonly #parts: TrashParts;

    constructor(ctx: Ctx, roots: Roots, parts: TrashParts) {
        this.#ctx = ctx;
        this.#roots = roots;
        this.#parts = parts;
    }

    /** Moves an entry into the trash in one step. @throws OTHER_DEVICE 40951 */
    async put(root: Root, path: string, actor: Actor): Promise<void> {
        refuseReadOnly(root);
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

    /** The items of some roots, newest first. */
    async list(roots: readonly Root[]): Promise<TrashItem[]> {
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

    /** The answer for an item. */
    view({ root, row }: TrashItem): TrashView {
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

    /** The item of an id in one of these roots. @throws NOT_FOUND 40400 */
    async one(roots: readonly Root[], id: number): Promise<TrashItem> {
        const row = await this.#ctx.db.read((em) => em.findOne(TrashEntity, { id }));
        const root = roots.find(({ folder }) => folder === row?.folder);
        if (row === null || root === undefined) {
            throw errors.notFound();
        }
        return { root, row };
    }

    /** Moves an item back. Creates the folders that it lay in where they are gone. @throws CONFLICT 40900 when the name is taken */
    async restore({ root, row }: TrashItem, to: string): Promise<void> {
        refuseReadOnly(root);
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
        if (to !== row.path && (await isFree(root, row.path))) {
            await this.#parts.versions.moved(root, row.path, to);
        }
        await this.#removeRow(row.id);
    }

    /** Removes an item for good. */
    async remove({ root, row }: TrashItem, signal: AbortSignal): Promise<void> {
        refuseReadOnly(root);
        await removeTree(root.files, privatePath('trash', row.key), { signal, step: () => undefined }).catch(
            allowMissing
        );
        this.#parts.quotas.freed(root);
        // The name may belong to another file by now, whose versions stay.
        if (await isFree(root, row.path)) {
            await this.#parts.versions.forget(root, row.path);
        }
        await this.#removeRow(row.id);
    }

    /** Removes items that are older than the setting `trashDays`. */
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
            const root = this.#roots.formerRoot(row.folder);
            if (root.readOnly) {
                continue;
            }
            await this.remove({ root, row }, signal).catch((error: unknown) =>
                this.#ctx.log.warn('An expired item could not be removed from the trash', {
                    folder: row.folder,
                    path: row.path,
                    error: String(error)
                })
            );
        }
    }

    /** Reads the rows, and resolves with the work that removes those whose files a crash lost. A root that cannot be opened keeps its rows. */
    async findRemains(): Promise<(signal: AbortSignal) => Promise<void>> {
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
            const stored = new Set(
                (await this.#roots.formerRoot(folder).files.list(`${privateFolder}/trash`)).map(
                    ({ name }) => name
                )
            );
            for (const { id } of items.filter(({ key }) => !stored.has(key))) {
                await this.#removeRow(id);
            }
        } catch (error) {
            this.#ctx.log.warn('The trash of a root cannot be read', { folder, error: String(error) });
        }
    }

    async #removeRow(id: number): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(TrashEntity, { id }));
    }
}

async function isFree({ files }: Root, path: string): Promise<boolean> {
    return files.stat(path).then(
        () => false,
        (error: unknown) => isMissing(error)
    );
}
