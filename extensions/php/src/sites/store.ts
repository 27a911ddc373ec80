/** The sites in the plugin's database. */
import { errors } from '@portico/sdk';
import { findRow, findRows, UniqueConstraintViolationException } from '@portico/sdk/db';

import { SiteEntity, type SiteRow, SwitchEntity, type SwitchRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import { type Site, siteOf } from './site.ts';

/** Fields of a row that a change may set. */
export type SiteChange = Partial<Omit<SiteRow, 'id' | 'version' | 'name' | 'account' | 'token'>>;

/** More than these is refused. */
export const mostSites = 500;

/** Reads and writes sites and their switches. */
export class Store {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** All sites, by number. */
    async all(): Promise<readonly Site[]> {
        const rows = await this.#ctx.db.read((em) =>
            findRows(em, SiteEntity, {}, { orderBy: { id: 'asc' } })
        );
        return rows.map(siteOf);
    }

    /** One site. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<Site> {
        const row = await this.#ctx.db.read((em) => findRow(em, SiteEntity, id));
        if (row === null) {
            throw errors.notFound(`There is no site ${id}`);
        }
        return siteOf(row);
    }

    /** Adds a site. @throws CONFLICT 40900 when the name is taken; IN_USE 40901 at the limit */
    async add(row: Omit<SiteRow, 'id' | 'version'>): Promise<Site> {
        try {
            const added = await this.#ctx.db.write(async (em) => {
                if ((await em.count(SiteEntity)) >= mostSites) {
                    throw errors.inUse(`${mostSites} sites`);
                }
                const entity = em.create(SiteEntity, { ...row, version: 1 });
                await em.flush();
                return { ...entity } as SiteRow;
            });
            return siteOf(added);
        } catch (error) {
            throw error instanceof UniqueConstraintViolationException ? errors.conflict('name') : error;
        }
    }

    /** Changes a site, and counts its version up. */
    async change(id: number, change: SiteChange): Promise<Site> {
        const row = await this.#ctx.db.write(async (em) => {
            const entity = await em.findOne(SiteEntity, id);
            if (entity === null) {
                throw errors.notFound(`There is no site ${id}`);
            }
            em.assign(entity, { ...change, version: entity.version + 1 });
            return { ...entity } as SiteRow;
        });
        return siteOf(row);
    }

    /** Forgets a site and its switch. */
    async remove(id: number): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(SwitchEntity, { siteId: id });
            await em.nativeDelete(SiteEntity, { id });
        });
    }

    /** The newest switch of each site. */
    async switches(): Promise<ReadonlyMap<number, SwitchRow>> {
        const rows = await this.#ctx.db.read((em) => findRows(em, SwitchEntity, {}));
        return new Map(rows.map((row) => [row.siteId, row]));
    }

    /** Begins a switch, which replaces the record of the one before. */
    async beginSwitch(row: SwitchRow): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(SwitchEntity, { siteId: row.siteId });
            em.create(SwitchEntity, row);
        });
    }

    /** Changes the record of a switch; with `site`, the site in the same transaction. */
    async changeSwitch(
        siteId: number,
        change: Partial<SwitchRow>,
        site: SiteChange | null = null
    ): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.nativeUpdate(SwitchEntity, { siteId }, change);
            if (site !== null) {
                const entity = await em.findOneOrFail(SiteEntity, siteId);
                em.assign(entity, { ...site, version: entity.version + 1 });
            }
        });
    }
}
