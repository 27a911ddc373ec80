/** The second factor: TOTP (RFC 6238) with codes that work once ever, and recovery codes. */
import { createHmac, createSecretKey, type KeyObject, randomBytes, randomInt } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import { RecoveryCodeEntity, SecondFactorEntity } from '../entities.ts';

/** What an authenticator app is set up with. */
export interface Enrolment {
    /** Base32, 160 bits. */
    readonly secret: string;
    /** `otpauth://…` */
    readonly uri: string;
    /** The same as a picture: an SVG data URI. */
    readonly qr: string;
}

/** A second factor on its way from one panel to another. */
export interface MovedFactor {
    /** Base32. */
    readonly secret: string;
    /** The last time step whose code was used. */
    readonly lastStep: number;
    /** What the codes are hashed under; null: by an older version, under a key of its panel. */
    readonly salt: string | null;
    /** Hashes. */
    readonly recoveryCodes: string[];
}

interface FactorRow {
    readonly secret: string;
    readonly last_step: number;
    readonly recovery_salt: string | null;
}

/** How an attempt at the second step ended; it is counted in the transaction that asked. */
export type Attempted =
    | { readonly outcome: 'right' }
    | { readonly outcome: 'wrong'; readonly closed: boolean }
    | { readonly outcome: 'closed'; readonly seconds: number };

/** What `SecondFactors` is built from. */
export interface SecondFactorsDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly keyring: Keyring;
}

const label = 'auth second factor';
const period = 30;
const secretBytes = 20;
const wrongAllowed = 5;
const windowMs = 15 * 60_000;
const recoveryCount = 10;
/** 24 characters of 32: 120 bits, so a plain keyed hash is enough. */
const recoveryAlphabet = 'abcdefghijklmnopqrstuvwxyz234567';
const recoveryGroups = 4;
const recoveryGroupLength = 6;
const saltBytes = 32;

/** One-time passwords (RFC 6238) and recovery codes of the accounts. */
export class SecondFactors {
    readonly #clock: Clock;
    readonly #keyring: Keyring;
    readonly #recoveryKey: KeyObject;
    readonly #enabled = new Set<number>();
    readonly #row: Statement<[number], FactorRow>;
    readonly #codes: Statement<[number], { hash: string }>;

    constructor({ db, clock, keyring }: SecondFactorsDependencies) {
        this.#clock = clock;
        this.#keyring = keyring;
        this.#recoveryKey = createSecretKey(keyring.derive('auth recovery codes'));
        this.#row = db.prepare(
            'select secret, last_step, recovery_salt from auth_second_factors where user_id = ? and secret is not null'
        );
        this.#codes = db.prepare('select hash from auth_recovery_codes where user_id = ? order by hash');
        for (const row of db
            .prepare<[], { user_id: number }>(
                'select user_id from auth_second_factors where secret is not null'
            )
            .all()) {
            this.#enabled.add(row.user_id);
        }
    }

    /** As of the last commit. */
    has(userId: number): boolean {
        return this.#enabled.has(userId);
    }

    /** The active one, opened, as of the last commit. */
    read(userId: number): MovedFactor | null {
        const row = this.#row.get(userId);
        return row === undefined
            ? null
            : {
                  secret: this.#keyring.open(label, row.secret),
                  lastStep: row.last_step,
                  salt: row.recovery_salt,
                  recoveryCodes:
                      row.recovery_salt === null ? [] : this.#codes.all(userId).map(({ hash }) => hash)
              };
    }

    /** Puts one from another panel in place; what was used there stays used. */
    async put(
        tx: Transaction,
        userId: number,
        { secret, lastStep, salt, recoveryCodes }: MovedFactor
    ): Promise<void> {
        await tx.em.insert(SecondFactorEntity, {
            userId,
            secret: this.#keyring.seal(label, secret),
            pending: null,
            lastStep,
            wrongAt: [],
            closedUntil: 0,
            recoverySalt: salt
        });
        if (salt !== null && recoveryCodes.length > 0) {
            await tx.em.insertMany(
                RecoveryCodeEntity,
                recoveryCodes.map((hash) => ({ hash, userId }))
            );
        }
        tx.afterCommit(() => this.#enabled.add(userId));
    }

    /** Makes a secret that waits to be confirmed; an active one stays as it is. */
    async enrol(tx: Transaction, userId: number, username: string): Promise<Enrolment> {
        const [{ generateSecret, generateURI }, { renderSVG }] = await Promise.all([
            import('otplib'),
            import('uqr')
        ]);
        const secret = generateSecret({ length: secretBytes });
        const pending = this.#keyring.seal(label, secret);
        const row = await tx.em.findOne(SecondFactorEntity, { userId });
        if (row === null) {
            await tx.em.insert(SecondFactorEntity, {
                userId,
                secret: null,
                pending,
                lastStep: 0,
                wrongAt: [],
                closedUntil: 0,
                recoverySalt: null
            });
        } else {
            await tx.em.nativeUpdate(SecondFactorEntity, { userId }, { pending });
        }
        const uri = generateURI({ issuer: 'Portico', label: username, secret });
        return {
            secret,
            uri,
            qr: `data:image/svg+xml;base64,${Buffer.from(renderSVG(uri, { border: 2 })).toString('base64')}`
        };
    }

    /** True when a secret waits to be confirmed. */
    async isPending(tx: Transaction, userId: number): Promise<boolean> {
        return (await tx.em.count(SecondFactorEntity, { userId, pending: { $ne: null } })) > 0;
    }

    /** Confirms the waiting secret by a code of it, which is then used; it becomes the active one. Answers ten recovery codes when it was right. */
    async confirm(
        tx: Transaction,
        userId: number,
        code: string
    ): Promise<{ readonly attempt: Attempted; readonly recoveryCodes: readonly string[] }> {
        const row = await tx.em.findOne(SecondFactorEntity, { userId });
        if (row?.pending == null) {
            throw fail.NOT_FOUND(null, { message: 'No second factor waits to be confirmed' });
        }
        const { pending } = row;
        const step = this.#open(row.closedUntil) ? await this.#stepOf(pending, code, 0) : null;
        const attempt = step === null ? await this.#wrong(tx, row) : ({ outcome: 'right' } as const);
        if (step === null) {
            return { attempt, recoveryCodes: [] };
        }
        const recoverySalt = randomBytes(saltBytes).toString('base64url');
        await tx.em.nativeUpdate(
            SecondFactorEntity,
            { userId },
            {
                secret: pending,
                pending: null,
                lastStep: Math.max(step, row.secret === null ? 0 : row.lastStep),
                wrongAt: [],
                closedUntil: 0,
                recoverySalt
            }
        );
        await tx.em.nativeDelete(RecoveryCodeEntity, { userId });
        const recoveryCodes = Array.from({ length: recoveryCount }, recoveryCode);
        await tx.em.insertMany(
            RecoveryCodeEntity,
            recoveryCodes.map((recovery) => ({ hash: this.#hash(userId, recovery, recoverySalt), userId }))
        );
        tx.afterCommit(() => this.#enabled.add(userId));
        return { attempt, recoveryCodes };
    }

    /** Uses up a code or a recovery code in the transaction of what it is for. */
    async use(tx: Transaction, userId: number, code: string): Promise<Attempted> {
        const row = await tx.em.findOne(SecondFactorEntity, { userId });
        if (row?.secret == null) {
            return { outcome: 'wrong', closed: false };
        }
        if (
            !this.#open(row.closedUntil) ||
            !(await this.#take(
                tx,
                {
                    userId,
                    secret: row.secret,
                    lastStep: row.lastStep,
                    recoverySalt: row.recoverySalt ?? null
                },
                code
            ))
        ) {
            return this.#wrong(tx, row);
        }
        await tx.em.nativeUpdate(SecondFactorEntity, { userId }, { wrongAt: [], closedUntil: 0 });
        return { outcome: 'right' };
    }

    /** Takes the second factor away, codes and all. Answers false when there was none. */
    async remove(tx: Transaction, userId: number): Promise<boolean> {
        const removed = await tx.em.nativeDelete(SecondFactorEntity, { userId });
        await tx.em.nativeDelete(RecoveryCodeEntity, { userId });
        tx.afterCommit(() => this.#enabled.delete(userId));
        return removed > 0 && this.#enabled.has(userId);
    }

    /** Forgets wrong attempts. What was used stays used. */
    async forgive(tx: Transaction, userId: number): Promise<void> {
        await tx.em.nativeUpdate(SecondFactorEntity, { userId }, { wrongAt: [], closedUntil: 0 });
    }

    async #take(
        tx: Transaction,
        {
            userId,
            secret,
            lastStep,
            recoverySalt
        }: { userId: number; secret: string; lastStep: number; recoverySalt: string | null },
        code: string
    ): Promise<boolean> {
        if (/^\d{6}$/.test(code)) {
            const step = await this.#stepOf(secret, code, lastStep);
            return (
                step !== null &&
                (await tx.em.nativeUpdate(
                    SecondFactorEntity,
                    { userId, lastStep: { $lt: step } },
                    { lastStep: step }
                )) === 1
            );
        }
        return (
            (await tx.em.nativeDelete(RecoveryCodeEntity, {
                userId,
                hash: this.#hash(userId, code, recoverySalt)
            })) === 1
        );
    }

    /** The time step whose code this is: the present one, or one beside it; never one at or before `after`. */
    async #stepOf(sealed: string, code: string, after: number): Promise<number | null> {
        if (!/^\d{6}$/.test(code)) {
            return null;
        }
        const { verifySync } = await import('otplib'); // many panels have no second factor, so only when it is needed
        const result = verifySync({
            secret: this.#keyring.open(label, sealed),
            token: code,
            epoch: Math.floor(this.#clock.now() / 1000),
            epochTolerance: [period, period],
            period
        });
        const step = result.valid && 'timeStep' in result ? result.timeStep : null;
        return step !== null && step > after ? step : null;
    }

    #open(closedUntil: number): boolean {
        return closedUntil <= this.#clock.now() || closedUntil > this.#clock.now() + windowMs;
    }

    async #wrong(
        tx: Transaction,
        row: { readonly userId: number; readonly wrongAt: readonly number[]; readonly closedUntil: number }
    ): Promise<Attempted> {
        const now = this.#clock.now();
        if (!this.#open(row.closedUntil)) {
            return { outcome: 'closed', seconds: Math.ceil((row.closedUntil - now) / 1000) };
        }
        const wrongAt = [...row.wrongAt.filter((at) => at > now - windowMs && at <= now), now];
        const closed = wrongAt.length >= wrongAllowed;
        await tx.em.nativeUpdate(
            SecondFactorEntity,
            { userId: row.userId },
            { wrongAt: closed ? [] : wrongAt, closedUntil: closed ? now + windowMs : 0 }
        );
        return { outcome: 'wrong', closed };
    }

    #hash(userId: number, code: string, salt: string | null): string {
        const plain = code.toLowerCase().replaceAll(/[\s-]/g, '');
        if (salt !== null) {
            return createHmac('sha256', Buffer.from(salt, 'base64url')).update(plain).digest('base64url');
        }
        return createHmac('sha256', this.#recoveryKey).update(`${userId}:${plain}`).digest('base64url');
    }
}

function recoveryCode(): string {
    return Array.from({ length: recoveryGroups }, () =>
        Array.from(
            { length: recoveryGroupLength },
            () => recoveryAlphabet[randomInt(recoveryAlphabet.length)]
        ).join('')
    ).join('-');
}
