/** From a user name to a session, in this order: throttle, proof of work, password, second factor. And from a refresh token to the next pair. */
import { createHash } from 'node:crypto';

import { type FailureError, isFailure } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import type { Account, Accounts, AuthSettings, LoginHooks, Proof } from '../ports.ts';
import { type Committed, entryOf, unwrap } from '../record.ts';
import type { TokenSigner } from '../tokens/jwt.ts';
import type { Session, Sessions } from '../tokens/sessions.ts';
import type { Challenge, Challenges } from './challenge.ts';
import type { Pace } from './pace.ts';
import type { SecondFactors } from './second-factor.ts';
import type { Attempt, Throttle } from './throttle.ts';

/** The body of a login. */
export interface LoginInput {
    readonly username: string;
    readonly password: string;
    /** Base64 payload of the solved challenge. */
    readonly altcha?: string | null | undefined;
    /** Six digits, or a recovery code. */
    readonly totp?: string | null | undefined;
}

/** Times are RFC 3339. */
export interface TokenPair {
    readonly token: string;
    readonly expiresAt: string;
    readonly refreshToken: string;
    readonly refreshExpiresAt: string;
}

/** Oneself, as login and `me` show it. */
export interface SelfView {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    readonly permissions: readonly string[];
    readonly totpEnabled: boolean;
    readonly mustChangePassword: boolean;
}

/** What `Login` is built from. */
export interface LoginDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly recorder: Recorder;
    readonly accounts: Accounts;
    readonly settings: AuthSettings;
    readonly signer: TokenSigner;
    readonly challenges: Challenges;
    readonly throttle: Throttle;
    readonly pace: Pace;
    readonly sessions: Sessions;
    readonly secondFactors: SecondFactors;
    readonly hooks: LoginHooks;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Logs users in, and exchanges refresh tokens for new pairs. */
export class Login {
    readonly #in: LoginDependencies;

    constructor(dependencies: LoginDependencies) {
        this.#in = dependencies;
    }

    /** @throws RATE_LIMITED 42900 */
    challenge(call: Call): Challenge {
        this.#in.pace.step(call.ip);
        return this.#in.challenges.create();
    }

    /**
     * @throws RATE_LIMITED 42900, CHALLENGE_REQUIRED 40111, CHALLENGE_INVALID 40112, CREDENTIALS_INVALID 40110 (the same for an unknown user, a
     * wrong password and a disabled account), TOTP_REQUIRED 40113, TOTP_INVALID 40114
     */
    async login(call: Call, input: LoginInput): Promise<TokenPair & { readonly user: SelfView }> {
        using attempt = await this.#begin(call, input);
        const proof = await this.#admitted(call, input);
        const session = unwrap(
            await this.#in.db.writeEssential((tx) => this.#enter(tx, call, input, attempt, proof))
        );
        const account = this.#in.accounts.get(session.userId) ?? proof?.account;
        if (account === undefined) {
            throw fail.TOKEN_REVOKED();
        }
        this.#in.hooks.afterLogin({
            userId: account.id,
            username: account.username,
            ip: call.ip,
            userAgent: call.userAgent,
            newNetwork: !attempt.known
        });
        return { ...this.#pair(session), user: this.self(account) };
    }

    /**
     * Spends a refresh token. The one that was spent last gets the same pair again for 30 s; any other that was spent before has been copied:
     * its session ends.
     *
     * @throws UNAUTHENTICATED 40100, TOKEN_INVALID 40101, TOKEN_EXPIRED 40102, TOKEN_REVOKED 40103
     */
    async refresh(call: Call, bearer: string | null): Promise<TokenPair> {
        const { db, clock, recorder, sessions, signer, settings, accounts } = this.#in;
        const refuse = async (failure: FailureError): Promise<never> => {
            await recorder.refused(entryOf(call, { action: 'refresh', code: failure.code }));
            throw failure;
        };
        let claims;
        try {
            claims = signer.verify('refresh', bearer ?? '', clock.now());
        } catch (error) {
            return refuse(bearer === null ? fail.UNAUTHENTICATED() : (error as FailureError));
        }
        const account = accounts.get(Number(claims.sub));
        if (account === undefined || account.disabled || sessions.get(claims.sid)?.userId !== account.id) {
            return refuse(fail.TOKEN_REVOKED());
        }
        const who = { id: account.id, username: account.username };
        const settled = await db.writeEssential(async (tx): Promise<Committed<Session>> => {
            const session = sessions.get(claims.sid);
            if (session === undefined) {
                return { failure: fail.TOKEN_REVOKED() };
            }
            const outcome = await sessions.rotate(
                tx,
                session,
                claims.jti,
                clock.now() + settings.get('panel.refreshTokenDays') * dayMs
            );
            if (outcome === 'reused') {
                await sessions.end(tx, session);
                await recorder.record(
                    tx,
                    entryOf(call, {
                        action: 'revoke',
                        resource: 'sessions',
                        resourceId: session.id,
                        code: 40103,
                        after: { reason: 'a spent refresh token came back' },
                        who
                    })
                );
                return { failure: fail.TOKEN_REVOKED() };
            }
            await recorder.record(
                tx,
                entryOf(call, {
                    action: 'refresh',
                    resourceId: session.id,
                    code: 0,
                    who,
                    ...(outcome === 'repeated' ? { after: { repeated: true } } : {})
                })
            );
            return { done: session };
        });
        return this.#pair(unwrap(settled));
    }

    self({ id, username, role, permissions, mustChangePassword }: Account): SelfView {
        return {
            id,
            username,
            role,
            permissions,
            totpEnabled: this.#in.secondFactors.has(id),
            mustChangePassword
        };
    }

    /** Compares the password, and asks the plugins. A refusal by a plugin is answered like a wrong password. */
    async #admitted(call: Call, input: LoginInput): Promise<Proof | null> {
        const proof = await this.#in.accounts.authenticate(input.username, input.password);
        if (
            proof === null ||
            (await this.#in.hooks.beforeLogin({
                username: proof.account.username,
                ip: call.ip,
                userAgent: call.userAgent
            }))
        ) {
            return proof;
        }
        return null;
    }

    async #begin(call: Call, input: LoginInput): Promise<Attempt> {
        const { throttle, challenges, pace, recorder } = this.#in;
        let attempt: Attempt | null = null;
        try {
            attempt = throttle.begin(input.username, call.ip);
            await challenges.spend(input.altcha);
            return attempt;
        } catch (error) {
            attempt?.[Symbol.dispose]();
            if (isFailure(error)) {
                await recorder.refused(
                    entryOf(call, {
                        action: 'login_failed',
                        code: error.code,
                        who: { id: null, username: input.username }
                    })
                );
                if (error.reason === 'CHALLENGE_INVALID') {
                    pace.step(call.ip);
                }
            }
            throw error;
        }
    }

    /** Everything that a login changes, in one transaction; failures are counted in it, too. */
    async #enter(
        tx: Transaction,
        call: Call,
        input: LoginInput,
        attempt: Attempt,
        proof: Proof | null
    ): Promise<Committed<Session>> {
        const { accounts, sessions, secondFactors, recorder, settings, clock } = this.#in;
        if (proof === null || !(await accounts.stillProven(tx, proof))) {
            return this.#failed(tx, call, input, attempt, fail.CREDENTIALS_INVALID());
        }
        const { account } = proof;
        if (secondFactors.has(account.id)) {
            const code = input.totp ?? '';
            if (code === '') {
                return this.#failed(
                    tx,
                    call,
                    input,
                    null,
                    fail.TOTP_REQUIRED({ challenge: this.#in.challenges.create() })
                );
            }
            const attempted = await secondFactors.use(tx, account.id, code);
            if (attempted.outcome === 'closed') {
                return this.#failed(
                    tx,
                    call,
                    input,
                    null,
                    fail.RATE_LIMITED({ retryAfterSeconds: attempted.seconds })
                );
            }
            if (attempted.outcome === 'wrong') {
                const settled = await this.#failed(
                    tx,
                    call,
                    input,
                    attempt,
                    fail.TOTP_INVALID({ challenge: this.#in.challenges.create() })
                );
                if (attempted.closed) {
                    await this.#closed(tx, call, input, { closed: ['second step'] });
                }
                return settled;
            }
        }
        await accounts.loggedIn(tx, proof);
        const session = await sessions.create(tx, {
            userId: account.id,
            ip: call.ip ?? '',
            userAgent: call.userAgent,
            expiresAt: clock.now() + settings.get('panel.refreshTokenDays') * dayMs
        });
        await attempt.succeeded(tx);
        await recorder.record(
            tx,
            entryOf(call, {
                action: 'login',
                resourceId: session.id,
                code: 0,
                who: { id: account.id, username: account.username }
            })
        );
        return { done: session };
    }

    async #failed(
        tx: Transaction,
        call: Call,
        input: LoginInput,
        attempt: Attempt | null,
        failure: FailureError
    ): Promise<Committed<Session>> {
        await this.#in.recorder.record(
            tx,
            entryOf(call, {
                action: 'login_failed',
                code: failure.code,
                who: { id: null, username: input.username }
            })
        );
        const counted = await attempt?.failed(tx, failure.reason === 'TOTP_INVALID' ? 'code' : 'password');
        if (counted !== undefined && counted.closed.length > 0) {
            await this.#closed(tx, call, input, { closed: counted.closed, seconds: counted.seconds });
        }
        return { failure };
    }

    async #closed(tx: Transaction, call: Call, input: LoginInput, after: unknown): Promise<void> {
        await this.#in.recorder.record(
            tx,
            entryOf(call, {
                action: 'lockout',
                code: 42900,
                after,
                who: { id: null, username: input.username }
            })
        );
    }

    /** The same session gives the same pair until its refresh token is spent. */
    #pair(session: Session): TokenPair {
        const { settings, signer } = this.#in;
        const issuedAt = session.spentAt ?? session.createdAt;
        const id = createHash('sha256').update(session.refreshId).digest('base64url').slice(0, 16);
        const expiresAt = Math.min(
            issuedAt + settings.get('panel.accessTokenMinutes') * minuteMs,
            session.expiresAt
        );
        const common = { userId: session.userId, sessionId: session.id, issuedAt };
        return {
            token: signer.sign('access', { ...common, id, expiresAt }),
            expiresAt: second(expiresAt),
            refreshToken: signer.sign('refresh', {
                ...common,
                id: session.refreshId,
                expiresAt: session.expiresAt
            }),
            refreshExpiresAt: second(session.expiresAt)
        };
    }
}

/** An end as ISO time, rounded down to a second: tokens hold their end in whole seconds, and the answer shows the same. */
function second(at: number): string {
    return new Date(Math.floor(at / 1000) * 1000).toISOString();
}
