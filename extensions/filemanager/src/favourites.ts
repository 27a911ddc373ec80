/** Places that a user marked. Each user sees only its own. */
import { type Actor, errors, joi, type Value } from '@portico/sdk';

import { FavouriteEntity, type FavouriteRow } from './entities.ts';
import { filesystem, isMissing } from './files/filesystem.ts';
import { nameOf } from './roots/path.ts';
import type { Place, Root, Roots } from './roots/roots.ts';
import type { Ctx } from './settings.ts';

/** How many one user may have. */
const most = 500;

/** The schema of a favourite in a list. */
export const favouriteSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    title: joi
        .string()
        .required()
        .label('Title')
        .meta({ ui: { column: 1 } }),
    root: joi
        .string()
        .required()
        .label('Root')
        .meta({ ui: { column: 2 } }),
    path: joi
        .string()
        .allow('')
        .required()
        .label('Path')
        .meta({ ui: { column: 3 } }),
    type: joi
        .choice({ file: 'File', folder: 'Folder', link: 'Link', other: 'Special file' })
        .allow(null)
        .required()
        .label('Type')
        .description('Null where it is missing'),
    missing: joi
        .boolean()
        .required()
        .label('Missing')
        .description('There is nothing of that name now, or you reach its root no longer')
        .meta({ ui: { column: 4 } })
});

/** The favourites of all users. */
export class Favourites {
    readonly #ctx: Ctx;
    readonly #roots: Roots;

    constructor(ctx: Ctx, roots: Roots) {
        this.#ctx = ctx;
        this.#roots = roots;
    }

    /** All of one user, in the order of their titles. */
    async list(actor: Actor): Promise<readonly Value<typeof favouriteSchema>[]> {
        const rows = await this.#ctx.db.read((em) =>
            em.find(FavouriteEntity, { owner: ownerOf(actor) }, { orderBy: { title: 'asc', id: 'asc' } })
        );
        return Promise.all(rows.map((row) => this.#view(actor, row)));
    }

    /** Marks a place. @throws NOT_FOUND 40400 when there is nothing, CONFLICT 40900 when it is marked, VALIDATION_FAILED 40001 for too many */
    async add(
        actor: Actor,
        { root, path }: Place,
        title: string | undefined
    ): Promise<Value<typeof favouriteSchema>> {
        await filesystem(() => root.files.stat(path));
        const owner = ownerOf(actor);
        const row = await this.#ctx.db.write(async (em) => {
            if ((await em.count(FavouriteEntity, { owner, root: root.name, path })) > 0) {
                throw errors.conflict('path');
            }
            if ((await em.count(FavouriteEntity, { owner })) >= most) {
                throw errors.invalid([{ path: '', message: `You have ${most} favourites already` }]);
            }
            const named = title ?? (path === '' ? root.name : nameOf(path));
            const fresh = { owner, root: root.name, path, title: named };
            return { ...fresh, id: await em.insert(FavouriteEntity, fresh) };
        });
        return this.#view(actor, row);
    }

    /** Takes a mark away. @throws NOT_FOUND 40400, also for one of another user */
    async remove(actor: Actor, id: number): Promise<void> {
        const removed = await this.#ctx.db.write((em) =>
            em.nativeDelete(FavouriteEntity, { id, owner: ownerOf(actor) })
        );
        if (removed === 0) {
            throw errors.notFound();
        }
    }

    async #view(
        actor: Actor,
        { id, root, path, title }: FavouriteRow
    ): Promise<Value<typeof favouriteSchema>> {
        const type = await this.#typeOf(actor, root, path);
        return { id, title, root, path, type, missing: type === null };
    }

    async #typeOf(actor: Actor, name: string, path: string) {
        let root: Root;
        try {
            root = this.#roots.of(actor, name);
        } catch {
            return null;
        }
        return root.files.stat(path).then(
            ({ type }) => type,
            (error: unknown) => {
                if (isMissing(error) || (error as NodeJS.ErrnoException).code !== undefined) {
                    return null;
                }
                throw error;
            }
        );
    }
}

function ownerOf({ id, key }: Actor): string {
    return id === null ? key : String(id);
}
