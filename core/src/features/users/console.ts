/** Accounts from the console, when no account can log in: the first admin, another admin, a new password. */
import { randomInt } from 'node:crypto';

import type { Call } from '../../platform/call.ts';
import type { Database } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { Accounts } from './accounts/accounts.ts';
import { UserEntity } from './entities.ts';
import { usernamePattern } from './schema.ts';
import type { Logins, Users, UserView } from './users.ts';

/** An account that can log in now, with its password when it was generated. */
export interface Opened {
    readonly id: number;
    readonly username: string;
    /** The generated password, to be shown once; null when the password was given. */
    readonly password: string | null;
}

/** What a reset of a password does. */
export interface ResetOptions {
    /** The new password; one is generated without it. */
    readonly password?: string | undefined;
    /** Removes the second factor too. */
    readonly secondFactor?: boolean | undefined;
}

/** What {@link Console} needs. */
export interface ConsoleDependencies {
    readonly db: Database;
    readonly accounts: Accounts;
    readonly users: Users;
    readonly logins: Logins;
}

const alphabet = 'abcdefghjkmnpqrstuvwxyz23456789';
const groups = 5;
const groupLength = 4;

/** Creates and reopens accounts without a login. */
export class Console {
    readonly #db: Database;
    readonly #accounts: Accounts;
    readonly #users: Users;
    readonly #logins: Logins;

    constructor({ db, accounts, users, logins }: ConsoleDependencies) {
        this.#db = db;
        this.#accounts = accounts;
        this.#users = users;
        this.#logins = logins;
    }

    /**
     * Creates `admin` when there is no account at all; otherwise returns null. A database that cannot be read has thrown before, so no
     * account means a first start.
     *
     * @throws Error when the password that was given is too weak
     */
    async firstRun(call: Call, password: string | null): Promise<Opened | null> {
        if (this.#accounts.size > 0 || (await this.#db.read((em) => em.count(UserEntity))) > 0) {
            return null;
        }
        try {
            return await this.createAdmin(call, 'admin', password ?? undefined);
        } catch (error) {
            const faults = (error as { data?: { errors?: readonly { message: string }[] } | null }).data
                ?.errors;
            throw faults === undefined
                ? error
                : new Error(
                      `PORTICO_ADMIN_PASSWORD cannot be used: ${faults.map(({ message }) => message).join('; ')}`
                  );
        }
    }

    /** Creates an admin. A generated password must be changed at the first login. @throws CONFLICT 40900, VALIDATION_FAILED 40001 */
    async createAdmin(call: Call, username: string, password?: string): Promise<Opened> {
        if (!usernamePattern.test(username)) {
            throw invalid({
                path: 'username',
                message: 'username must be 3 to 64 letters, digits, dots, dashes, underscores or @'
            });
        }
        const generated = password === undefined ? randomPassword() : null;
        const passwordHash = await this.#accounts.hash(username, password ?? generated ?? '', 'password');
        const row = await this.#db.write(async (tx) => {
            const inserted = await this.#users.insert(tx, {
                username,
                passwordHash,
                role: 'admin',
                mustChangePassword: generated !== null
            });
            return call.complete(tx, {
                action: 'create',
                resource: 'users',
                resourceId: inserted.id,
                after: { username, role: 'admin', mustChangePassword: generated !== null },
                reply: inserted
            });
        });
        return { id: row.id, username, password: generated };
    }

    /** Sets a new password, enables the account, forgets its failed logins and ends its sessions. @throws NOT_FOUND 40400, VALIDATION_FAILED 40001 */
    async resetPassword(call: Call, username: string, options: ResetOptions = {}): Promise<Opened> {
        const account = this.#accounts.named(username);
        if (account === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no user ${username}` });
        }
        const { id } = account;
        const generated = options.password === undefined ? randomPassword() : null;
        const passwordHash = await this.#accounts.hash(
            account.username,
            options.password ?? generated ?? '',
            'password'
        );
        await this.#db.writeEssential(async (tx) => {
            await this.#accounts.setPassword(tx, id, passwordHash, generated !== null);
            await tx.em.nativeUpdate(UserEntity, { id }, { disabled: false });
            await this.#logins.endSessions(tx, id, null);
            await this.#logins.forgive(tx, id, account.username);
            if (options.secondFactor === true) {
                await this.#logins.removeSecondFactor(tx, id);
            }
            const after: Partial<UserView> & { password: string } = {
                password: 'changed',
                disabled: false,
                mustChangePassword: generated !== null
            };
            await call.complete(tx, {
                action: 'update',
                resource: 'users',
                resourceId: id,
                before: { disabled: account.disabled, mustChangePassword: account.mustChangePassword },
                after,
                reply: null
            });
        });
        return { id, username: account.username, password: generated };
    }
}

/** A password of about 99 bits, easy to read aloud. */
export function randomPassword(): string {
    return Array.from({ length: groups }, () =>
        Array.from({ length: groupLength }, () => alphabet[randomInt(alphabet.length)]).join('')
    ).join('-');
}
