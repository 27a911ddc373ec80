/** The hosts of a document of the whole panel: how they are written down, and what becomes of those that come back. */
import { isDeepStrictEqual } from 'node:util';

import type Joi from 'joi';

import type { Engine, HostRow } from '../../../engine/change.ts';
import type { Entry, Ground, Incoming, Reading, Secrets, Section } from '../../../engine/section.ts';
import type { Site, SiteCertificate } from '../../../engine/site.ts';
import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import { build } from '../input/build.ts';
import { Faults } from '../input/normalise.ts';
import type { Readable } from '../rules/paths.ts';
import { checkSite, type SafetyContext, unsafeParts } from '../rules/safety.ts';
import { type HostChange, hostUpdate } from '../schema.ts';
import type { HostHooks } from '../service.ts';
import { storedView, viewOf } from '../view.ts';

export interface HostSectionOptions {
    readonly engine: Engine;
    readonly hooks: HostHooks;
    readonly clock: Clock;
    readonly readable: Readable;
    /** What every site is held against; settings and certificates come from the ground. */
    readonly safety: () => Omit<SafetyContext, 'settings' | 'certificates'>;
}

/** bcrypt, as the engine compares it. */
const hashForm = /^\$2[aby]\$(?:0[4-9]|1[0-4])\$[./A-Za-z0-9]{53}$/;
/** So many hosts are read before others may have a turn. */
const atOnce = 200;
const longestText = 64;

/** A host of the document, by itself. */
interface Read {
    readonly at: number;
    /** `certificateId` is still the document's. */
    readonly site: Site;
    readonly id: number;
    readonly row: Omit<HostRow, 'site'>;
    readonly notes: readonly string[];
    /** Users whose hashes are not in the document. */
    readonly withoutHash: readonly string[];
}

interface Change {
    readonly before: HostRow | null;
    readonly after: HostRow | null;
}

export function createHostSection(options: HostSectionOptions): Section {
    const { engine, clock } = options;
    return {
        name: 'hosts',
        permissions: { read: 'hosts:read', write: 'hosts:write', secrets: 'hosts:write' },
        needs: ['certificates'],
        collect(sink) {
            return [...engine.draft().hosts.values()]
                .sort((a, b) => a.site.id - b.site.id)
                .map((row) => {
                    for (const { username, hash } of row.site.access.basicAuth) {
                        sink?.put(`${row.site.domain}/basicAuth/${username}`, hash);
                    }
                    return storedView(row);
                });
        },
        async read(part, reading) {
            if (!Array.isArray(part)) {
                reading.faults.add(reading.path, `${reading.path} must be an array of hosts`);
                return { plan: () => ({ entries: [] }) };
            }
            const hosts: Read[] = [];
            for (const [at, value] of part.entries()) {
                const host = readHost(value, at, reading, clock);
                if (host !== null) {
                    hosts.push(await withReadable(host, options.readable));
                }
                if (at % atOnce === atOnce - 1) {
                    await new Promise(setImmediate);
                }
            }
            checkUnique(hosts, reading);
            return createIncoming(hosts, reading, options);
        }
    };
}

function readHost(value: unknown, at: number, { path, faults, secrets }: Reading, clock: Clock): Read | null {
    const own = `${path}.${at}`;
    const { error } = (hostUpdate as unknown as Joi.Schema).required().validate(value, {
        abortEarly: false,
        convert: false,
        noDefaults: true,
        errors: { wrap: { label: false } }
    });
    const { domain } = (value ?? {}) as { domain?: unknown };
    if (error !== undefined || domain === undefined) {
        (error?.details ?? [{ path: ['domain'], message: 'domain is required' }]).forEach((detail) =>
            faults.add([own, ...detail.path].join('.'), detail.message)
        );
        return null;
    }
    const sent = value as HostChange & { readonly domain: string };
    const { body, hashes, withoutHash } = withoutPasswords(sent, secrets, own, faults);
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

/** Hashes instead of passwords; a user whose hash is not there is left out, for the plan to look whether the host has that user. */
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

function createIncoming(hosts: readonly Read[], reading: Reading, options: HostSectionOptions): Incoming {
    const checked = new Map<number, string>();
    let changes: readonly Change[] = [];
    return {
        plan(ground) {
            const planned = planHosts(hosts, ground, options.clock.now());
            changes = planned.changes;
            checkNames(planned.placed, ground, reading);
            checkSafety(
                planned.placed,
                ground,
                { ...options.safety(), settings: ground.settings, certificates: ground.certificates },
                reading,
                checked
            );
            return {
                entries: planned.entries,
                engine: {
                    hosts: changes.map(({ before, after }) => ({
                        id: (after ?? before)?.site.id ?? 0,
                        row: after
                    }))
                },
                done: () =>
                    changes.forEach(({ before, after }) =>
                        options.hooks.afterChange(
                            before === null ? null : view(before, options),
                            after === null ? null : view(after, options),
                            reading.call
                        )
                    )
            };
        },
        async guard() {
            for (const { before, after } of changes) {
                await options.hooks.guard(
                    before === null ? null : view(before, options),
                    after === null ? null : view(after, options),
                    reading.call
                );
            }
        }
    };
}

const view = (row: HostRow, { engine }: HostSectionOptions): ReturnType<typeof viewOf> =>
    viewOf(row, engine.stateOf(row));

/** A host where it will stand. */
interface Placed {
    readonly at: number;
    readonly before: HostRow | null;
    readonly row: HostRow;
}

function planHosts(
    hosts: readonly Read[],
    ground: Ground,
    now: number
): {
    readonly entries: readonly Entry[];
    readonly changes: readonly Change[];
    readonly placed: readonly Placed[];
} {
    const { draft } = ground;
    const byDomain = new Map([...draft.hosts.values()].map((row) => [row.site.domain, row]));
    const entries: Entry[] = [];
    const changes: Change[] = [];
    const placed: Placed[] = [];
    const ids = idsFor(
        hosts.filter(({ site }) => !byDomain.has(site.domain)),
        ground
    );
    for (const host of hosts) {
        const before = byDomain.get(host.site.domain) ?? null;
        byDomain.delete(host.site.domain);
        const notes = [...host.notes];
        const site = { ...settle(host, before, ground, notes), id: before?.site.id ?? ids.get(host) ?? 0 };
        const fresh: HostRow = { ...host.row, site };
        const row =
            before === null
                ? fresh
                : {
                      ...fresh,
                      version: before.version + 1,
                      createdAt: before.createdAt,
                      updatedAt: new Date(now)
                  };
        const same = before !== null && isDeepStrictEqual(contentOf(before), contentOf(row));
        placed.push({ at: host.at, before, row: same ? before : row });
        entries.push({
            effect: before === null ? 'create' : same ? 'unchanged' : 'update',
            name: site.domain,
            ...(notes.length === 0 ? {} : { notes })
        });
        if (!same) {
            changes.push({ before, after: row });
        }
    }
    if (ground.mode === 'replace') {
        for (const before of byDomain.values()) {
            entries.push({ effect: 'delete', name: before.site.domain });
            changes.push({ before, after: null });
        }
    }
    return { entries, changes, placed };
}

/** A number that no host has or had is kept; all others get new ones above those. */
function idsFor(hosts: readonly Read[], { draft }: Ground): ReadonlyMap<Read, number> {
    const first = draft.nextHostId();
    const taken = new Set<number>();
    const ids = new Map<Read, number>();
    for (const host of hosts) {
        if (host.id >= first && host.id < first + 1_000_000_000 && !taken.has(host.id)) {
            ids.set(host, host.id);
            taken.add(host.id);
        }
    }
    let next = first;
    for (const host of hosts.filter((each) => !ids.has(each))) {
        while (taken.has(next)) {
            next += 1;
        }
        taken.add(next);
        ids.set(host, next);
    }
    return ids;
}

/** What the document leaves open is settled against what there is, and said. */
function settle({ site, withoutHash }: Read, before: HostRow | null, ground: Ground, notes: string[]): Site {
    let settled = site;
    if (withoutHash.length > 0) {
        const known = new Map(before?.site.access.basicAuth.map(({ username, hash }) => [username, hash]));
        const kept = withoutHash
            .flatMap((username) => ({ username, hash: known.get(username) ?? '' }))
            .filter(({ hash }) => hash !== '');
        const missing = withoutHash.filter((username) => !known.has(username));
        settled = {
            ...settled,
            access: { ...settled.access, basicAuth: [...settled.access.basicAuth, ...kept] }
        };
        if (missing.length > 0) {
            const open = settled.access.basicAuth.length === 0 ? '; no password is asked any more' : '';
            notes.push(
                `access.basicAuth: ${missing.join(', ')} left out, since the document has no passwords${open}`
            );
        }
    }
    if (settled.certificateId === null || ground.certificateIds === null) {
        return settled;
    }
    const certificateId = ground.certificateIds.get(settled.certificateId);
    if (certificateId !== undefined) {
        return { ...settled, certificateId };
    }
    // Without a certificate nothing could be served by its name: it waits, switched off, for somebody who brings one.
    notes.push(
        `arrives disabled, with sslMode internal: its certificate ${settled.certificateId} is not in the document, or without its key`
    );
    return { ...settled, sslMode: 'internal', certificateId: null, enabled: false };
}

/** @throws VALIDATION_FAILED for each name that a host has which stays */
function checkNames(placed: readonly Placed[], { draft, mode }: Ground, { path }: Reading): void {
    if (mode === 'replace') {
        return;
    }
    const moving = new Set(placed.map(({ row }) => row.site.id));
    const faults = placed.flatMap(({ at, row: { site } }) =>
        [site.domain, ...site.aliases].flatMap((name, which): Invalid[] => {
            const owner = draft.hostOf(name);
            return owner === undefined || moving.has(owner)
                ? []
                : [
                      {
                          path: `${path}.${at}.${which === 0 ? 'domain' : `aliases.${which - 1}`}`,
                          message: `${name} is a name of host ${owner}, which the document does not have`
                      }
                  ];
        })
    );
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

/**
 * The rules of every way in.
 * @param checked - what a host of the document was held against when it was found right, so that the queue is not kept waiting
 */
function checkSafety(
    placed: readonly Placed[],
    { call }: Ground,
    context: SafetyContext,
    { path }: Reading,
    checked: Map<number, string>
): void {
    const faults: Invalid[] = [];
    const settings = JSON.stringify(context.settings);
    for (const {
        at,
        before,
        row: { site }
    } of placed) {
        requireUnsafe(call, before?.site ?? null, site);
        // What else a plan settles (ids, hashes, on or off) is nothing that a site is held against.
        const against = `${settings} ${site.certificateId} ${fingerprintOf(context.certificates, site)}`;
        if (checked.get(at) !== against) {
            const found = checkSite(site, context);
            faults.push(
                ...found.map((fault) => ({ path: `${path}.${at}.${fault.path}`, message: fault.message }))
            );
            checked.set(at, against);
        }
    }
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

function fingerprintOf(certificates: ReadonlyMap<number, SiteCertificate>, { certificateId }: Site): string {
    return certificateId === null ? '' : (certificates.get(certificateId)?.fingerprint ?? 'none');
}

/** @throws FORBIDDEN when the change is one for `hosts:unsafe` */
function requireUnsafe(call: Call, before: Site | null, after: Site): void {
    if (!call.actor.can('hosts:unsafe') && unsafeParts(before) !== unsafeParts(after)) {
        throw fail.FORBIDDEN({ permission: 'hosts:unsafe' });
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

function contentOf({ site, owner, tags, notes }: HostRow): unknown {
    return { site, owner, tags, notes };
}
