/** The accounts in an export and an import. An actor cannot give by an import what it could not give otherwise. */
import type { Incoming, Reading, Section, Step } from '../../../engine/section.ts';
import { type ReadUser, readUser, type Secret, type Written } from './document.ts';
import { planUsers, type StoredUser } from './plan.ts';
import type { UserSectionOptions } from './ports.ts';
import { writeUsers } from './write.ts';

/** Builds the section `users`. */
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
            const read = part.flatMap((value, at) => readUser(value, at, reading) ?? []);
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

function createIncoming(
    read: readonly ReadUser[],
    { path, call: { actor } }: Reading,
    stored: () => readonly StoredUser[],
    options: UserSectionOptions
): Incoming {
    return {
        plan(ground): Step {
            const { roles, factors } = options;
            const { entries, changes } = planUsers({
                read,
                present: stored(),
                ground,
                path,
                actor,
                roles,
                factors
            });
            return { entries, commit: (tx) => writeUsers(tx, changes, actor, options) };
        }
    };
}

function time(milliseconds: number): string {
    return new Date(milliseconds).toISOString();
}
