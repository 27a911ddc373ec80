/** A site as the services use it: the row of the database, with its texts read. */
import type { DirectiveValues } from '../config/directives.ts';
import { type Pool, usualPool } from '../config/pool.ts';
import type { SiteRow } from '../entities.ts';
import type { SiteDatabase } from './data/database.ts';

/** A site, with its stored JSON parsed. */
export interface Site extends Omit<
    SiteRow,
    'aliases' | 'extraPaths' | 'settings' | 'pool' | 'envNames' | 'database'
> {
    readonly aliases: readonly string[];
    readonly extraPaths: readonly string[];
    readonly envNames: readonly string[];
    readonly values: DirectiveValues;
    readonly pool: Pool;
    readonly database: SiteDatabase | null;
}

/** Reads the texts of a row. */
export function siteOf(row: SiteRow): Site {
    const { aliases, extraPaths, envNames, settings, pool, database, ...rest } = row;
    return {
        ...rest,
        aliases: JSON.parse(aliases) as readonly string[],
        extraPaths: JSON.parse(extraPaths) as readonly string[],
        envNames: JSON.parse(envNames) as readonly string[],
        values: JSON.parse(settings) as DirectiveValues,
        database: database === null ? null : (JSON.parse(database) as SiteDatabase),
        pool: { ...usualPool, ...(JSON.parse(pool) as Partial<Pool>) }
    };
}

/** The other slot of a site. */
export function otherSlot(slot: number): number {
    return slot === 0 ? 1 : 0;
}

/** Name of the service that runs a slot. */
export function serviceName(id: number, slot: number): string {
    return slot === 0 ? `site-${id}` : `site-${id}-b`;
}

/** The name that the engine finds the serving slot by: a link to its socket. */
export const linkName = 'fpm.sock';

/** Name of a slot's socket. */
export function socketName(slot: number): string {
    return slot === 0 ? 'fpm-a.sock' : 'fpm-b.sock';
}

/** Absolute path of the folder with the sockets of a site. */
export function socketFolder({ runFolder, id }: Pick<Site, 'runFolder' | 'id'>): string {
    return `${runFolder}/${id}`;
}

/** Absolute path of a slot's socket. */
export function socketPath(site: Pick<Site, 'runFolder' | 'id'>, slot: number): string {
    return `${socketFolder(site)}/${socketName(slot)}`;
}

/** Absolute path of the link to the socket that serves: it stays the same whichever slot that is. */
export function linkPath(site: Pick<Site, 'runFolder' | 'id'>): string {
    return `${socketFolder(site)}/${linkName}`;
}

/** Absolute path of the socket that answers a slot's status. */
export function statusSocketPath(site: Pick<Site, 'runFolder' | 'id'>, slot: number): string {
    return `${socketFolder(site)}/${slot === 0 ? 'status-a.sock' : 'status-b.sock'}`;
}

/** Absolute path of the folder with a slot's configuration. */
export function configFolder({ runFolder, id }: Pick<Site, 'runFolder' | 'id'>, slot: number): string {
    return `${runFolder}/conf/${id}/${slot}`;
}

/** What stands in the comment of an account that this package made. */
export function accountComment(token: string): string {
    return `portico-php ${token}`;
}
