/** What users do to their own account: change the password, set up a second factor, and prove that it is still them. */
import type { FailureError } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { Recorder } from '../../server/http/ports.ts';
import type { Attempted, Enrolment, SecondFactors } from './login/second-factor.ts';
import type { Attempt, Throttle } from './login/throttle.ts';
import type { Account, Accounts, AuthSettings, Proof } from './ports.ts';
import { type Committed, entryOf, unwrap } from './record.ts';
import type { Session, Sessions } from './tokens/sessions.ts';

/** What `OwnAccount` is built from. */
export interface OwnAccountDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly recorder: Recorder;
    readonly accounts: Accounts;
    readonly settings: AuthSettings;
    readonly throttle: Throttle;
    readonly sessions: Sessions;
    readonly secondFactors: SecondFactors;
}

/** Until when a session counts as fresh. */
export interface Freshness {
    readonly freshUntil: string;
}

const minuteMs = 60_000;

/** Changes that users make to their own account's credentials. */
export class OwnAccount {
    readonly #in: OwnAccountDependencies;

    constructor(dependencies: OwnAccountDependencies) {
        this.#in = dependencies;
    }

    /** Other sessions end; API tokens stay. @throws CREDENTIALS_INVALID 40110, VALIDATION_FAILED 40001, RATE_LIMITED 42900 */
    async changePassword(call: Call, current: string, next: string): Promise<null> {
        const { accounts, sessions } = this.#in;
        const account = this.#account(call);
        return this.#withPassword(call, current, 'update', async (prove) => {
            if (next === current) {
                throw invalid({ path: 'newPassword', message: 'newPassword must be another one' });
            }
            const passwordHash = await accounts.hash(account.username, next, 'newPassword');
            return prove(async (tx) => {
                await accounts.setPassword(tx, account.id, passwordHash, false);
                await sessions.endOf(tx, account.id, call.actor.sessionId);
                return {
                    done: await call.complete(tx, {
                        action: 'update',
                        resource: 'users',
                        resourceId: account.id,
                        before: null,
                        after: { password: 'changed' },
                        reply: null
                    })
                };
            });
        });
    }

    /** A secret that waits to be confirmed; an active second factor works on. @throws CREDENTIALS_INVALID 40110, RATE_LIMITED 42900 */
    async enrol(call: Call, password: string): Promise<Enrolment> {
        const account = this.#account(call);
        return this.#withPassword(call, password, 'create', (prove) =>
            prove(async (tx) => {
                const enrolment = await this.#in.secondFactors.enrol(tx, account.id, account.username);
                return {
                    done: await call.complete(tx, {
                        action: 'create',
                        resource: 'totp',
                        resourceId: account.id,
                        reply: enrolment
                    })
                };
            })
        );
    }

    /**
     * Confirms the secret that waits. Where one is active already, a code of that is needed as well. Other sessions end.
     *
     * @throws NOT_FOUND 40400 when none waits, TOTP_INVALID 40114, TOTP_REQUIRED 40113, RATE_LIMITED 42900
     */
    async confirm(
        call: Call,
        code: string,
        currentCode: string | undefined
    ): Promise<{ readonly recoveryCodes: string[] }> {
        const { db, secondFactors } = this.#in;
        const { id } = this.#account(call);
        return unwrap(
            await db.write(async (tx): Promise<Committed<{ recoveryCodes: string[] }>> => {
                if (!(await secondFactors.isPending(tx, id))) {
                    throw fail.NOT_FOUND(null, { message: 'No second factor waits to be confirmed' });
                }
                if (secondFactors.has(id)) {
                    if (currentCode === undefined) {
                        return {
                            failure: fail.TOTP_REQUIRED(null, {
                                message: 'A code of the active second factor is required as currentCode'
                            })
                        };
                    }
                    const failure = await this.#refusal(
                        tx,
                        call,
                        'enable',
                        await secondFactors.use(tx, id, currentCode)
                    );
                    if (failure !== null) {
                        return { failure };
                    }
                }
                const { attempt, recoveryCodes } = await secondFactors.confirm(tx, id, code);
                const failure = await this.#refusal(tx, call, 'enable', attempt);
                if (failure !== null) {
                    return { failure };
                }
                await this.#factorChanged(tx, call, id);
                return {
                    done: await call.complete(tx, {
                        action: 'enable',
                        resource: 'totp',
                        resourceId: id,
                        reply: { recoveryCodes: [...recoveryCodes] }
                    })
                };
            })
        );
    }

    /** Takes the second factor away. @throws NOT_FOUND 40400 when there is none, CREDENTIALS_INVALID 40110, TOTP_INVALID 40114, RATE_LIMITED 42900 */
    async disable(call: Call, password: string, code: string): Promise<null> {
        const { secondFactors } = this.#in;
        const { id } = this.#account(call);
        if (!secondFactors.has(id)) {
            throw fail.NOT_FOUND(null, { message: 'There is no second factor' });
        }
        return this.#withPassword(call, password, 'disable', (prove) =>
            prove(async (tx) => {
                const failure = await this.#refusal(
                    tx,
                    call,
                    'disable',
                    await secondFactors.use(tx, id, code)
                );
                if (failure !== null) {
                    return { failure };
                }
                await secondFactors.remove(tx, id);
                await this.#factorChanged(tx, call, id);
                return {
                    done: await call.complete(tx, {
                        action: 'disable',
                        resource: 'totp',
                        resourceId: id,
                        reply: null
                    })
                };
            })
        );
    }

    /** Makes the session fresh by the password or by a code. @throws VALIDATION_FAILED 40001, CREDENTIALS_INVALID 40110, TOTP_INVALID 40114, RATE_LIMITED 42900 */
    async stepUp(
        call: Call,
        input: { readonly password?: string | undefined; readonly totp?: string | undefined }
    ): Promise<Freshness> {
        const { db, sessions, secondFactors, settings } = this.#in;
        const session = this.#session(call);
        const prove = async (tx: Transaction): Promise<Committed<Freshness>> => {
            await sessions.prove(tx, session);
            const freshUntil = new Date(
                this.#in.clock.now() + settings.get('panel.stepUpMinutes') * minuteMs
            ).toISOString();
            return {
                done: await call.complete(tx, {
                    action: 'step_up',
                    resource: 'auth',
                    resourceId: session.id,
                    reply: { freshUntil }
                })
            };
        };
        if ((input.password === undefined) === (input.totp === undefined)) {
            throw invalid({ path: 'password', message: 'password or totp is required, one of them' });
        }
        if (input.password !== undefined) {
            return this.#withPassword(call, input.password, 'step_up', (withProof) => withProof(prove));
        }
        const code = input.totp ?? '';
        return unwrap(
            await db.write(async (tx) => {
                const failure = await this.#refusal(
                    tx,
                    call,
                    'step_up',
                    await secondFactors.use(tx, session.userId, code)
                );
                return failure === null ? prove(tx) : { failure };
            })
        );
    }

    /** Compares the password outside the transaction, and once more asks inside it whether that still holds. */
    async #withPassword<T>(
        call: Call,
        password: string,
        action: string,
        work: (prove: (change: (tx: Transaction) => Promise<Committed<T>>) => Promise<T>) => Promise<T>
    ): Promise<T> {
        const { accounts, db } = this.#in;
        const account = this.#account(call);
        using attempt = await this.#begin(call, account, action);
        const proof = await accounts.confirm(account.id, password);
        if (proof === null) {
            return unwrap(await db.write((tx) => this.#wrongPassword<T>(tx, call, action, attempt)));
        }
        return await work(async (change) =>
            unwrap(await db.write((tx) => this.#proven(tx, call, action, attempt, proof, change)))
        );
    }

    async #proven<T>(
        tx: Transaction,
        call: Call,
        action: string,
        attempt: Attempt,
        proof: Proof,
        change: (tx: Transaction) => Promise<Committed<T>>
    ): Promise<Committed<T>> {
        if (!(await this.#in.accounts.stillProven(tx, proof))) {
            return this.#wrongPassword(tx, call, action, attempt);
        }
        await attempt.succeeded(tx);
        return change(tx);
    }

    async #wrongPassword<T>(
        tx: Transaction,
        call: Call,
        action: string,
        attempt: Attempt
    ): Promise<Committed<T>> {
        const failure = fail.CREDENTIALS_INVALID(null, { message: 'The password is wrong' });
        await this.#in.recorder.record(tx, entryOf(call, { action, code: failure.code }));
        const { closed, seconds } = await attempt.failed(tx, 'password');
        if (closed.length > 0) {
            await this.#in.recorder.record(
                tx,
                entryOf(call, { action: 'lockout', code: 42900, after: { closed, seconds } })
            );
        }
        return { failure };
    }

    async #begin(call: Call, account: Account, action: string): Promise<Attempt> {
        try {
            return this.#in.throttle.begin(account.username, call.ip);
        } catch (error) {
            await this.#in.recorder.recordAlone(entryOf(call, { action, code: 42900 }));
            throw error;
        }
    }

    /** What an attempt at the second step answers; null when it was right. */
    async #refusal(
        tx: Transaction,
        call: Call,
        action: string,
        attempted: Attempted
    ): Promise<FailureError | null> {
        if (attempted.outcome === 'right') {
            return null;
        }
        const failure =
            attempted.outcome === 'closed'
                ? fail.RATE_LIMITED({ retryAfterSeconds: attempted.seconds })
                : fail.TOTP_INVALID();
        await this.#in.recorder.record(tx, entryOf(call, { action, code: failure.code }));
        if (attempted.outcome === 'wrong' && attempted.closed) {
            await this.#in.recorder.record(
                tx,
                entryOf(call, { action: 'lockout', code: 42900, after: { closed: ['second step'] } })
            );
        }
        return failure;
    }

    async #factorChanged(tx: Transaction, call: Call, id: number): Promise<void> {
        await this.#in.sessions.endOf(tx, id, call.actor.sessionId);
        this.#in.accounts.changed(tx, id);
    }

    #account(call: Call): Account {
        const account = call.actor.id === null ? undefined : this.#in.accounts.get(call.actor.id);
        if (account === undefined) {
            throw fail.TOKEN_REVOKED();
        }
        return account;
    }

    #session(call: Call): Session {
        const session =
            call.actor.sessionId === null ? undefined : this.#in.sessions.get(call.actor.sessionId);
        if (session === undefined) {
            throw fail.TOKEN_REVOKED();
        }
        return session;
    }
}
