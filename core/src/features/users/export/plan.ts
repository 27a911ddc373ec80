/** What an import does to the users: which are created, changed and removed, and why it may not. */
import { isDeepStrictEqual } from 'node:util';

import type { Entry, Ground } from '../../../engine/section.ts';
import type { Caller } from '../../../platform/call.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import { requireAll, requireProof } from '../accounts/authority.ts';
import type { Roles } from '../roles/roles.ts';
import type { ReadUser } from './document.ts';
import type { Factors } from './ports.ts';

/** A row of `users` as it is before the import. */
export interface StoredUser {
    readonly id: number;
    readonly version: number;
    readonly username: string;
    readonly username_key: string;
    readonly password_hash: string;
    readonly role: string;
    readonly disabled: number;
    readonly must_change_password: number;
    readonly last_login_at: number | null;
    readonly created_at: number;
    readonly updated_at: number;
}

/** A user that the import creates (`before` is null), changes or removes (`after` is null). */
export interface UserChange {
    readonly before: StoredUser | null;
    readonly after: ReadUser | null;
    /** Whether it is disabled after the import. */
    readonly disabled: boolean;
}

/** What the plan of an import depends on. */
export interface PlanOptions {
    readonly read: readonly ReadUser[];
    readonly present: readonly StoredUser[];
    readonly ground: Ground;
    /** Path of the section in the document. */
    readonly path: string;
    readonly actor: Caller;
    readonly roles: Roles;
    readonly factors: Factors;
}

const ownAccount = 'kept as it is: an import never changes the account of its actor';

/** Compares a document with the users. @throws VALIDATION_FAILED, FORBIDDEN, STEP_UP_REQUIRED, IN_USE */
export function planUsers(options: PlanOptions): {
    readonly entries: Entry[];
    readonly changes: UserChange[];
} {
    const { present, ground, path, actor, roles } = options;
    const planned = compare(options);
    const { changes } = planned;
    if (changes.length > 0) {
        requireProof(actor);
    }
    checkRoles(changes, ground, path, roles);
    for (const { before, after } of changes) {
        requireAll(actor, before === null ? [] : roles.permissionsOf(before.role));
        requireAll(actor, after === null ? [] : permissionsOf(after.written.role, ground, roles));
    }
    checkStaying(present, changes, ground, roles);
    requireAdmin(present, changes);
    return planned;
}

function compare({ read, present, ground, actor, factors }: PlanOptions): {
    readonly entries: Entry[];
    readonly changes: UserChange[];
} {
    const byKey = new Map(present.map((row) => [row.username_key, row]));
    const entries: Entry[] = [];
    const changes: UserChange[] = [];
    for (const after of read) {
        const before = byKey.get(after.key) ?? null;
        byKey.delete(after.key);
        const name = after.written.username;
        if (before !== null && before.id === actor.id) {
            entries.push({
                effect: 'unchanged',
                name,
                notes: [ownAccount]
            });
            continue;
        }
        if (before !== null && isSame(before, after, factors)) {
            entries.push({ effect: 'unchanged', name });
            continue;
        }
        const notes = notesOf(before, after);
        entries.push({
            effect: before === null ? 'create' : 'update',
            name,
            ...(notes.length === 0 ? {} : { notes })
        });
        changes.push({
            before,
            after,
            disabled: after.written.disabled || (before === null && after.secret === null)
        });
    }
    if (ground.mode === 'replace') {
        for (const before of byKey.values()) {
            if (before.id === actor.id) {
                entries.push({
                    effect: 'unchanged',
                    name: before.username,
                    notes: [ownAccount]
                });
                continue;
            }
            entries.push({ effect: 'delete', name: before.username });
            changes.push({ before, after: null, disabled: false });
        }
    }
    return { entries, changes };
}

function isSame(before: StoredUser, { written, secret }: ReadUser, factors: Factors): boolean {
    return (
        before.username === written.username &&
        before.role === written.role &&
        (before.disabled === 1) === written.disabled &&
        (before.must_change_password === 1) === written.mustChangePassword &&
        (secret === null ||
            (secret.passwordHash === before.password_hash &&
                isDeepStrictEqual(secret.secondFactor, factors.secondFactorOf(before.id))))
    );
}

function notesOf(before: StoredUser | null, { written, secret }: ReadUser): readonly string[] {
    if (secret === null) {
        return before === null
            ? ['arrives disabled and without a password: the document has no secrets']
            : [];
    }
    const { secondFactor } = secret;
    return secondFactor === null || secondFactor.salt !== null || !written.totpEnabled
        ? []
        : ['its recovery codes are left out: they work only where they were made'];
}

function permissionsOf(role: string, { roles: planned }: Ground, roles: Roles): readonly string[] {
    return planned?.get(role) ?? roles.permissionsOf(role);
}

function isRole(role: string, { roles: planned }: Ground, roles: Roles): boolean {
    return planned === null ? roles.find(role) !== null : planned.has(role);
}

/** Every role must exist after the import. @throws VALIDATION_FAILED 40001 */
function checkRoles(changes: readonly UserChange[], ground: Ground, path: string, roles: Roles): void {
    const faults = changes.flatMap(({ after }): Invalid[] =>
        after === null || isRole(after.written.role, ground, roles)
            ? []
            : [{ path: `${path}.${after.at}.role`, message: `There is no role ${after.written.role}` }]
    );
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

/** A role that is removed must not be the role of a user that stays. @throws IN_USE 40901 */
function checkStaying(
    present: readonly StoredUser[],
    changes: readonly UserChange[],
    ground: Ground,
    roles: Roles
): void {
    const touched = new Set(changes.map(({ before }) => before?.id));
    const by = present
        .filter((row) => !touched.has(row.id) && !isRole(row.role, ground, roles))
        .map(({ username }) => username);
    if (by.length > 0) {
        throw fail.IN_USE(
            { by },
            { message: `A role that the document does not have is the role of ${by.join(', ')}` }
        );
    }
}

/** An enabled admin must be left. @throws IN_USE 40901 */
function requireAdmin(present: readonly StoredUser[], changes: readonly UserChange[]): void {
    const touched = new Set(changes.map(({ before }) => before?.id));
    const stays = present.some((row) => !touched.has(row.id) && row.role === 'admin' && row.disabled === 0);
    const comes = changes.some(({ after, disabled }) => after?.written.role === 'admin' && !disabled);
    if (!stays && !comes && changes.length > 0) {
        throw fail.IN_USE({ by: 'last-admin' }, { message: 'The import would leave no enabled admin' });
    }
}
