/**
 * Grants: a user lets an OAuth client call one protected resource with some of the user's permissions. A grant is a row among the user's API
 * tokens, listed and revoked there. It ends whole: with a code or refresh token that comes twice, with its client, and with its user.
 */
import { hash, randomUUID } from 'node:crypto';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import type { Accounts } from '../ports.ts';
import { entryOf, type Happened } from '../record.ts';
import { type ApiToken, viewOf } from '../tokens/api-token.ts';
import type { ApiTokens } from '../tokens/api-tokens.ts';
import type { OAuthClients } from './clients.ts';
import { OAuthRefusal, type RefusalCode } from './refusal.ts';
import type { OAuthTokens, StoredToken, TokenPair } from './tokens.ts';

/** What a user gives, and to whom. */
export interface NewGrant {
    readonly client: { readonly id: string; readonly name: string };
    readonly permissions: readonly string[];
    /** Path of the protected resource. */
    readonly resource: string;
    readonly redirectUri: string;
    /** PKCE, S256. */
    readonly challenge: string;
}

/** The form fields of `/token` and `/revoke`. */
export type Form = Readonly<Record<string, string>>;

/** The answer of `/token` (RFC 6749, section 5.1). */
export interface TokenAnswer {
    readonly access_token: string;
    readonly token_type: 'Bearer';
    readonly expires_in: number;
    readonly refresh_token: string;
    readonly scope: string;
}

/** What {@link Grants} needs. */
export interface GrantsDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly recorder: Recorder;
    readonly accounts: Accounts;
    readonly apiTokens: ApiTokens;
    readonly tokens: OAuthTokens;
    readonly clients: OAuthClients;
}

/** How a transaction ended that is committed although the client is refused: the end of a grant must last. */
type Decision<T> = { readonly done: T } | { readonly refusal: OAuthRefusal };

const codeMs = 60_000;
const mostOfOneUser = 100;
const verifierForm = /^[A-Za-z0-9._~-]{43,128}$/;

/** Grants: given, exchanged for tokens, prolonged and ended. */
export class Grants {
    readonly #in: GrantsDependencies;

    constructor(dependencies: GrantsDependencies) {
        this.#in = dependencies;
    }

    /**
     * Gives a grant of the person who calls. Of more than a hundred the one unused for longest ends.
     *
     * @param answer - makes the reply of the code
     * @throws FORBIDDEN 40300 with the permission that the giver lacks
     */
    async give<T>(call: Call, given: NewGrant, answer: (code: string) => T): Promise<T> {
        const { db, clock, apiTokens, accounts, tokens } = this.#in;
        const userId = call.actor.id ?? 0;
        return db.write(async (tx) => {
            const giver = accounts.get(userId);
            const missing = given.permissions.find((permission) => giver?.allowed.has(permission) !== true);
            if (missing !== undefined) {
                throw fail.FORBIDDEN({ permission: missing });
            }
            const usedAt = (grant: ApiToken): number => grant.lastUsedAt ?? grant.createdAt;
            const idle = apiTokens
                .grants({ userId })
                .sort((a, b) => usedAt(b) - usedAt(a))
                .slice(mostOfOneUser - 1);
            await apiTokens.end(tx, idle);
            const now = clock.now();
            const grant = await apiTokens.add(tx, {
                userId,
                name: given.client.name,
                hash: `grant ${randomUUID()}`, // of no secret: no bearer has it
                permissions: given.permissions,
                createdAt: now,
                expiresAt: now + codeMs,
                lastUsedAt: null,
                revokedAt: null,
                plugin: null,
                routes: null,
                clientId: given.client.id,
                resource: given.resource
            });
            const code = await tokens.issueCode(tx, grant, given);
            return call.complete(tx, {
                action: 'create',
                resource: 'grants',
                resourceId: grant.id,
                before: null,
                after: viewOf(grant),
                reply: answer(code)
            });
        });
    }

    /**
     * A code for the first pair. Whatever comes of it the code is gone, and with a wrong or second use its grant.
     *
     * @param target - path of the `resource` that the client names; undefined when it names none
     * @throws OAuthRefusal
     */
    async exchange(call: Call, form: Form, target: string | undefined): Promise<TokenAnswer> {
        const token = required(form, 'code');
        const clientId = this.#clientOf(form);
        const verifier = required(form, 'code_verifier');
        return this.#decide(token, 'code', async (tx, code, grant) => {
            const fault =
                code.spentAt !== null
                    ? 'The code was used before'
                    : code.expiresAt <= this.#in.clock.now()
                      ? 'The code has expired'
                      : clientId !== grant.clientId
                        ? 'The code is of another client'
                        : (form['redirect_uri'] ?? code.redirectUri) !== code.redirectUri
                          ? 'redirect_uri differs from the one that the code was asked for with'
                          : (target ?? grant.resource) !== grant.resource
                            ? 'resource differs from the one that the code was asked for with'
                            : !proves(verifier, code.challenge)
                              ? 'code_verifier does not fit the challenge'
                              : null;
            return fault === null
                ? this.#issue(tx, call, grant, code, token)
                : this.#end(tx, call, grant, fault);
        });
    }

    /**
     * A refresh token for the next pair. One that was spent before the last one has been copied: its grant ends.
     *
     * @param target - path of the `resource` that the client names; undefined when it names none
     * @throws OAuthRefusal
     */
    async refresh(call: Call, form: Form, target: string | undefined): Promise<TokenAnswer> {
        const token = required(form, 'refresh_token');
        const clientId = this.#clientOf(form);
        return this.#decide(token, 'refresh', async (tx, refresh, grant) => {
            const more = scopesOf(form['scope']).find((scope) => !grant.permissions.includes(scope));
            if (clientId !== grant.clientId || refresh.expiresAt <= this.#in.clock.now()) {
                return refused('invalid_grant', 'The refresh token has expired, or is of another client');
            }
            if ((target ?? grant.resource) !== grant.resource) {
                return refused('invalid_target', 'The grant is for another resource');
            }
            if (more !== undefined) {
                return refused('invalid_scope', `The grant does not have ${more}`);
            }
            if (refresh.spentAt === null) {
                return this.#issue(tx, call, grant, refresh, token);
            }
            const pair = await this.#in.tokens.repeat(tx, refresh, token);
            if (pair === null) {
                return this.#end(tx, call, grant, 'A spent refresh token came back');
            }
            await this.#record(tx, call, grant, { action: 'refresh', code: 0, after: { repeated: true } });
            return { done: this.#answer(pair, grant) };
        });
    }

    /** Ends the grant of a token (RFC 7009). A text that is no token, and a token that has ended, are no failures. @throws OAuthRefusal */
    async revoke(call: Call, form: Form): Promise<void> {
        const { db, tokens, apiTokens } = this.#in;
        const token = required(form, 'token');
        const clientId = required(form, 'client_id');
        const decision = await db.write(async (tx): Promise<Decision<null>> => {
            const stored = await tokens.find(tx, token, ['access', 'refresh']);
            const grant = stored === null ? undefined : apiTokens.byId(stored.grantId);
            if (grant === undefined || grant.revokedAt !== null) {
                return { done: null };
            }
            if (grant.clientId !== clientId) {
                return refused('invalid_grant', 'The token is of another client');
            }
            await apiTokens.end(tx, [grant]);
            await this.#record(tx, call, grant, { action: 'delete', code: 0 });
            return { done: null };
        });
        unwrap(decision);
    }

    /** Finds the grant of a code or refresh token, and lets `work` decide in the same transaction. */
    async #decide(
        token: string,
        kind: 'code' | 'refresh',
        work: (tx: Transaction, stored: StoredToken, grant: ApiToken) => Promise<Decision<TokenAnswer>>
    ): Promise<TokenAnswer> {
        const { db, tokens, apiTokens, accounts } = this.#in;
        const decision = await db.write(async (tx): Promise<Decision<TokenAnswer>> => {
            const stored = await tokens.find(tx, token, [kind]);
            const grant = stored === null ? undefined : apiTokens.byId(stored.grantId);
            if (stored === null || grant === undefined || grant.revokedAt !== null) {
                return refused(
                    'invalid_grant',
                    `The ${kind === 'code' ? 'code' : 'refresh token'} is not valid`
                );
            }
            return accounts.get(grant.userId)?.disabled === false
                ? work(tx, stored, grant)
                : refused('invalid_grant', 'The user may not log in');
        });
        return unwrap(decision);
    }

    async #issue(
        tx: Transaction,
        call: Call,
        grant: ApiToken,
        spent: StoredToken,
        token: string
    ): Promise<Decision<TokenAnswer>> {
        const pair = await this.#in.tokens.issuePair(tx, grant, spent, token);
        await this.#record(tx, call, grant, {
            action: spent.challenge === null ? 'refresh' : 'exchange',
            code: 0
        });
        return { done: this.#answer(pair, grant) };
    }

    async #end<T>(tx: Transaction, call: Call, grant: ApiToken, reason: string): Promise<Decision<T>> {
        await this.#in.apiTokens.end(tx, [grant]);
        await this.#record(tx, call, grant, { action: 'revoke', code: 40103, after: { reason } });
        return { refusal: new OAuthRefusal('invalid_grant', reason) };
    }

    async #record(
        tx: Transaction,
        call: Call,
        { id, userId }: ApiToken,
        happened: Pick<Happened, 'action' | 'code' | 'after'>
    ): Promise<void> {
        const who = { id: userId, username: this.#in.accounts.get(userId)?.username ?? null };
        await this.#in.recorder.record(
            tx,
            entryOf(call, { ...happened, resource: 'grants', resourceId: id, who })
        );
    }

    #answer({ access, refresh, accessExpiresAt }: TokenPair, { permissions }: ApiToken): TokenAnswer {
        return {
            access_token: access,
            token_type: 'Bearer',
            expires_in: Math.max(0, Math.floor((accessExpiresAt - this.#in.clock.now()) / 1000)),
            refresh_token: refresh,
            scope: permissions.join(' ')
        };
    }

    /** @throws OAuthRefusal `invalid_client` for a client whose registration is gone: it registers again */
    #clientOf(form: Form): string {
        const id = required(form, 'client_id');
        if (!this.#in.clients.mayExist(id)) {
            throw new OAuthRefusal('invalid_client', 'The client is not registered here');
        }
        return id;
    }
}

function unwrap<T>(decision: Decision<T>): T {
    if ('refusal' in decision) {
        throw decision.refusal;
    }
    return decision.done;
}

/** The permissions of a `scope` (RFC 6749, section 3.3). */
export function scopesOf(scope = ''): readonly string[] {
    return [...new Set(scope.split(' ').filter((each) => each !== ''))].sort();
}

/** @throws OAuthRefusal `invalid_request` */
function required(form: Form, name: string): string {
    const value = form[name] ?? '';
    if (value === '') {
        throw new OAuthRefusal('invalid_request', `${name} is required`);
    }
    return value;
}

function refused(error: RefusalCode, description: string): { readonly refusal: OAuthRefusal } {
    return { refusal: new OAuthRefusal(error, description) };
}

/** Compares what a client shows with the hash that it gave before (RFC 7636, section 4.6). */
function proves(verifier: string, challenge: string | null): boolean {
    return (
        challenge !== null &&
        verifierForm.test(verifier) &&
        hash('sha256', verifier, 'base64url') === challenge
    );
}
