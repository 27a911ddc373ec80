/** Reads the hosts of a document, each by itself. */
import type { HostRow } from '../../../engine/change.ts';
import type { Reading, Secrets } from '../../../engine/section.ts';
import type { Site } from '../../../engine/site.ts';
import type { Clock } from '../../../platform/clock.ts';
import { hidesValue, keysOf, withValues } from '../../../platform/header-secrets.ts';
import { faultsOf } from '../../../platform/validation.ts';
import { build } from '../input/build.ts';
import { operationsOf } from '../input/hidden.ts';
import { Faults } from '../input/normalise.ts';
import type { Readable } from '../rules/paths.ts';
import { type HostChange, hostUpdate } from '../schema/bodies.ts';

/** A bcrypt hash that the engine can compare, with a cost of 4 to 14. */
const hashForm = /^\$2[aby]\$(?:0[4-9]|1[0-4])\$[./A-Za-z0-9]{53}$/;
/** After so many hosts the event loop gets a turn. */
const atOnce = 200;
const longestText = 64;

/** A host of the document, before it meets the hosts of the panel. */
export interface Read {
    /** Its place in the document. */
    readonly at: number;
    /** `certificateId` is still the one of the document. */
    readonly site: Site;
    readonly id: number;
    readonly row: Omit<HostRow, 'site'>;
    readonly notes: readonly string[];
    /** Users whose hashes are not in the document. */
    readonly withoutHash: readonly string[];
    /** The operations on requests as the document has them, where it lacks values of some; null otherwise. */
    readonly withoutValue: Site['headers']['request'] | null;
}

/** Reads them all; what is wrong goes to the faults. */
export async function readHosts(
    part: unknown,
    reading: Reading,
    { clock, readable }: { readonly clock: Clock; readonly readable: Readable }
): Promise<readonly Read[]> {
    if (!Array.isArray(part)) {
        reading.faults.add(reading.path, `${reading.path} must be an array of hosts`);
        return [];
    }
    const hosts: Read[] = [];
    for (const [at, value] of part.entries()) {
        const host = readHost(value, at, reading, clock);
        if (host !== null) {
            hosts.push(await withReadable(host, readable));
        }
        if (at % atOnce === atOnce - 1) {
            await new Promise(setImmediate);
        }
    }
    checkUnique(hosts, reading);
    return hosts;
}

function readHost(value: unknown, at: number, { path, faults, secrets }: Reading, clock: Clock): Read | null {
    const own = `${path}.${at}`;
    const wrong = faultsOf(hostUpdate, value, own);
    if (wrong.length === 0 && (value as HostChange).domain === undefined) {
        wrong.push({ path: `${own}.domain`, message: 'domain is required' });
    }
    if (wrong.length > 0) {
        wrong.forEach((fault) => faults.add(fault.path, fault.message));
        return null;
    }
    const sent = value as HostChange & { readonly domain: string };
    const { body: rest, hashes, withoutHash } = withoutPasswords(sent, secrets, own, faults);
    const { body, withoutValue } = withoutCredentials(rest, sent.domain, secrets);
    const found = new Faults();
    const built = build(body, { id: 0, before: null, hashes }, found);
    found.list.forEach((fault) => faults.add(`${own}.${fault.path}`, fault.message));
    const { id, owner, createdAt, updatedAt } = sent as Readonly<Record<string, unknown>>;
    if (
        owner !== undefined &&
        owner !== null &&
        (typeof owner !== 'string' || owner === '' || owner.length > longestText)
    ) {
        faults.add(`${own}.owner`, 'owner must be the name of a plugin');
    }
    const now = new Date(clock.now());
    return {
        at,
        site: built.site,
        id: Number.isSafeInteger(id) && (id as number) > 0 ? (id as number) : 0,
        notes: [],
        withoutHash,
        withoutValue,
        row: {
            version: sent.version ?? 1,
            owner: typeof owner === 'string' ? owner : null,
            tags: built.tags,
            notes: built.notes,
            createdAt: timeOf(createdAt, now, `${own}.createdAt`, faults),
            updatedAt: timeOf(updatedAt, now, `${own}.updatedAt`, faults)
        }
    };
}

/** Splits the password hashes from the body. Users without a hash are left out of it: the plan looks for them in the panel's host. */
function withoutPasswords(
    sent: HostChange & { readonly domain: string },
    secrets: Secrets | null,
    path: string,
    faults: Reading['faults']
): {
    readonly body: HostChange;
    readonly hashes: ReadonlyMap<string, string>;
    readonly withoutHash: readonly string[];
} {
    const hashes = new Map<string, string>();
    const withoutHash: string[] = [];
    const entries = sent.access?.basicAuth ?? [];
    entries.forEach(({ username = '', password }, at) => {
        const hash = secrets?.get(`${sent.domain}/basicAuth/${username}`);
        if (password !== undefined) {
            faults.add(
                `${path}.access.basicAuth.${at}.password`,
                'password is not allowed in a document: it has hashes'
            );
        }
        if (hash === undefined) {
            withoutHash.push(username);
        } else if (hashForm.test(hash)) {
            hashes.set(username, hash);
        } else {
            faults.add(
                `${path}.access.basicAuth.${at}`,
                `the hash of ${username} is not one of bcrypt with a cost of 4 to 14`
            );
        }
    });
    const body =
        sent.access === undefined || sent.access === null || withoutHash.length === 0
            ? sent
            : {
                  ...sent,
                  access: {
                      ...sent.access,
                      basicAuth: entries.filter(({ username = '' }) => !withoutHash.includes(username))
                  }
              };
    return { body, hashes, withoutHash };
}

/** Puts the values of headers into the body. Operations without one are left out of it: the plan looks for them in the panel's host. */
function withoutCredentials(
    sent: HostChange,
    domain: string,
    secrets: Secrets | null
): { readonly body: HostChange; readonly withoutValue: Read['withoutValue'] } {
    if (sent.headers?.request === undefined) {
        return { body: sent, withoutValue: null };
    }
    const operations = operationsOf(sent);
    const known = keysOf(operations).flatMap((key) => {
        const value = secrets?.get(`${domain}/headers/request/${key}`);
        return value === undefined ? [] : [[key, value] as const];
    });
    const request = withValues(operations, new Map(known));
    const whole = request.filter((each) => !hidesValue(each) || each.value !== '');
    return {
        body: { ...sent, headers: { ...sent.headers, request: whole } },
        withoutValue: whole.length === request.length ? null : request
    };
}

async function withReadable(host: Read, readable: Readable): Promise<Read> {
    const root = host.site.static?.root;
    const fault = root === undefined ? null : await readable(root);
    return fault === null
        ? host
        : {
              ...host,
              notes: [...host.notes, `static.root ${fault}: it serves nothing until that is put right`]
          };
}

function checkUnique(hosts: readonly Read[], { path, faults }: Reading): void {
    const owners = new Map<string, string>();
    for (const { site, at } of hosts) {
        [site.domain, ...site.aliases].forEach((name, which) => {
            const own = `${path}.${at}.${which === 0 ? 'domain' : `aliases.${which - 1}`}`;
            const other = owners.get(name);
            if (other === undefined) {
                owners.set(name, own);
            } else if (!other.startsWith(`${path}.${at}.`)) {
                faults.add(own, `${name} is also ${other}`);
            }
        });
    }
}

function timeOf(value: unknown, now: Date, path: string, faults: Reading['faults']): Date {
    if (value === undefined) {
        return now;
    }
    const time =
        typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? new Date(value) : null;
    if (time === null || Number.isNaN(time.getTime())) {
        faults.add(path, `${path} must be a time in UTC (RFC 3339)`);
        return now;
    }
    return time;
}
