/** The accounts in memory, as of the last commit. Passwords are compared here and nowhere else. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { UserEntity } from '../entities.ts';
import { checkPassword } from '../passwords/password-policy.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { Roles } from '../roles/roles.ts';

/** One account. Every change makes a new object, so that its holders notice a change by identity. */
export interface Account {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    /** The permissions of the role, sorted. */
    readonly permissions: readonly string[];
    readonly allowed: ReadonlySet<string>;
    readonly disabled: boolean;
    readonly mustChangePassword: boolean;
}

/** A password that was right a moment ago. The transaction that relies on it checks it again with `stillProven`. */
export interface Proof {
    readonly account: Account;
    readonly passwordHash: string;
    /** The same password with the parameters of today; null when the stored hash has them. */
    readonly renewedHash: string | null;
}

interface Row {
    readonly id: number;
    readonly username: string;
    readonly password_hash: string;
    readonly role: string;
    readonly disabled: number;
    readonly must_change_password: number;
}

/** What {@link Accounts} needs. */
export interface AccountsDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly passwords: Passwords;
    readonly roles: Roles;
}

const columns = 'id, username, password_hash, role, disabled, must_change_password';

/** The form in which user names are compared: two names with the same key are the same name. */
export function usernameKey(username: string): string {
    return username.normalize('NFKC').toLowerCase();
}

/** Finds accounts and checks their passwords. */
export class Accounts {
    readonly #passwords: Passwords;
    readonly #clock: Clock;
    readonly #roles: Roles;
    readonly #accounts = new Map<number, Account>();
    readonly #listeners: ((id: number) => void)[] = [];
    readonly #byKey;
    readonly #byId;

    constructor({ db, clock, passwords, roles }: AccountsDependencies) {
        this.#passwords = passwords;
        this.#clock = clock;
        this.#roles = roles;
        this.#byKey = db.prepare<[string], Row>(`select ${columns} from users where username_key = ?`);
        this.#byId = db.prepare<[number], Row>(`select ${columns} from users where id = ?`);
        for (const row of db.prepare<[], Row>(`select ${columns} from users`).all()) {
            this.#accounts.set(row.id, this.#account(row));
        }
        roles.onChange(() => {
            for (const account of [...this.#accounts.values()]) {
                this.#put(account.id, { ...account, ...this.#rights(account.role) });
            }
        });
    }

    /** The account as of the last commit. */
    get(id: number): Account | undefined {
        return this.#accounts.get(id);
    }

    /** The account with this user name, in any spelling. */
    named(username: string): Account | undefined {
        const row = this.#byKey.get(usernameKey(username));
        return row === undefined ? undefined : this.#accounts.get(row.id);
    }

    /** How many accounts there are. */
    get size(): number {
        return this.#accounts.size;
    }

    /** Calls back when an account was changed or removed, or when its role has other permissions. */
    onChange(listener: (id: number) => void): void {
        this.#listeners.push(listener);
    }

    /**
     * Compares a password. Exactly one hash is computed whether the account exists, is disabled, or the password is wrong.
     *
     * @throws RATE_LIMITED 42900 when too many hashes wait
     */
    async authenticate(username: string, password: string): Promise<Proof | null> {
        return this.#compare(this.#byKey.get(usernameKey(username)), password);
    }

    /** {@link Accounts.authenticate} for an account that is logged in. */
    async confirm(id: number, password: string): Promise<Proof | null> {
        return this.#compare(this.#byId.get(id), password);
    }

    /** Whether a proof still holds, as the transaction sees it. */
    async stillProven(tx: Transaction, proof: Proof): Promise<boolean> {
        return (
            (await tx.em.count(UserEntity, {
                id: proof.account.id,
                passwordHash: proof.passwordHash,
                disabled: false
            })) === 1
        );
    }

    /** Records a login in the transaction that creates the session, and replaces a hash with old parameters. */
    async loggedIn(tx: Transaction, proof: Proof): Promise<void> {
        const passwordHash = proof.renewedHash ?? proof.passwordHash;
        await tx.em.nativeUpdate(
            UserEntity,
            { id: proof.account.id },
            { lastLoginAt: this.#clock.now(), passwordHash }
        );
    }

    /** Checks a new password and hashes it. @throws VALIDATION_FAILED 40001 at `path`, RATE_LIMITED 42900 */
    async hash(username: string, password: string, path: string): Promise<string> {
        checkPassword(password, path, [username, ...username.split(/[._@-]/), 'portico']);
        return this.#passwords.hash(password);
    }

    /** Sets a hash that {@link Accounts.hash} made. The caller ends the sessions. */
    async setPassword(
        tx: Transaction,
        id: number,
        passwordHash: string,
        mustChangePassword: boolean
    ): Promise<void> {
        await tx.em.nativeUpdate(
            UserEntity,
            { id },
            { passwordHash, mustChangePassword, updatedAt: this.#clock.now() }
        );
        await tx.em.execute('update users set version = version + 1 where id = ?', [id], 'run');
        this.changed(tx, id);
    }

    /** To be called in every transaction that changes an account, so that the memory follows the commit. */
    changed(tx: Transaction, id: number): void {
        tx.afterCommit(() => {
            const row = this.#byId.get(id);
            this.#put(id, row === undefined ? undefined : this.#account(row));
        });
    }

    async #compare(row: Row | undefined, password: string): Promise<Proof | null> {
        const right = await this.#passwords.verify(
            row?.password_hash ?? this.#passwords.unmatchable,
            password
        );
        const account = row === undefined ? undefined : this.#accounts.get(row.id);
        if (row === undefined || account === undefined || !right || account.disabled) {
            return null;
        }
        const renewedHash = this.#passwords.isOutdated(row.password_hash)
            ? await this.#passwords.hash(password)
            : null;
        return { account, passwordHash: row.password_hash, renewedHash };
    }

    #put(id: number, account: Account | undefined): void {
        if (account === undefined) {
            this.#accounts.delete(id);
        } else {
            this.#accounts.set(id, account);
        }
        this.#listeners.forEach((listener) => listener(id));
    }

    #account(row: Row): Account {
        return {
            id: row.id,
            username: row.username,
            role: row.role,
            ...this.#rights(row.role),
            disabled: row.disabled === 1,
            mustChangePassword: row.must_change_password === 1
        };
    }

    #rights(role: string): Pick<Account, 'permissions' | 'allowed'> {
        const permissions = this.#roles.permissionsOf(role);
        return { permissions, allowed: new Set(permissions) };
    }
}
