/** API tokens: opaque, kept as hashes, and never able to do more than their owner can at that moment. */
import { hash, randomBytes } from 'node:crypto';

import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import { ApiTokenEntity } from '../entities.ts';
import type { Accounts } from '../ports.ts';
import { type ApiToken, type ApiTokenRow, type ApiTokenView, tokenOf, viewOf } from './api-token.ts';

/** What an API token is created from. */
export interface NewApiToken {
    readonly name: string;
    readonly permissions?: readonly string[] | undefined;
    /** RFC 3339; a year from now when absent or null. */
    readonly expiresAt?: string | null | undefined;
}

/** Scanners for leaked secrets find tokens by it. */
export const tokenPrefix = 'ptk_';
const tokenForm = /^ptk_[\w-]{43}$/;
const usedEveryMs = 60_000;
const defaultDays = 365;
const rememberedMs = 30 * 24 * 3600_000;
const mostOfOneUser = 100;
/** API tokens: created, found by their secret, counted in use, revoked. Mandates and grants are rows of the same table, which `Mandates` and `Grants` make. */
export class ApiTokens {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #accounts: Accounts;
    readonly #byHash = new Map<string, ApiToken>();
    readonly #used = new Set<ApiToken>();
    readonly #listeners: ((token: ApiToken) => void)[] = [];

    constructor({
        db,
        clock,
        accounts
    }: {
        readonly db: Database;
        readonly clock: Clock;
        readonly accounts: Accounts;
    }) {
        this.#db = db;
        this.#clock = clock;
        this.#accounts = accounts;
        for (const row of db.prepare<[], ApiTokenRow>('select * from auth_tokens order by id').all()) {
            const token = db.skipped.read('auth_tokens', row.id, () => tokenOf(row));
            // A token that cannot be read is not accepted.
            if (token !== undefined) {
                this.#byHash.set(row.hash, token);
            }
        }
    }

    /** The token behind a bearer. @throws TOKEN_INVALID 40101, TOKEN_EXPIRED 40102, TOKEN_REVOKED 40103 */
    find(secret: string): ApiToken {
        const token = tokenForm.test(secret) ? this.#byHash.get(hashOf(secret)) : undefined;
        if (token === undefined) {
            throw fail.TOKEN_INVALID();
        }
        this.require(token);
        return token;
    }

    /** @throws TOKEN_EXPIRED 40102, TOKEN_REVOKED 40103 */
    require(token: ApiToken): void {
        if (token.revokedAt !== null) {
            throw fail.TOKEN_REVOKED();
        }
        if (token.expiresAt <= this.#clock.now()) {
            throw fail.TOKEN_EXPIRED();
        }
    }

    byId(id: number): ApiToken | undefined {
        return [...this.#byHash.values()].find((token) => token.id === id);
    }

    /** Calls back once for each token that is revoked. */
    onEnd(listener: (token: ApiToken) => void): void {
        this.#listeners.push(listener);
    }

    /**
     * Takes an area's permissions out of every token, and ends the mandates that its plugin holds, those for its routes, and the grants below
     * its path: what was given was given to another plugin of that name.
     */
    async forgetArea(tx: Transaction, area: string): Promise<void> {
        await this.end(
            tx,
            [...this.#byHash.values()].filter(
                ({ plugin, routes, resource, revokedAt }) =>
                    revokedAt === null &&
                    (plugin === area ||
                        routes?.some((route) => route.startsWith(`${area}.`)) === true ||
                        resource?.startsWith(`/api/plugins/${area}/`) === true)
            )
        );
        const named = (permission: string): boolean => permission.startsWith(`${area}:`);
        for (const token of [...this.#byHash.values()].filter(({ permissions }) => permissions.some(named))) {
            const permissions = token.permissions.filter((permission) => !named(permission));
            await tx.em.nativeUpdate(ApiTokenEntity, { id: token.id }, { permissions });
            tx.afterCommit(() => this.#byHash.set(token.hash, { ...token, permissions }));
        }
    }

    /** The tokens, mandates and grants of an account. A grant that has run out is not listed: its client could not use it again. */
    list(userId: number): ApiTokenView[] {
        const now = this.#clock.now();
        return [...this.#byHash.values()]
            .filter(
                (token) =>
                    token.userId === userId &&
                    token.revokedAt === null &&
                    (token.clientId === null || token.expiresAt > now)
            )
            .sort((a, b) => a.id - b.id)
            .map(viewOf);
    }

    /** @throws NOT_FOUND 40400, also for another user's */
    get(userId: number, id: number): ApiTokenView {
        return viewOf(this.#own(userId, id));
    }

    /**
     * Makes a token of an account; the answer is the only one that has it.
     *
     * @throws FORBIDDEN 40300 with the permission that the owner lacks, VALIDATION_FAILED 40001, CONFLICT 40900 for the name
     */
    async create(
        call: Call,
        userId: number,
        input: NewApiToken
    ): Promise<Reply<ApiTokenView & { readonly token: string }>> {
        const now = this.#clock.now();
        const permissions = [...new Set(input.permissions ?? [])].sort();
        const expiresAt =
            input.expiresAt == null ? now + defaultDays * 24 * 3600_000 : Date.parse(input.expiresAt);
        if (!(expiresAt > now)) {
            throw invalid({ path: 'expiresAt', message: 'expiresAt must be a time to come' });
        }
        const secret = `${tokenPrefix}${randomBytes(32).toString('base64url')}`;
        return this.#db.write(async (tx) => {
            const owner = this.#accounts.get(userId);
            if (owner === undefined) {
                throw fail.NOT_FOUND(null, { message: 'There is no user who could own the token' });
            }
            const missing = permissions.find((permission) => !owner.allowed.has(permission));
            if (missing !== undefined) {
                throw fail.FORBIDDEN({ permission: missing });
            }
            const own = this.list(userId).filter((each) => each.plugin === null && each.clientId === null);
            if (own.some(({ name }) => name === input.name)) {
                throw fail.CONFLICT({ field: 'name' });
            }
            if (own.length >= mostOfOneUser) {
                throw invalid({ path: 'name', message: `There are ${mostOfOneUser} tokens already` });
            }
            const token = await this.add(tx, {
                userId,
                name: input.name,
                hash: hashOf(secret),
                permissions,
                createdAt: now,
                expiresAt,
                lastUsedAt: null,
                revokedAt: null,
                plugin: null,
                routes: null,
                clientId: null,
                resource: null
            });
            const after = viewOf(token);
            return call.complete(tx, {
                action: 'create',
                resource: 'tokens',
                resourceId: token.id,
                before: null,
                after,
                reply: reply.created(`/api/auth/tokens/${token.id}`, { ...after, token: secret })
            });
        });
    }

    /** @throws NOT_FOUND 40400, also for another user's */
    async revoke(call: Call, userId: number, id: number): Promise<void> {
        await this.#db.write(async (tx) => {
            const token = this.#own(userId, id);
            await this.end(tx, [token]);
            await call.complete(tx, {
                action: 'delete',
                resource: token.plugin !== null ? 'mandates' : token.clientId !== null ? 'grants' : 'tokens',
                resourceId: id,
                before: viewOf(token),
                after: null,
                reply: null
            });
        });
    }

    async endOf(tx: Transaction, userId: number): Promise<void> {
        await this.end(
            tx,
            [...this.#byHash.values()].filter((token) => token.userId === userId && token.revokedAt === null)
        );
    }

    /** Notes that a token is in use: at once in memory, later on disk. */
    touch(token: ApiToken, now: number): void {
        if (token.lastUsedAt === null || now - token.lastUsedAt >= usedEveryMs) {
            token.lastUsedAt = now;
            this.#used.add(token);
        }
    }

    async flush(): Promise<void> {
        if (this.#used.size === 0) {
            return;
        }
        const used = [...this.#used];
        this.#used.clear();
        await this.#db.write(async (tx) => {
            for (const { id, lastUsedAt } of used) {
                await tx.em.nativeUpdate(ApiTokenEntity, { id }, { lastUsedAt });
            }
        });
    }

    #own(userId: number, id: number): ApiToken {
        const token = this.byId(id);
        if (token === undefined || token.userId !== userId || token.revokedAt !== null) {
            throw fail.NOT_FOUND();
        }
        return token;
    }

    /** Makes the row of a token, mandate or grant; it is known once the transaction is durable. */
    async add(tx: Transaction, row: Omit<ApiToken, 'id'>): Promise<ApiToken> {
        await this.#prune(tx, this.#clock.now());
        const id = await tx.em.insert(ApiTokenEntity, {
            ...row,
            permissions: [...row.permissions],
            routes: row.routes === null ? null : [...row.routes]
        });
        const token: ApiToken = { id, ...row };
        tx.afterCommit(() => this.#byHash.set(token.hash, token));
        return token;
    }

    /** Ends tokens, mandates and grants, which are not ended yet. */
    async end(tx: Transaction, tokens: readonly ApiToken[]): Promise<void> {
        if (tokens.length === 0) {
            return;
        }
        const revokedAt = this.#clock.now();
        await tx.em.nativeUpdate(ApiTokenEntity, { id: { $in: tokens.map(({ id }) => id) } }, { revokedAt });
        tx.afterCommit(() =>
            tokens.forEach((token) => {
                token.revokedAt = revokedAt;
                this.#used.delete(token);
                this.#listeners.forEach((listener) => listener(token));
            })
        );
    }

    /** Lets a grant last longer. */
    async extend(tx: Transaction, token: ApiToken, expiresAt: number): Promise<void> {
        await tx.em.nativeUpdate(ApiTokenEntity, { id: token.id }, { expiresAt });
        tx.afterCommit(() => {
            token.expiresAt = expiresAt;
        });
    }

    /** The grants that live, of one client or of one account. */
    grants(of: { readonly clientId?: string; readonly userId?: number }): ApiToken[] {
        const now = this.#clock.now();
        return [...this.#byHash.values()].filter(
            (token) =>
                token.clientId !== null &&
                token.revokedAt === null &&
                token.expiresAt > now &&
                (of.clientId === undefined || token.clientId === of.clientId) &&
                (of.userId === undefined || token.userId === of.userId)
        );
    }

    /** Tokens that could not be used for a month are deleted. */
    async #prune(tx: Transaction, now: number): Promise<void> {
        const old = [...this.#byHash.values()].filter(
            (token) =>
                token.expiresAt < now - rememberedMs ||
                (token.revokedAt !== null && token.revokedAt < now - rememberedMs)
        );
        if (old.length === 0) {
            return;
        }
        await tx.em.nativeDelete(ApiTokenEntity, { id: { $in: old.map(({ id }) => id) } });
        tx.afterCommit(() => old.forEach((token) => this.#byHash.delete(token.hash)));
    }
}

function hashOf(secret: string): string {
    return hash('sha256', secret, 'base64url');
}
