/** Accounts as admins manage them. */
import { raw } from '@mikro-orm/core';
import { type Reply, reply } from '@portico/sdk';

import type { Call, Caller } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import { readCursor, writeCursor } from '../../platform/cursor.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import { requireVersion } from '../../platform/version.ts';
import { type Accounts, usernameKey } from './accounts/accounts.ts';
import { requireAll, requireProof } from './accounts/authority.ts';
import { UserEntity } from './entities.ts';
import type { Roles } from './roles/roles.ts';

/** The port to the feature `auth`, which keeps sessions, API tokens and second factors. */
export interface Logins {
    /** Ends the sessions of the account, except the one with the id `but`. */
    endSessions(tx: Transaction, userId: number, but: number | null): Promise<void>;
    /** Ends the sessions and the API tokens of the account. */
    endAll(tx: Transaction, userId: number): Promise<void>;
    /** Whether the account has a second factor. */
    hasSecondFactor(userId: number): boolean;
    /** Removes the second factor. Returns false when there was none. */
    removeSecondFactor(tx: Transaction, userId: number): Promise<boolean>;
    /** Forgets failed logins, so that the account can log in at once. */
    forgive(tx: Transaction, userId: number, username: string): Promise<void>;
}

/** A user as the API shows it. */
export interface UserView {
    readonly id: number;
    readonly username: string;
    readonly role: string;
    readonly disabled: boolean;
    readonly totpEnabled: boolean;
    readonly mustChangePassword: boolean;
    readonly lastLoginAt: string | null;
    readonly createdAt: string;
    readonly updatedAt: string;
    readonly version: number;
}

/** What a client sends of a user. An absent field stays as it is. */
export interface UserInput {
    readonly username?: string | undefined;
    readonly password?: string | undefined;
    readonly role?: string | undefined;
    readonly disabled?: boolean | undefined;
    readonly mustChangePassword?: boolean | undefined;
    readonly version?: number | undefined;
}

/** A user to be created. */
export interface NewUser extends UserInput {
    readonly username: string;
    readonly password: string;
    readonly role: string;
}

/** Which users a list shows. */
export interface UserQuery {
    /** Part of the user name. */
    readonly q?: string | undefined;
    readonly role?: string | undefined;
    readonly disabled?: boolean | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
}

/** A row of `users`. */
export interface UserRow {
    readonly id: number;
    readonly version: number;
    readonly username: string;
    readonly usernameKey: string;
    readonly passwordHash: string;
    readonly role: string;
    readonly disabled: boolean;
    readonly mustChangePassword: boolean;
    readonly lastLoginAt?: number | null | undefined;
    readonly createdAt: number;
    readonly updatedAt: number;
}

/** What {@link Users} needs. */
export interface UsersDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly accounts: Accounts;
    readonly roles: Roles;
    readonly logins: Logins;
}

/** Lists, creates, changes and removes accounts. */
export class Users {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #accounts: Accounts;
    readonly #roles: Roles;
    readonly #logins: Logins;

    constructor({ db, clock, accounts, roles, logins }: UsersDependencies) {
        this.#db = db;
        this.#clock = clock;
        this.#accounts = accounts;
        this.#roles = roles;
        this.#logins = logins;
    }

    /** One page of the users, sorted by id. @throws VALIDATION_FAILED 40001 for a cursor that this list did not give */
    async list(query: UserQuery): Promise<Reply<readonly UserView[]>> {
        const where = {
            ...(query.q === undefined
                ? {}
                : { [raw('instr(username_key, ?)', [usernameKey(query.q)])]: { $gt: 0 } }),
            ...(query.role === undefined ? {} : { role: query.role }),
            ...(query.disabled === undefined ? {} : { disabled: query.disabled })
        };
        const after = readCursor('user', query.cursor) ?? 0;
        return this.#db.read(async (em) => {
            const rows = await em.find(
                UserEntity,
                { ...where, id: { $gt: after } },
                { orderBy: { id: 'asc' }, limit: query.limit + 1 }
            );
            const page = rows.slice(0, query.limit);
            const last = page.at(-1);
            return reply.list(
                page.map((row) => this.#view(row)),
                {
                    total: await em.count(UserEntity, where),
                    next:
                        rows.length > page.length && last !== undefined ? writeCursor('user', last.id) : null
                }
            );
        });
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<UserView> {
        return this.#db.read(async (em) => this.#view(found(await em.findOne(UserEntity, { id }))));
    }

    /** @throws VALIDATION_FAILED 40001, CONFLICT 40900 for the name, FORBIDDEN 40300, STEP_UP_REQUIRED 40301 */
    async create(call: Call, input: NewUser): Promise<Reply<UserView>> {
        requireProof(call.actor);
        this.#requireRole(call.actor, input.role);
        const passwordHash = await this.#accounts.hash(input.username, input.password, 'password');
        return this.#db.write(async (tx) => {
            this.#requireRole(call.actor, input.role);
            const row = await this.insert(tx, { ...input, passwordHash });
            const after = this.#view(row);
            return call.complete(tx, {
                action: 'create',
                resource: 'users',
                resourceId: row.id,
                before: null,
                after,
                reply: reply.created(`/api/users/${row.id}`, after)
            });
        });
    }

    /** Adds an account whose password is hashed already. @throws CONFLICT 40900 */
    async insert(
        tx: Transaction,
        input: Omit<NewUser, 'password'> & { readonly passwordHash: string }
    ): Promise<UserRow> {
        const key = usernameKey(input.username);
        await this.#requireFree(tx, key, 0);
        const at = this.#clock.now();
        const row = {
            version: 1,
            username: input.username,
            usernameKey: key,
            passwordHash: input.passwordHash,
            role: input.role,
            disabled: input.disabled ?? false,
            mustChangePassword: input.mustChangePassword ?? false,
            lastLoginAt: null,
            createdAt: at,
            updatedAt: at
        };
        const id = await tx.em.insert(UserEntity, row);
        this.#accounts.changed(tx, id);
        return { id, ...row };
    }

    /**
     * Changes an account. A new password or role ends its sessions, except the one of the call; disabling it also ends its API tokens.
     *
     * @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001, CONFLICT 40900, IN_USE 40901 for the last enabled admin,
     * FORBIDDEN 40300, STEP_UP_REQUIRED 40301 for the password and the role
     */
    async update(call: Call, id: number, input: UserInput): Promise<UserView> {
        const now = await this.#db.read(async (em) => found(await em.findOne(UserEntity, { id })));
        this.#requireMay(call.actor, now);
        if (input.password !== undefined || (input.role !== undefined && input.role !== now.role)) {
            requireProof(call.actor);
        }
        const passwordHash =
            input.password === undefined
                ? undefined
                : await this.#accounts.hash(input.username ?? now.username, input.password, 'password');
        return this.#db.write(async (tx) => {
            const row = found(await tx.em.findOne(UserEntity, { id }));
            requireVersion(call, input.version, row.version);
            this.#requireMay(call.actor, row);
            const roleChanges = input.role !== undefined && input.role !== row.role;
            if (roleChanges) {
                requireProof(call.actor);
                this.#requireRole(call.actor, input.role);
            }
            const before = this.#view(row);
            const next = {
                username: input.username ?? row.username,
                usernameKey: usernameKey(input.username ?? row.username),
                passwordHash: passwordHash ?? row.passwordHash,
                role: input.role ?? row.role,
                disabled: input.disabled ?? row.disabled,
                mustChangePassword: input.mustChangePassword ?? row.mustChangePassword,
                version: row.version + 1,
                updatedAt: this.#clock.now()
            };
            await this.#requireFree(tx, next.usernameKey, id);
            await this.#requireAdminLeft(tx, row, next);
            await tx.em.nativeUpdate(UserEntity, { id }, next);
            if (next.disabled && !row.disabled) {
                await this.#logins.endAll(tx, id);
            } else if (roleChanges || passwordHash !== undefined) {
                await this.#logins.endSessions(tx, id, call.actor.id === id ? call.actor.sessionId : null);
            }
            if (passwordHash !== undefined) {
                await this.#logins.forgive(tx, id, next.username);
            }
            this.#accounts.changed(tx, id);
            const after = this.#view({ ...row, ...next });
            const secret = passwordHash === undefined ? {} : { password: 'changed' };
            return call.complete(tx, {
                action: 'update',
                resource: 'users',
                resourceId: id,
                before,
                after: { ...after, ...secret },
                reply: after
            });
        });
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200, IN_USE 40901 for the last enabled admin, FORBIDDEN 40300 */
    async remove(call: Call, id: number): Promise<void> {
        await this.#db.write(async (tx) => {
            const row = found(await tx.em.findOne(UserEntity, { id }));
            requireVersion(call, undefined, row.version);
            this.#requireMay(call.actor, row);
            await this.#requireAdminLeft(tx, row, null);
            await this.#logins.endAll(tx, id);
            await this.#logins.removeSecondFactor(tx, id);
            await tx.em.nativeDelete(UserEntity, { id });
            this.#accounts.changed(tx, id);
            await call.complete(tx, {
                action: 'delete',
                resource: 'users',
                resourceId: id,
                before: this.#view(row),
                after: null,
                reply: null
            });
        });
    }

    /** Ends the sessions of an account, except the one of the call. @throws NOT_FOUND 40400, FORBIDDEN 40300 */
    async endSessions(call: Call, id: number): Promise<void> {
        await this.#db.write(async (tx) => {
            this.#requireMay(call.actor, found(await tx.em.findOne(UserEntity, { id })));
            await this.#logins.endSessions(tx, id, call.actor.id === id ? call.actor.sessionId : null);
            await call.complete(tx, { action: 'logout', resource: 'users', resourceId: id, reply: null });
        });
    }

    /** Removes a lost second factor. @throws NOT_FOUND 40400 also when there is none, FORBIDDEN 40300, STEP_UP_REQUIRED 40301 */
    async removeSecondFactor(call: Call, id: number): Promise<void> {
        requireProof(call.actor);
        await this.#db.write(async (tx) => {
            const row = found(await tx.em.findOne(UserEntity, { id }));
            this.#requireMay(call.actor, row);
            if (!(await this.#logins.removeSecondFactor(tx, id))) {
                throw fail.NOT_FOUND();
            }
            await this.#logins.endSessions(tx, id, call.actor.id === id ? call.actor.sessionId : null);
            this.#accounts.changed(tx, id);
            await call.complete(tx, {
                action: 'disable',
                resource: 'users',
                resourceId: id,
                before: { totpEnabled: true },
                after: { totpEnabled: false },
                reply: null
            });
        });
    }

    #view(row: Omit<UserRow, 'passwordHash' | 'usernameKey'>): UserView {
        return {
            id: row.id,
            username: row.username,
            role: row.role,
            disabled: row.disabled,
            totpEnabled: this.#logins.hasSecondFactor(row.id),
            mustChangePassword: row.mustChangePassword,
            lastLoginAt: typeof row.lastLoginAt === 'number' ? new Date(row.lastLoginAt).toISOString() : null,
            createdAt: new Date(row.createdAt).toISOString(),
            updatedAt: new Date(row.updatedAt).toISOString(),
            version: row.version
        };
    }

    /** Requires that the actor has all permissions of the account, unless it is its own. @throws FORBIDDEN 40300 */
    #requireMay(actor: Caller, row: Pick<UserRow, 'id' | 'role'>): void {
        if (actor.id !== row.id || actor.tokenId !== null) {
            requireAll(actor, this.#roles.permissionsOf(row.role));
        }
    }

    #requireRole(actor: Caller, role: string): void {
        const found = this.#roles.find(role);
        if (found === null) {
            throw invalid({ path: 'role', message: `There is no role ${role}` });
        }
        requireAll(actor, found.permissions);
    }

    async #requireFree(tx: Transaction, key: string, id: number): Promise<void> {
        if ((await tx.em.count(UserEntity, { usernameKey: key, id: { $ne: id } })) > 0) {
            throw fail.CONFLICT({ field: 'username' });
        }
    }

    /** An account that can repair everything must be left: an enabled one with the fixed role `admin`. @throws IN_USE 40901 */
    async #requireAdminLeft(
        tx: Transaction,
        row: UserRow,
        next: Pick<UserRow, 'role' | 'disabled'> | null
    ): Promise<void> {
        const isAdmin = row.role === 'admin' && !row.disabled;
        const stays = next !== null && next.role === 'admin' && !next.disabled;
        if (isAdmin && !stays && (await tx.em.count(UserEntity, { role: 'admin', disabled: false })) <= 1) {
            throw fail.IN_USE(
                { by: 'last-admin' },
                { message: 'The last enabled admin cannot be removed, demoted or disabled' }
            );
        }
    }
}

function found<T>(row: T | null): T {
    if (row === null) {
        throw fail.NOT_FOUND();
    }
    return row;
}
