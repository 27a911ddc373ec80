/** Writes the users of an import, in its one transaction. */
import type { Caller } from '../../../platform/call.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { UserEntity } from '../entities.ts';
import { unmatchableHash } from '../passwords/passwords.ts';
import type { ReadUser } from './document.ts';
import type { StoredUser, UserChange } from './plan.ts';
import type { UserSectionOptions } from './ports.ts';

/** Writes a planned import. Accounts that were changed meanwhile fail it. @throws VERSION_STALE 41200, CONFLICT 40900 */
export async function writeUsers(
    tx: Transaction,
    changes: readonly UserChange[],
    actor: Caller,
    options: UserSectionOptions
): Promise<void> {
    // Removed first, so that a new account can take the name of a removed one.
    for (const { before, after } of changes) {
        if (before !== null && after === null) {
            await requireUntouched(tx, before);
            await options.logins.endAll(tx, before.id);
            await options.logins.removeSecondFactor(tx, before.id);
            await tx.em.nativeDelete(UserEntity, { id: before.id });
            options.accounts.changed(tx, before.id);
        }
    }
    for (const { before, after, disabled } of changes) {
        if (after !== null) {
            await (before === null
                ? insert(tx, after, disabled, options)
                : update(tx, before, after, disabled, options));
        }
    }
    if (changes.some(({ before, after }) => before?.id === actor.id && after === null)) {
        throw new TypeError('An import would remove the account of its actor');
    }
}

async function requireUntouched(tx: Transaction, before: StoredUser): Promise<void> {
    if (
        (await tx.em.count(UserEntity, {
            id: before.id,
            version: before.version,
            passwordHash: before.password_hash
        })) !== 1
    ) {
        throw fail.VERSION_STALE({ version: before.version });
    }
}

async function insert(
    tx: Transaction,
    { key, written, secret }: ReadUser,
    disabled: boolean,
    options: UserSectionOptions
): Promise<void> {
    if ((await tx.em.count(UserEntity, { usernameKey: key })) > 0) {
        throw fail.CONFLICT({ field: 'username', value: written.username });
    }
    const id = await tx.em.insert(UserEntity, {
        ...(await keptId(tx, written.id)),
        version: 1,
        username: written.username,
        usernameKey: key,
        passwordHash: secret?.passwordHash ?? unmatchableHash(),
        role: written.role,
        disabled,
        mustChangePassword: written.mustChangePassword || secret === null,
        lastLoginAt: written.lastLoginAt === null ? null : Date.parse(written.lastLoginAt),
        createdAt: Date.parse(written.createdAt),
        updatedAt: Date.parse(written.updatedAt)
    });
    if (secret?.secondFactor != null) {
        await options.factors.putSecondFactor(tx, id, secret.secondFactor);
    }
    options.accounts.changed(tx, id);
}

/** The id of the document, unless an account has or had it. */
async function keptId(tx: Transaction, id: number): Promise<{ readonly id?: number }> {
    const [row] = await tx.em.execute<{ seq: number }[]>(
        "select seq from sqlite_sequence where name = 'users'"
    );
    return id > (row?.seq ?? 0) && id < 1_000_000_000 ? { id } : {};
}

async function update(
    tx: Transaction,
    before: StoredUser,
    { key, written, secret }: ReadUser,
    disabled: boolean,
    { clock, logins, factors, accounts }: UserSectionOptions
): Promise<void> {
    await requireUntouched(tx, before);
    await tx.em.nativeUpdate(
        UserEntity,
        { id: before.id },
        {
            username: written.username,
            usernameKey: key,
            role: written.role,
            disabled,
            mustChangePassword: written.mustChangePassword,
            passwordHash: secret?.passwordHash ?? before.password_hash,
            version: before.version + 1,
            updatedAt: clock.now()
        }
    );
    if (disabled && before.disabled === 0) {
        await logins.endAll(tx, before.id);
    } else if (written.role !== before.role || secret !== null) {
        await logins.endSessions(tx, before.id, null);
    }
    if (secret !== null) {
        await logins.removeSecondFactor(tx, before.id);
        if (secret.secondFactor !== null) {
            await factors.putSecondFactor(tx, before.id, secret.secondFactor);
        }
    }
    accounts.changed(tx, before.id);
}
