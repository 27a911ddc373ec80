/** The roles in an export and an import: those that users created. */
import { isDeepStrictEqual } from 'node:util';

import { joi, type Value } from '@portico/sdk';

import type { Entry, Ground, Incoming, Reading, Section } from '../../../engine/section.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { faultsOf } from '../../../platform/validation.ts';
import { requireAll, requireProof } from '../accounts/authority.ts';
import { RoleEntity, UserEntity } from '../entities.ts';
import { fixedRoles } from '../roles/permissions.ts';
import type { Roles, RoleView } from '../roles/roles.ts';
import { permissionPattern, roleNamePattern } from '../schema.ts';

/** What the section needs. */
export interface RoleSectionOptions {
    readonly roles: Roles;
    readonly clock: Clock;
}

const shape = joi.object({
    name: joi
        .string()
        .pattern(roleNamePattern, 'role name')
        .invalid(...fixedRoles, 'constructor')
        .required(),
    description: joi.string().max(1000).allow('').required(),
    permissions: joi
        .array()
        .items(joi.string().pattern(permissionPattern, 'permission').max(129))
        .unique()
        .max(1000)
        .required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required()
});
type Written = Value<typeof shape>;

interface Change {
    readonly before: RoleView | null;
    readonly after: Written | null;
}

/** Builds the section `roles`. */
export function createRoleSection({ roles, clock }: RoleSectionOptions): Section {
    const made = (): RoleView[] => roles.list().filter(({ fixed }) => !fixed);
    return {
        name: 'roles',
        permissions: { read: 'users:read', write: 'users:write', secrets: 'users:read' },
        collect: () =>
            made().map(({ name, description, permissions, createdAt, updatedAt }): Written => ({
                name,
                description,
                permissions: [...permissions],
                createdAt: createdAt ?? '',
                updatedAt: updatedAt ?? ''
            })),
        read(part, reading) {
            const faults = faultsOf(joi.array().items(shape).unique('name'), part, reading.path);
            faults.forEach(({ path, message }) => reading.faults.add(path, message));
            return faults.length === 0
                ? createIncoming(part as readonly Written[], reading, made, roles, clock)
                : { plan: () => ({ entries: [] }) };
        }
    };
}

function createIncoming(
    read: readonly Written[],
    { call: { actor } }: Reading,
    made: () => readonly RoleView[],
    roles: Roles,
    clock: Clock
): Incoming {
    return {
        plan(ground) {
            const { entries, changes } = planAll(read, made(), ground);
            if (changes.length > 0) {
                requireProof(actor);
            }
            for (const { before, after } of changes) {
                requireAll(actor, before?.permissions ?? []);
                requireAll(actor, after?.permissions ?? []);
            }
            const after = new Map(roles.list().map((role) => [role.name, role.permissions]));
            changes.forEach((change) =>
                change.after === null
                    ? after.delete(change.before?.name ?? '')
                    : after.set(change.after.name, change.after.permissions)
            );
            ground.roles = after;
            return {
                entries,
                commit: (tx) => write(tx, changes, clock, ground.sections.has('users'), roles)
            };
        }
    };
}

function planAll(
    read: readonly Written[],
    made: readonly RoleView[],
    ground: Ground
): { readonly entries: Entry[]; readonly changes: Change[] } {
    const byName = new Map(made.map((role) => [role.name, role]));
    const entries: Entry[] = [];
    const changes: Change[] = [];
    for (const after of read) {
        const before = byName.get(after.name) ?? null;
        byName.delete(after.name);
        const same =
            before !== null &&
            before.description === after.description &&
            isDeepStrictEqual([...before.permissions].sort(), [...after.permissions].sort());
        entries.push({
            effect: before === null ? 'create' : same ? 'unchanged' : 'update',
            name: after.name
        });
        if (!same) {
            changes.push({ before, after });
        }
    }
    if (ground.mode === 'replace') {
        for (const before of byName.values()) {
            entries.push({ effect: 'delete', name: before.name });
            changes.push({ before, after: null });
        }
    }
    return { entries, changes };
}

async function write(
    tx: Transaction,
    changes: readonly Change[],
    clock: Clock,
    usersFollow: boolean,
    roles: Roles
): Promise<void> {
    tx.afterCommit(() => roles.reload());
    for (const { before, after } of changes) {
        const touched =
            before === null
                ? 0
                : await tx.em.count(RoleEntity, { name: before.name, version: before.version });
        if (before !== null && touched !== 1) {
            throw fail.VERSION_STALE({ version: before.version });
        }
        if (after === null) {
            await remove(tx, before?.name ?? '', usersFollow);
        } else if (before === null) {
            const { createdAt, updatedAt } = after;
            await tx.em.insert(RoleEntity, {
                name: after.name,
                version: 1,
                description: after.description,
                permissions: [...after.permissions].sort(),
                createdAt: Date.parse(createdAt),
                updatedAt: Date.parse(updatedAt)
            });
        } else {
            await tx.em.nativeUpdate(
                RoleEntity,
                { name: after.name },
                {
                    description: after.description,
                    permissions: [...after.permissions].sort(),
                    version: before.version + 1,
                    updatedAt: clock.now()
                }
            );
        }
    }
}

/** Removes a role. When the same import changes users, their section has checked that no user keeps the role. @throws IN_USE 40901 */
async function remove(tx: Transaction, name: string, usersFollow: boolean): Promise<void> {
    const by = usersFollow
        ? []
        : (await tx.em.find(UserEntity, { role: name }, { fields: ['username'], limit: 20 })).map(
              ({ username }) => username
          );
    if (by.length > 0) {
        throw fail.IN_USE(
            { by },
            { message: `The role ${name} is not in the document, and ${by.join(', ')} has it` }
        );
    }
    await tx.em.nativeDelete(RoleEntity, { name });
}
