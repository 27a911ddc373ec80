/**
 * Links by which people without an account download a file or folder. A link holds what its maker may read at the moment of the
 * download: the maker's mandate says so, which ends with the account.
 */
import { createHash, randomBytes } from 'node:crypto';

import { type Actor, errors, isFailure, joi, type Value } from '@portico/sdk';

import { ShareEntity, type ShareRow } from './entities.ts';
import { fail } from './errors.ts';
import { filesystem } from './files/filesystem.ts';
import { nameOf } from './roots/path.ts';
import type { Place, Roots } from './roots/roots.ts';
import type { Ctx } from './settings.ts';

const dayMs = 86_400_000;
/** The route whose caller a maker must be able to be. */
const readingRoute = 'filemanager.read';

/** The fields of a link. */
export const shareFields = {
    id: joi.number().integer().required().label('Number'),
    root: joi
        .string()
        .required()
        .label('Root')
        .meta({ ui: { column: 1 } }),
    path: joi
        .string()
        .allow('')
        .required()
        .label('Path')
        .meta({ ui: { column: 2 } }),
    maker: joi
        .string()
        .allow('')
        .required()
        .label('Made by')
        .meta({ ui: { column: 3 } }),
    createdAt: joi.string().isoDate().required().label('Made'),
    expiresAt: joi
        .string()
        .isoDate()
        .required()
        .label('Good until')
        .meta({ ui: { column: 4 } }),
    maxDownloads: joi.number().integer().allow(null).required().label('Most downloads'),
    downloads: joi
        .number()
        .integer()
        .required()
        .label('Downloads')
        .description('Answers with bytes, also those that continue a download')
        .meta({ ui: { column: 5 } }),
    lastAt: joi.string().isoDate().allow(null).required().label('Last download')
};
/** The schema of a link in a list. */
export const shareSchema = joi.object(shareFields);
/** A link as a list shows it. */
export type ShareView = Value<typeof shareSchema>;

/** What a link is made with. */
export interface NewShare {
    readonly expiresAt: Date | null;
    readonly most: number | null;
}

/** A download by a link that has begun to count. */
export interface TakenShare {
    readonly row: ShareRow;
    readonly place: Place;
    /** Takes the count back: no byte was sent. */
    giveBack(): Promise<void>;
}

/** The links of all users. */
export class Shares {
    readonly #ctx: Ctx;
    readonly #roots: Roots;

    constructor(ctx: Ctx, roots: Roots) {
        this.#ctx = ctx;
        this.#roots = roots;
    }

    /** Those below the roots that an actor reaches, newest first. */
    async list(actor: Actor): Promise<readonly ShareView[]> {
        const reached = new Set(this.#roots.visible(actor).map(({ name }) => name));
        const rows = await this.#ctx.db.read((em) =>
            em.find(ShareEntity, { expires: { $gt: Date.now() } }, { orderBy: { id: 'desc' } })
        );
        return rows.filter(({ root }) => reached.has(root)).map(viewOf);
    }

    /** Makes a link. The token is shown once. @throws SHARES_OFF 40353, NOT_FOUND 40400, WRONG_TYPE 40950, VALIDATION_FAILED 40001 */
    async create(
        actor: Actor,
        { root, path }: Place,
        { expiresAt, most }: NewShare
    ): Promise<{ readonly share: ShareView; readonly token: string }> {
        const { shares, shareDays } = this.#ctx.settings;
        if (!shares) {
            throw fail.SHARES_OFF();
        }
        const now = Date.now();
        const latest = now + shareDays * dayMs;
        const expires = expiresAt?.getTime() ?? latest;
        if (expires <= now || expires > latest) {
            throw errors.invalid([
                { path: 'expiresAt', message: `expiresAt must be within the next ${shareDays} days` }
            ]);
        }
        const { type } = await filesystem(() => root.files.stat(path));
        if (type !== 'file' && type !== 'folder') {
            throw fail.WRONG_TYPE({ path, type, wanted: 'file or folder' });
        }
        const title = `Link to ${path === '' ? root.name : nameOf(path)}`.slice(0, 100);
        const { id: mandate } = await this.#ctx.mandates.give(actor, {
            title,
            routes: [readingRoute],
            expiresAt: new Date(expires)
        });
        const token = randomBytes(32).toString('base64url');
        const fresh = {
            root: root.name,
            folder: root.folder,
            path,
            hash: hashOf(token),
            mandate,
            maker: actor.username ?? '',
            created: now,
            expires,
            most,
            downloads: 0,
            last: null
        };
        try {
            const id = await this.#ctx.db.write((em) => em.insert(ShareEntity, fresh));
            return { share: viewOf({ ...fresh, id }), token };
        } catch (error) {
            await this.#ctx.mandates.end(mandate);
            throw error;
        }
    }

    /** Revokes a link at once. @throws NOT_FOUND 40400, also for one below a root that the actor does not reach */
    async remove(actor: Actor, id: number): Promise<ShareRow> {
        const row = await this.#ctx.db.read((em) => em.findOne(ShareEntity, { id }));
        if (row === null || !this.#roots.visible(actor).some(({ name }) => name === row.root)) {
            throw errors.notFound();
        }
        await this.#discard(row);
        return row;
    }

    /**
     * Begins a download by a link, and counts it: two downloads at once never pass the limit together.
     *
     * @throws SHARE_GONE 40450 for every reason, so that the answer says nothing about the link
     */
    async take(token: string): Promise<TakenShare> {
        const row = await this.#ctx.db.read((em) => em.findOne(ShareEntity, { hash: hashOf(token) }));
        const now = Date.now();
        if (row === null || row.expires <= now || !this.#ctx.settings.shares) {
            throw fail.SHARE_GONE();
        }
        const place = await this.#placeOf(row);
        const counted = await this.#ctx.db.write((em) =>
            em.execute(
                'update shares set downloads = downloads + 1, last = ? where id = ? and (most is null or downloads < most) returning id',
                [now, row.id]
            )
        );
        if (counted.length === 0) {
            throw fail.SHARE_GONE();
        }
        return {
            row,
            place,
            giveBack: async () => {
                await this.#ctx.db.write((em) =>
                    em.execute('update shares set downloads = downloads - 1, last = ? where id = ?', [
                        row.last,
                        row.id
                    ])
                );
            }
        };
    }

    /** Removes links that have expired. */
    async expire(signal: AbortSignal): Promise<void> {
        const rows = await this.#ctx.db.read((em) => em.find(ShareEntity, { expires: { $lte: Date.now() } }));
        for (const row of rows) {
            signal.throwIfAborted();
            await this.#discard(row);
        }
    }

    /** What the link leads to, when its maker may read it now. @throws SHARE_GONE 40450 */
    async #placeOf({ mandate, root: name, folder, path }: ShareRow): Promise<Place> {
        try {
            return await this.#ctx.mandates.use(mandate, async (maker) => {
                const root = this.#roots.of(maker, name);
                if (
                    root.folder !== folder ||
                    !maker.can(`${this.#ctx.name}:content`) ||
                    !maker.can(`${this.#ctx.name}:share`)
                ) {
                    throw fail.SHARE_GONE();
                }
                return { root, path };
            });
        } catch (error) {
            throw isFailure(error) ? fail.SHARE_GONE() : error;
        }
    }

    async #discard({ id, mandate }: ShareRow): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(ShareEntity, { id }));
        await this.#ctx.mandates.end(mandate);
    }
}

function viewOf(row: ShareRow): ShareView {
    return {
        id: row.id,
        root: row.root,
        path: row.path,
        maker: row.maker,
        createdAt: new Date(row.created).toISOString(),
        expiresAt: new Date(row.expires).toISOString(),
        maxDownloads: row.most ?? null,
        downloads: row.downloads,
        lastAt: row.last === null || row.last === undefined ? null : new Date(row.last).toISOString()
    };
}

function hashOf(token: string): string {
    return createHash('sha256').update(token).digest('hex');
}
