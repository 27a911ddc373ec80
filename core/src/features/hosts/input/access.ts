/** The access rules of a host: from what was sent to what is stored. */
import type { SiteAccess } from '../../../engine/site.ts';
import type { HostChange } from '../schema/bodies.ts';
import { addressRange, type Faults, headerName, webUrl } from './normalise.ts';

/** bcrypt ignores what follows these bytes. */
const longestPassword = 72;

/**
 * Builds the access rules.
 * @param hashes - by user name; an entry without a password keeps the hash of its user
 * @param passwords - filled with the passwords that were sent, by user name, not yet hashed
 */
export function buildAccess(
    value: NonNullable<HostChange['access']>,
    hashes: ReadonlyMap<string, string>,
    passwords: Map<string, string>,
    faults: Faults
): SiteAccess {
    const ranges = (list: readonly string[] | undefined, path: string): readonly string[] =>
        (list ?? []).map((text, at) => addressRange(text, `${path}.${at}`, faults));
    const seen = new Set<string>();
    return {
        allow: ranges(value.allow, 'access.allow'),
        deny: ranges(value.deny, 'access.deny'),
        basicAuth: (value.basicAuth ?? []).map((entry, at) => {
            const path = `access.basicAuth.${at}`;
            const username = entry.username ?? '';
            checkUsername(username, seen, `${path}.username`, faults);
            seen.add(username);
            if (entry.password !== undefined) {
                checkPassword(entry.password, `${path}.password`, faults);
                passwords.set(username, entry.password);
                return { username, hash: '' };
            }
            const hash = hashes.get(username);
            if (hash === undefined) {
                faults.add(
                    `${path}.password`,
                    `${path}.password is required: the host has no user of that name`
                );
            }
            return { username, hash: hash ?? '' };
        }),
        forwardAuth:
            value.forwardAuth === undefined || value.forwardAuth === null
                ? null
                : forwardAuth(value.forwardAuth, faults)
    };
}

function forwardAuth(
    value: NonNullable<NonNullable<HostChange['access']>['forwardAuth']>,
    faults: Faults
): SiteAccess['forwardAuth'] {
    const typed = value.url ?? '';
    const url = webUrl(typed, 'access.forwardAuth.url', faults);
    if (typed.includes('#')) {
        faults.add('access.forwardAuth.url', 'access.forwardAuth.url must not have a fragment');
    }
    const copyHeaders = value.copyHeaders ?? [];
    copyHeaders.forEach((name, at) => headerName(name, `access.forwardAuth.copyHeaders.${at}`, faults));
    return { url: url === null || /^[\x21-\x7e]+$/.test(typed) ? typed : url.href, copyHeaders };
}

function checkUsername(username: string, seen: ReadonlySet<string>, path: string, faults: Faults): void {
    if (/[:\p{Cc}]/u.test(username)) {
        faults.add(path, `${path} must not have a colon or control characters`);
    }
    if (seen.has(username)) {
        faults.add(path, `${path} is there twice`);
    }
}

function checkPassword(password: string, path: string, faults: Faults): void {
    if (Buffer.byteLength(password) > longestPassword) {
        faults.add(path, `${path} is longer than ${longestPassword} bytes`);
    }
    if (/[\p{Cc}\p{Cs}]/u.test(password)) {
        faults.add(path, `${path} must not have control characters`);
    }
}
