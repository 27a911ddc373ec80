/** The accounts as every request sees them: in memory, as of the last commit, and the one place where a password is compared. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { UserEntity } from '../entities.ts';
import { checkPassword } from '../passwords/password-policy.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { Roles } from '../roles/roles.ts';

/** One account as of now. A change of anything in it makes a new object, so a holder can tell by identity. */
export interface Account {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    /** What the role may, in order. */
    readonly permissions: readonly string[];
    readonly allowed: ReadonlySet<string>;
    readonly disabled: boolean;
    readonly mustChangePassword: boolean;
}

/** A password that was right a moment ago; whoever acts on it asks again inside the transaction. */
export interface Proof {
    readonly account: Account;
    readonly passwordHash: string;
    /** The same password, hashed as it is done today; null when it is already. */
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

export interface AccountsDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly passwords: Passwords;
    readonly roles: Roles;
}

const columns = 'id, username, password_hash, role, disabled, must_change_password';

/** How two spellings of a user name are compared. */
export function usernameKey(username: string): string {
    return username.normalize('NFKC').toLowerCase();
}

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

    named(username: string): Account | undefined {
        const row = this.#byKey.get(usernameKey(username));
        return row === undefined ? undefined : this.#accounts.get(row.id);
    }

    get size(): number {
        return this.#accounts.size;
    }

    /** Calls back when an account changed, means something else, or is gone. */
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

    /** The same for somebody who is logged in already. */
    async confirm(id: number, password: string): Promise<Proof | null> {
        return this.#compare(this.#byId.get(id), password);
    }

    /** Whether a proof still holds, inside the transaction that acts on it. */
    async stillProven(tx: Transaction, proof: Proof): Promise<boolean> {
        return (
            (await tx.em.count(UserEntity, {
                id: proof.account.id,
                passwordHash: proof.passwordHash,
                disabled: false
            })) === 1
        );
    }

    /** Notes a login in the transaction that makes the session; a hash of old parameters is replaced on the way. */
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

    /** Sets a hash that {@link Accounts.hash} made. Sessions are the caller's to end. */
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

    /** To be called in every transaction that touches an account: what is in memory follows the commit. */
    changed(tx: Transaction, id: number): void {
        tx.afterCommit(() => {
            const row = this.#byId.get(id);
            this.#put(id, row === undefined ? undefined : this.#account(row));
        });
    }

    async #compare(row: Row | undefined, password: string): Promise<Proof | null> {
        const right = await this.#passwords.verify(row?.password_hash ?? this.#passwords.nobody, password);
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
