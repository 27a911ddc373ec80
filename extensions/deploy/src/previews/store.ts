/** Previews in the plugin's database. */
import { errors } from '@portico/sdk';

import { PreviewEntity, type PreviewRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';

/** Where a preview stands. */
export type PreviewState = 'awaiting-approval' | 'building' | 'live' | 'failed' | 'closed';

/** A preview with what became of it. */
export interface Preview extends PreviewRow {
    readonly state: PreviewState;
    readonly deploymentId: number | null;
}

/** What a preview begins with. */
export type NewPreview = Omit<PreviewRow, 'id'>;

const empty = { approvedCommit: null, childId: null, commentId: null };

/** Reads and writes previews. */
export class PreviewStore {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Previews of a project, or all, newest first. */
    async list(projectId?: number): Promise<readonly PreviewRow[]> {
        const where = projectId === undefined ? {} : { projectId };
        const rows = await this.#ctx.db.read((em) =>
            em.find(PreviewEntity, where, { orderBy: { id: 'desc' } })
        );
        return rows.map(whole);
    }

    /** One preview. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<PreviewRow> {
        const row = await this.#ctx.db.read((em) => em.findOne(PreviewEntity, id));
        if (row === null) {
            throw errors.notFound(`There is no preview ${id}`);
        }
        return whole(row);
    }

    /** The preview of a pull request, and the one that runs as a project; null where there is none. */
    async find(
        where: { readonly projectId: number; readonly number: number } | { readonly childId: number }
    ): Promise<PreviewRow | null> {
        const row = await this.#ctx.db.read((em) => em.findOne(PreviewEntity, where));
        return row === null ? null : whole(row);
    }

    /** Adds a preview. */
    async add(preview: NewPreview): Promise<PreviewRow> {
        return this.#ctx.db.write(async (em) => {
            const entity = em.create(PreviewEntity, preview);
            await em.flush();
            return whole(entity);
        });
    }

    /** Changes a preview. */
    async change(id: number, change: Partial<NewPreview>): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeUpdate(PreviewEntity, { id }, change));
    }

    /** Forgets a preview. */
    async remove(id: number): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(PreviewEntity, { id }));
    }
}

/** A column without a value may be left out of a row; it reads as null. */
function whole(row: object): PreviewRow {
    const defined = Object.entries(row).filter(([, value]) => value !== undefined);
    return { ...empty, ...Object.fromEntries(defined) } as PreviewRow;
}
