/** Roles: three fixed ones, and sets of permissions that users created. All are in memory, since every request needs them. */
import { type Reply, reply } from '@portico/sdk';

import type { Call, Caller } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { readRow } from '../../../platform/database/rows.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import { requireVersion } from '../../../platform/version.ts';
import { requireAll, requireProof } from '../accounts/authority.ts';
import { RoleEntity, UserEntity } from '../entities.ts';
import { type FixedRole, fixedRoles, type Permissions } from './permissions.ts';

/** A role as the API shows it. */
export interface RoleView {
    readonly name: string;
    readonly description: string;
    /** Whether it cannot be changed. */
    readonly fixed: boolean;
    readonly permissions: readonly string[];
    /** 0 for a fixed role. */
    readonly version: number;
    readonly createdAt: string | null;
    readonly updatedAt: string | null;
}

/** What a client sends of a role. An absent field stays as it is. */
export interface RoleInput {
    readonly description?: string | undefined;
    readonly permissions?: readonly string[] | undefined;
    readonly version?: number | undefined;
}

interface RoleRow {
    readonly name: string;
    readonly version: number;
    readonly description: string;
    readonly permissions: string;
    readonly created_at: number;
    readonly updated_at: number;
}

const descriptions: Readonly<Record<FixedRole, string>> = {
    viewer: 'Sees everything, but no secret',
    operator: "Sees everything, and does the day's work",
    admin: 'Does everything'
};

/** What {@link Roles} needs. */
export interface RolesDependencies {
    readonly db: Database;
    readonly clock: Clock;
    readonly permissions: Permissions;
}

/** Finds, creates, changes and removes roles. */
export class Roles {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #permissions: Permissions;
    readonly #made = new Map<string, RoleView>();
    readonly #listeners: (() => void)[] = [];
    readonly #row;
    readonly #rows;

    constructor({ db, clock, permissions }: RolesDependencies) {
        this.#db = db;
        this.#clock = clock;
        this.#permissions = permissions;
        this.#row = db.prepare<[string], RoleRow>('select * from roles where name = ?');
        this.#rows = db.prepare<[], RoleRow>('select * from roles');
        for (const row of this.#rows.all()) {
            this.#made.set(row.name, viewOf(row));
        }
        permissions.onChange(() => this.#changed());
    }

    /** Calls back after the permissions of any role have changed. */
    onChange(listener: () => void): void {
        this.#listeners.push(listener);
    }

    /** All roles, the fixed ones first. */
    list(): RoleView[] {
        return [
            ...fixedRoles.map((name) => this.#fixed(name)),
            ...[...this.#made.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
        ];
    }

    /** @throws NOT_FOUND 40400 */
    get(name: string): RoleView {
        const role = this.find(name);
        if (role === null) {
            throw fail.NOT_FOUND();
        }
        return role;
    }

    /** The role of this name; null when there is none. */
    find(name: string): RoleView | null {
        return isFixed(name) ? this.#fixed(name) : (this.#made.get(name) ?? null);
    }

    /** The permissions of a role; none when there is no such role. */
    permissionsOf(name: string): readonly string[] {
        return isFixed(name) ? this.#permissions.of(name) : (this.#made.get(name)?.permissions ?? []);
    }

    /** @throws CONFLICT 40900, VALIDATION_FAILED 40001, FORBIDDEN 40300 */
    async create(call: Call, name: string, input: RoleInput): Promise<Reply<RoleView>> {
        refuseReserved(name);
        const permissions = this.#given(call.actor, input.permissions ?? [], []);
        return this.#db.write(async (tx) => {
            if (isFixed(name) || (await tx.em.count(RoleEntity, { name })) > 0) {
                throw fail.CONFLICT({ field: 'name' });
            }
            const at = this.#clock.now();
            const row = {
                name,
                version: 1,
                description: input.description ?? '',
                permissions,
                createdAt: at,
                updatedAt: at
            };
            await tx.em.insert(RoleEntity, row);
            const after = view(row);
            tx.afterCommit(() => this.#load(name));
            return call.complete(tx, {
                action: 'create',
                resource: 'roles',
                resourceId: name,
                before: null,
                after,
                reply: reply.created(`/api/users/roles/${name}`, after)
            });
        });
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200, FORBIDDEN 40300 for a fixed role and for permissions that the caller does not have */
    async update(call: Call, name: string, input: RoleInput): Promise<RoleView> {
        refuseFixed(name);
        return this.#db.write(async (tx) => {
            const row = await tx.em.findOne(RoleEntity, { name });
            if (row === null) {
                throw fail.NOT_FOUND();
            }
            requireVersion(call, input.version, row.version);
            requireAll(call.actor, row.permissions);
            const before = view(row);
            const changed = {
                description: input.description ?? row.description,
                permissions:
                    input.permissions === undefined
                        ? row.permissions
                        : this.#given(call.actor, input.permissions, row.permissions),
                version: row.version + 1,
                updatedAt: this.#clock.now()
            };
            await tx.em.nativeUpdate(RoleEntity, { name }, changed);
            const after = view({ name, createdAt: row.createdAt, ...changed });
            tx.afterCommit(() => this.#load(name));
            return call.complete(tx, {
                action: 'update',
                resource: 'roles',
                resourceId: name,
                before,
                after,
                reply: after
            });
        });
    }

    /** @throws NOT_FOUND 40400, IN_USE 40901 with the users that have the role, FORBIDDEN 40300, VERSION_STALE 41200 */
    async remove(call: Call, name: string): Promise<void> {
        refuseFixed(name);
        await this.#db.write(async (tx) => {
            const row = await tx.em.findOne(RoleEntity, { name });
            if (row === null) {
                throw fail.NOT_FOUND();
            }
            requireVersion(call, undefined, row.version);
            requireAll(call.actor, row.permissions);
            const by = (
                await tx.em.find(UserEntity, { role: name }, { fields: ['username'], limit: 20 })
            ).map(({ username }) => username);
            if (by.length > 0) {
                throw fail.IN_USE({ by });
            }
            await tx.em.nativeDelete(RoleEntity, { name });
            tx.afterCommit(() => this.#load(name));
            await call.complete(tx, {
                action: 'delete',
                resource: 'roles',
                resourceId: name,
                before: view(row),
                after: null,
                reply: null
            });
        });
    }

    /** What is kept may stay although the giver does not have it; what is added must be known and theirs. */
    #given(actor: Caller, wanted: readonly string[], kept: readonly string[]): string[] {
        requireProof(actor);
        const known = new Set([...kept, ...this.#permissions.all().map(({ name }) => name)]);
        const unknown = wanted.map((name, index) => ({ name, index })).filter(({ name }) => !known.has(name));
        if (unknown.length > 0) {
            throw invalid(
                ...unknown.map(({ name, index }) => ({
                    path: `permissions.${index}`,
                    message: `There is no permission ${name}`
                }))
            );
        }
        requireAll(actor, wanted);
        return [...new Set(wanted)].sort();
    }

    /** Removes the permissions of an area from every role, because they were given for another plugin of that name. */
    async forgetArea(tx: Transaction, area: string): Promise<void> {
        const named = (permission: string): boolean => permission.startsWith(`${area}:`);
        for (const row of (await tx.em.find(RoleEntity, {})).filter(({ permissions }) =>
            permissions.some(named)
        )) {
            await tx.em.nativeUpdate(
                RoleEntity,
                { name: row.name },
                {
                    permissions: row.permissions.filter((permission) => !named(permission)),
                    version: row.version + 1,
                    updatedAt: this.#clock.now()
                }
            );
        }
        tx.afterCommit(() => this.reload());
    }

    /** Reads all rows again, after a transaction that wrote several of them. */
    reload(): void {
        this.#made.clear();
        for (const row of this.#rows.all()) {
            this.#made.set(
                row.name,
                readRow('roles', row.name, () => viewOf(row))
            );
        }
        this.#changed();
    }

    #fixed(name: FixedRole): RoleView {
        return {
            name,
            description: descriptions[name],
            fixed: true,
            permissions: this.#permissions.of(name),
            version: 0,
            createdAt: null,
            updatedAt: null
        };
    }

    #load(name: string): void {
        const row = this.#row.get(name);
        if (row === undefined) {
            this.#made.delete(name);
        } else {
            this.#made.set(name, viewOf(row));
        }
        this.#changed();
    }

    #changed(): void {
        this.#listeners.forEach((listener) => listener());
    }
}

function isFixed(name: string): name is FixedRole {
    return (fixedRoles as readonly string[]).includes(name);
}

/** Clients keep roles in objects by name: there, `constructor` is always one. */
function refuseReserved(name: string): void {
    if (name in Object.prototype) {
        throw invalid({ path: 'name', message: 'name is a reserved word' });
    }
}

function refuseFixed(name: string): void {
    if (isFixed(name)) {
        throw fail.FORBIDDEN({ permission: 'none' }, { message: `The role ${name} is fixed` });
    }
}

function view(row: {
    name: string;
    version: number;
    description: string;
    permissions: readonly string[];
    createdAt: number;
    updatedAt: number;
}): RoleView {
    return {
        name: row.name,
        description: row.description,
        fixed: false,
        permissions: row.permissions,
        version: row.version,
        createdAt: new Date(row.createdAt).toISOString(),
        updatedAt: new Date(row.updatedAt).toISOString()
    };
}

function viewOf(row: RoleRow): RoleView {
    return view({
        ...row,
        permissions: JSON.parse(row.permissions) as string[],
        createdAt: row.created_at,
        updatedAt: row.updated_at
    });
}
