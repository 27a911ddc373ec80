/**
 * Codes, access tokens and refresh tokens of OAuth grants. The database has their hashes alone. A pair is computed from the code or refresh
 * token that was given for it, under a key of the data folder: so a client whose answer was lost gets the same pair again, also after a restart.
 */
import { createHmac, createSecretKey, hash, type KeyObject, randomBytes } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { OauthTokenEntity } from '../entities.ts';
import type { ApiToken } from '../tokens/api-token.ts';
import type { ApiTokens } from '../tokens/api-tokens.ts';

/** What a client shows: a code or refresh token at `/token`, an access token at a protected resource. */
export type OAuthTokenKind = 'code' | 'access' | 'refresh';

/** What is known of a code or token. Times are milliseconds since 1970. */
export interface StoredToken {
    readonly id: number;
    readonly grantId: number;
    readonly expiresAt: number;
    readonly spentAt: number | null;
    /** Of a code. */
    readonly redirectUri: string | null;
    /** Of a code. */
    readonly challenge: string | null;
}

/** An access token with the refresh token for the next one. */
export interface TokenPair {
    readonly access: string;
    readonly refresh: string;
    readonly accessExpiresAt: number;
}

/** What an {@link OAuthTokens} is built from. */
export interface OAuthTokensOptions {
    readonly db: Database;
    readonly clock: Clock;
    readonly key: Buffer;
    readonly apiTokens: ApiTokens;
    /** How long a refresh token lasts, days. */
    readonly refreshDays: () => number;
}

/** Scanners for leaked secrets find tokens by it. */
const prefixes: Readonly<Record<OAuthTokenKind, string>> = { code: 'poc_', access: 'poa_', refresh: 'por_' };
const form = /^po[acr]_[\w-]{43}$/;
const codeMs = 60_000;
const accessMs = 3600_000;
const dayMs = 24 * 3600_000;
/** How long a client may ask again because the answer was lost. */
const repeatedMs = 30_000;
/** How long a token is known after its end. */
const rememberedMs = 30 * dayMs;
/** Rows that one grant may have: a client that refreshes without end must not fill the disk. */
const mostOfOneGrant = 500;

/** Whether a bearer says that it is an access token of OAuth. Verifies nothing. */
export function isAccessToken(bearer: string): boolean {
    return bearer.startsWith(prefixes.access);
}

/** Makes codes and tokens, and finds what they stand for. */
export class OAuthTokens {
    readonly #options: OAuthTokensOptions;
    readonly #key: KeyObject;
    readonly #access;

    constructor(options: OAuthTokensOptions) {
        this.#options = options;
        this.#key = createSecretKey(options.key);
        this.#access = options.db.prepare<
            [string],
            { readonly grant_id: number; readonly expires_at: number }
        >("select grant_id, expires_at from auth_oauth_tokens where hash = ? and kind = 'access'");
    }

    /** The grant behind an access token. @throws TOKEN_INVALID 40101, TOKEN_EXPIRED 40102, TOKEN_REVOKED 40103 */
    holder(access: string): ApiToken {
        const { apiTokens, clock } = this.#options;
        const row = form.test(access) ? this.#access.get(hashOf(access)) : undefined;
        const grant = row === undefined ? undefined : apiTokens.byId(row.grant_id);
        if (row === undefined || grant === undefined) {
            throw fail.TOKEN_INVALID();
        }
        if (grant.revokedAt !== null) {
            throw fail.TOKEN_REVOKED();
        }
        if (row.expires_at <= clock.now()) {
            throw fail.TOKEN_EXPIRED();
        }
        return grant;
    }

    /** What is known of a code or token, as of this transaction; null when it is not one of ours. */
    async find(
        tx: Transaction,
        token: string,
        kinds: readonly OAuthTokenKind[]
    ): Promise<StoredToken | null> {
        if (!form.test(token)) {
            return null;
        }
        const row = await tx.em.findOne(OauthTokenEntity, { hash: hashOf(token), kind: { $in: [...kinds] } });
        return row === null
            ? null
            : {
                  id: row.id,
                  grantId: row.grantId,
                  expiresAt: row.expiresAt,
                  spentAt: row.spentAt ?? null,
                  redirectUri: row.redirectUri ?? null,
                  challenge: row.challenge ?? null
              };
    }

    /** Makes the code of a new grant. */
    async issueCode(
        tx: Transaction,
        grant: ApiToken,
        { redirectUri, challenge }: { readonly redirectUri: string; readonly challenge: string }
    ): Promise<string> {
        const code = `${prefixes.code}${randomBytes(32).toString('base64url')}`;
        await this.#store(tx, grant, 'code', code, { lifeMs: codeMs, redirectUri, challenge });
        return code;
    }

    /** Spends a code or refresh token, and makes the pair that it is given for. */
    async issuePair(tx: Transaction, grant: ApiToken, spent: StoredToken, token: string): Promise<TokenPair> {
        const { clock, apiTokens, refreshDays } = this.#options;
        const now = clock.now();
        await this.#prune(tx, grant, now);
        await tx.em.nativeUpdate(OauthTokenEntity, { id: spent.id }, { spentAt: now });
        const refreshMs = refreshDays() * dayMs;
        const pair = { access: this.#next('access', token), refresh: this.#next('refresh', token) };
        await this.#store(tx, grant, 'access', pair.access, { lifeMs: accessMs });
        await this.#store(tx, grant, 'refresh', pair.refresh, { lifeMs: refreshMs });
        await apiTokens.extend(tx, grant, now + refreshMs);
        return { ...pair, accessExpiresAt: now + accessMs };
    }

    /** The pair that a refresh token was spent for, while its client may not have got it: for 30 s, unless the new one was used. Else null. */
    async repeat(tx: Transaction, spent: StoredToken, token: string): Promise<TokenPair | null> {
        const now = this.#options.clock.now();
        if (spent.spentAt === null || Math.abs(now - spent.spentAt) >= repeatedMs) {
            return null;
        }
        const pair = { access: this.#next('access', token), refresh: this.#next('refresh', token) };
        const next = await this.find(tx, pair.refresh, ['refresh']);
        return next?.spentAt === null ? { ...pair, accessExpiresAt: spent.spentAt + accessMs } : null;
    }

    /** No one who has the database can compute it, and no one who has the key alone. */
    #next(kind: 'access' | 'refresh', from: string): string {
        const mac = createHmac('sha256', this.#key).update(`${kind} ${from}`).digest('base64url');
        return `${prefixes[kind]}${mac}`;
    }

    async #store(
        tx: Transaction,
        grant: ApiToken,
        kind: OAuthTokenKind,
        token: string,
        {
            lifeMs,
            redirectUri = null,
            challenge = null
        }: { lifeMs: number; redirectUri?: string | null; challenge?: string | null }
    ): Promise<void> {
        await tx.em.insert(OauthTokenEntity, {
            hash: hashOf(token),
            grantId: grant.id,
            kind,
            expiresAt: this.#options.clock.now() + lifeMs,
            spentAt: null,
            redirectUri,
            challenge
        });
    }

    async #prune(tx: Transaction, grant: ApiToken, now: number): Promise<void> {
        await tx.em.nativeDelete(OauthTokenEntity, { expiresAt: { $lt: now - rememberedMs } });
        const kept = await tx.em.find(
            OauthTokenEntity,
            { grantId: grant.id },
            { fields: ['id'], orderBy: { id: 'desc' }, limit: 1, offset: mostOfOneGrant }
        );
        if (kept[0] !== undefined) {
            await tx.em.nativeDelete(OauthTokenEntity, { grantId: grant.id, id: { $lte: kept[0].id } });
        }
    }
}

function hashOf(token: string): string {
    return hash('sha256', token, 'base64url');
}
