/** A database beside a site, made by the plugin `database`. Its password goes to the environment of the site and nowhere else. */
import { type Actor, errors } from '@portico/sdk';

import type { Ctx } from '../../settings.ts';

/** What is written down of a site's database. */
export interface SiteDatabase {
    readonly serverId: number;
    readonly name: string;
    /** Null until it was made. */
    readonly account: string | null;
}

const schemes = { mysql: 'mysql', postgresql: 'pgsql' } as const;

/** Whether databases can be made now. @throws TOOL_MISSING 50302 */
export function requireDatabases(ctx: Ctx): void {
    if (ctx.plugins.database === undefined) {
        throw errors.toolMissing('the plugin database', 'enable the plugin database');
    }
}

/** Makes the database of a site. Gives what is to be written down, and variables for its scripts. */
export async function provision(
    ctx: Ctx,
    { serverId, name }: SiteDatabase,
    actor: Actor | null
): Promise<{ readonly database: SiteDatabase; readonly env: Readonly<Record<string, string>> }> {
    requireDatabases(ctx);
    const made = await ctx.plugins.database?.provision(
        { serverId, database: name, level: 'owner' },
        actor === null ? {} : { actor }
    );
    if (made === undefined) {
        throw errors.toolMissing('the plugin database', 'enable the plugin database');
    }
    const { kind, host, port, socket, database, username, password, account } = made;
    const env = {
        DB_CONNECTION: schemes[kind],
        ...(host === null ? {} : { DB_HOST: host, DB_PORT: String(port) }),
        ...(socket === null ? {} : { DB_SOCKET: socket }),
        DB_DATABASE: database,
        DB_USERNAME: username,
        DB_PASSWORD: password
    };
    return { database: { serverId, name, account }, env };
}

/** Takes back a database that was made for a site that could not be made. What cannot be taken back is told to people. */
export async function takeBackDatabase(
    ctx: Ctx,
    site: string,
    { serverId, name, account }: SiteDatabase,
    actor: Actor | null
): Promise<void> {
    try {
        if (account === null) {
            throw new Error('it is not known whether it was made');
        }
        requireDatabases(ctx);
        await ctx.plugins.database?.drop(
            { serverId, database: name, account },
            actor === null ? {} : { actor }
        );
    } catch (error) {
        ctx.log.warn(`The database ${name} of the site ${site} is left`, { error: String(error) });
        await ctx.notify({
            event: 'database-left',
            severity: 'warning',
            title: `The database ${name} may be left of the site ${site}, which could not be made`,
            text: `Look at the database server ${serverId}, and remove the database if nothing uses it`,
            data: { serverId, database: name }
        });
    }
}
