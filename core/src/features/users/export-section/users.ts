/** The accounts and the roles of a document of the whole panel. Nobody gives by an import what they could not give otherwise. */
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { joi, type Value } from '@portico/sdk';
import type Joi from 'joi';

import type { Entry, Ground, Incoming, Reading, Section, Step } from '../../../engine/section.ts';
import type { Caller } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import { type Accounts, usernameKey } from '../accounts/accounts.ts';
import { requireAll, requireProof } from '../accounts/authority.ts';
import { UserEntity } from '../entities.ts';
import type { Roles } from '../roles/roles.ts';
import { usernamePattern } from '../schema.ts';
import type { Logins } from '../users.ts';

/** An account's second factor, as it moves from one panel to another. */
export interface MovedFactor {
    readonly secret: string;
    /** The last time step whose code was used. */
    readonly lastStep: number;
    /** What the codes are hashed under; null: with a key of their own panel, and so they stay there. */
    readonly salt: string | null;
    readonly recoveryCodes: string[];
}

/** Second factors, kept by somebody else. */
export interface Factors {
    secondFactorOf(userId: number): MovedFactor | null;
    /** @throws TypeError when it is not one */
    putSecondFactor(tx: Transaction, userId: number, factor: MovedFactor): Promise<void>;
}

export interface UserSectionOptions {
    readonly db: Database;
    readonly clock: Clock;
    readonly accounts: Accounts;
    readonly roles: Roles;
    readonly logins: Logins;
    readonly factors: Factors;
}

const shape = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    username: joi.string().pattern(usernamePattern, 'user name').required(),
    role: joi.string().max(64).required(),
    disabled: joi.boolean().required(),
    mustChangePassword: joi.boolean().required(),
    totpEnabled: joi.boolean().required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required(),
    lastLoginAt: joi.string().isoDate().allow(null).required()
});
type Written = Value<typeof shape>;

const secretShape = joi.object({
    // Only as costly as a login may be.
    passwordHash: joi
        .string()
        .pattern(/^\$argon2id\$v=19\$m=\d{4,6},t=\d{1,2},p=\d\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{22,86}$/)
        .max(256)
        .required(),
    secondFactor: joi
        .object({
            secret: joi
                .string()
                .pattern(/^[A-Z2-7]+=*$/)
                .min(16)
                .max(128)
                .required(),
            lastStep: joi.number().integer().min(0).required(),
            salt: joi
                .string()
                .pattern(/^[A-Za-z0-9_-]{43}$/)
                .allow(null)
                .required(),
            recoveryCodes: joi
                .array()
                .items(joi.string().pattern(/^[A-Za-z0-9_-]{43}$/))
                .max(10)
                .required()
        })
        .allow(null)
        .required()
});
type Secret = Value<typeof secretShape>;

/** KiB; what a hash may ask for. */
const mostMemory = 262_144;

interface StoredUser {
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

interface Read {
    readonly at: number;
    readonly key: string;
    readonly written: Written;
    /** Null: not in the document. */
    readonly secret: Secret | null;
}

interface Change {
    readonly before: StoredUser | null;
    readonly after: Read | null;
    readonly disabled: boolean;
}

export function createUserSection(options: UserSectionOptions): Section {
    const all = options.db.prepare<[], StoredUser>('select * from users order by id');
    const { factors } = options;
    return {
        name: 'users',
        permissions: { read: 'users:read', write: 'users:write', secrets: 'users:write' },
        needs: ['roles'],
        collect(sink) {
            return all.all().map((row): Written => {
                const factor = factors.secondFactorOf(row.id);
                sink?.put(
                    row.username,
                    JSON.stringify({ passwordHash: row.password_hash, secondFactor: factor } satisfies Secret)
                );
                return {
                    id: row.id,
                    username: row.username,
                    role: row.role,
                    disabled: row.disabled === 1,
                    mustChangePassword: row.must_change_password === 1,
                    totpEnabled: factor !== null,
                    createdAt: time(row.created_at),
                    updatedAt: time(row.updated_at),
                    lastLoginAt: row.last_login_at === null ? null : time(row.last_login_at)
                };
            });
        },
        read(part, reading) {
            if (!Array.isArray(part)) {
                reading.faults.add(reading.path, `${reading.path} must be an array of users`);
                return { plan: () => ({ entries: [] }) };
            }
            const read = part.flatMap((value, at) => readOne(value, at, reading) ?? []);
            const seen = new Set<string>();
            for (const { key, at } of read) {
                if (seen.has(key)) {
                    reading.faults.add(`${reading.path}.${at}.username`, 'username is there twice');
                }
                seen.add(key);
            }
            return createIncoming(read, reading, () => all.all(), options);
        }
    };
}

function readOne(value: unknown, at: number, { path, faults, secrets }: Reading): Read | null {
    const own = `${path}.${at}`;
    const written = checked<Written>(shape, value, own, faults);
    if (written === null) {
        return null;
    }
    const sealed = secrets?.json(written.username);
    const secret =
        sealed === undefined ? null : checked<Secret>(secretShape, sealed, `${own}.secret`, faults);
    const [, memory = '0', passes = '0', lanes = '0'] =
        /m=(\d+),t=(\d+),p=(\d+)/.exec(secret?.passwordHash ?? '') ?? [];
    if (Number(memory) > mostMemory || Number(passes) > 16 || Number(lanes) > 4) {
        faults.add(own, `the password hash of ${written.username} costs more than a login may`);
    }
    return { at, key: usernameKey(written.username), written, secret };
}

function checked<T>(schema: unknown, value: unknown, path: string, faults: Reading['faults']): T | null {
    const { error } = (schema as Joi.Schema)
        .required()
        .validate(value, { abortEarly: false, convert: false, errors: { wrap: { label: false } } });
    error?.details.forEach((detail) => faults.add([path, ...detail.path].join('.'), detail.message));
    return error === undefined ? (value as T) : null;
}

function createIncoming(
    read: readonly Read[],
    { path, call: { actor } }: Reading,
    stored: () => readonly StoredUser[],
    options: UserSectionOptions
): Incoming {
    return {
        plan(ground): Step {
            const present = stored();
            const { entries, changes } = planAll(read, present, ground, actor, options);
            if (changes.length > 0) {
                requireProof(actor);
            }
            checkRoles(changes, ground, path, options.roles);
            for (const { before, after } of changes) {
                requireAll(actor, before === null ? [] : options.roles.permissionsOf(before.role));
                requireAll(
                    actor,
                    after === null ? [] : permissionsOf(after.written.role, ground, options.roles)
                );
            }
            checkStaying(present, changes, ground, options.roles);
            requireAdmin(present, changes);
            return { entries, commit: (tx) => write(tx, changes, actor, options) };
        }
    };
}

function planAll(
    read: readonly Read[],
    present: readonly StoredUser[],
    ground: Ground,
    actor: Caller,
    { factors }: UserSectionOptions
): { readonly entries: Entry[]; readonly changes: Change[] } {
    const byKey = new Map(present.map((row) => [row.username_key, row]));
    const entries: Entry[] = [];
    const changes: Change[] = [];
    for (const after of read) {
        const before = byKey.get(after.key) ?? null;
        byKey.delete(after.key);
        const name = after.written.username;
        if (before !== null && before.id === actor.id) {
            entries.push({
                effect: 'unchanged',
                name,
                notes: ['kept as it is: an import never changes the account of whoever makes it']
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
                    notes: ['kept: an import never changes the account of whoever makes it']
                });
                continue;
            }
            entries.push({ effect: 'delete', name: before.username });
            changes.push({ before, after: null, disabled: false });
        }
    }
    return { entries, changes };
}

function isSame(before: StoredUser, { written, secret }: Read, factors: Factors): boolean {
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

function notesOf(before: StoredUser | null, { written, secret }: Read): readonly string[] {
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

/** @throws VALIDATION_FAILED for each user with a role that there will not be */
function checkRoles(changes: readonly Change[], ground: Ground, path: string, roles: Roles): void {
    const faults = changes.flatMap(({ after }): Invalid[] =>
        after === null || isRole(after.written.role, ground, roles)
            ? []
            : [{ path: `${path}.${after.at}.role`, message: `There is no role ${after.written.role}` }]
    );
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

/** @throws IN_USE when a role goes that somebody who stays has */
function checkStaying(
    present: readonly StoredUser[],
    changes: readonly Change[],
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

/** Somebody must be left who can repair everything. @throws IN_USE */
function requireAdmin(present: readonly StoredUser[], changes: readonly Change[]): void {
    const touched = new Set(changes.map(({ before }) => before?.id));
    const stays = present.some((row) => !touched.has(row.id) && row.role === 'admin' && row.disabled === 0);
    const comes = changes.some(({ after, disabled }) => after?.written.role === 'admin' && !disabled);
    if (!stays && !comes && changes.length > 0) {
        throw fail.IN_USE({ by: 'last-admin' }, { message: 'The import would leave no enabled admin' });
    }
}

async function write(
    tx: Transaction,
    changes: readonly Change[],
    actor: Caller,
    options: UserSectionOptions
): Promise<void> {
    // Away first, so that two accounts can swap a name.
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
        throw new TypeError('An import would remove the account of whoever makes it');
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
    { key, written, secret }: Read,
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
        passwordHash: secret?.passwordHash ?? nobodysHash(),
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

/** The number of the document, unless somebody has or had it. */
async function keptId(tx: Transaction, id: number): Promise<{ readonly id?: number }> {
    const [row] = await tx.em.execute<{ seq: number }[]>(
        "select seq from sqlite_sequence where name = 'users'"
    );
    return id > (row?.seq ?? 0) && id < 1_000_000_000 ? { id } : {};
}

async function update(
    tx: Transaction,
    before: StoredUser,
    { key, written, secret }: Read,
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

/** Well-formed, and of no password. */
function nobodysHash(): string {
    const text = (bytes: number): string => randomBytes(bytes).toString('base64').replaceAll('=', '');
    return `$argon2id$v=19$m=47104,t=2,p=1$${text(16)}$${text(32)}`;
}

function time(milliseconds: number): string {
    return new Date(milliseconds).toISOString();
}
