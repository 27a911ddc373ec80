/** One API token, mandate or grant: as it is stored, kept in memory and shown. */

/** A token, mandate or grant that lives, or a revoked one that would. Only `lastUsedAt`, `revokedAt` and the end of a grant change. */
export interface ApiToken {
    readonly id: number;
    readonly userId: number;
    readonly name: string;
    readonly hash: string;
    readonly permissions: readonly string[];
    readonly createdAt: number;
    expiresAt: number;
    lastUsedAt: number | null;
    revokedAt: number | null;
    /** The plugin that holds the mandate; else null. */
    readonly plugin: string | null;
    /** The routes that a mandate is for; else null. */
    readonly routes: readonly string[] | null;
    /** The OAuth client that holds the grant; else null. */
    readonly clientId: string | null;
    /** The path below which the tokens of a grant are good; else null. */
    readonly resource: string | null;
}

/** A token as the API shows it; the token itself is shown once. */
export interface ApiTokenView {
    readonly id: number;
    readonly name: string;
    readonly permissions: readonly string[];
    readonly createdAt: string;
    /** Null for a mandate that lasts until it is ended. */
    readonly expiresAt: string | null;
    readonly lastUsedAt: string | null;
    /** The plugin that holds the mandate; else null. */
    readonly plugin: string | null;
    /** The routes that the mandate is for; else null. */
    readonly routes: readonly string[] | null;
    /** The OAuth client that holds the grant; else null. */
    readonly clientId: string | null;
    /** The path below which the tokens of the grant are good; else null. */
    readonly resource: string | null;
    readonly version: number;
}

/** A row of `auth_tokens`. */
export interface ApiTokenRow {
    readonly id: number;
    readonly user_id: number;
    readonly name: string;
    readonly hash: string;
    readonly permissions: string;
    readonly created_at: number;
    readonly expires_at: number;
    readonly last_used_at: number | null;
    readonly revoked_at: number | null;
    readonly plugin: string | null;
    readonly routes: string | null;
    readonly client_id: string | null;
    readonly resource: string | null;
}

/** When something ends that has no end: the last time that a date can name. */
export const never = 8_640_000_000_000_000;

/** Reads a row. @throws SyntaxError for a list that is no JSON */
export function tokenOf(row: ApiTokenRow): ApiToken {
    return {
        id: row.id,
        userId: row.user_id,
        name: row.name,
        hash: row.hash,
        permissions: JSON.parse(row.permissions) as string[],
        createdAt: row.created_at,
        expiresAt: row.expires_at,
        lastUsedAt: row.last_used_at,
        revokedAt: row.revoked_at,
        plugin: row.plugin,
        routes: row.routes === null ? null : (JSON.parse(row.routes) as string[]),
        clientId: row.client_id,
        resource: row.resource
    };
}

/** A token, mandate or grant as the API shows it. */
export function viewOf(token: ApiToken): ApiTokenView {
    return {
        id: token.id,
        name: token.name,
        permissions: token.permissions,
        createdAt: new Date(token.createdAt).toISOString(),
        expiresAt: token.expiresAt === never ? null : new Date(token.expiresAt).toISOString(),
        lastUsedAt: token.lastUsedAt === null ? null : new Date(token.lastUsedAt).toISOString(),
        plugin: token.plugin,
        routes: token.routes,
        clientId: token.clientId,
        resource: token.resource,
        version: 1
    };
}
