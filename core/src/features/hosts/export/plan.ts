/** Decides what becomes of each host of a document, and of the hosts that it does not have. */
import { isDeepStrictEqual } from 'node:util';

import type { HostRow } from '../../../engine/change.ts';
import type { Entry, Ground } from '../../../engine/section.ts';
import type { Site } from '../../../engine/site.ts';
import { hidesValue, valuesOf, withValues } from '../../../platform/header-secrets.ts';
import type { Read } from './reading.ts';

/** A row that changes: null before a creation, null after a removal. */
export interface Change {
    readonly before: HostRow | null;
    readonly after: HostRow | null;
}

/** A host of the document as it will be. */
export interface Placed {
    readonly at: number;
    readonly before: HostRow | null;
    readonly row: HostRow;
}

/** Plans all hosts of a document against the draft. Pure. */
export function planHosts(
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
        const site = {
            ...resolveReferences(host, before, ground, notes),
            id: before?.site.id ?? ids.get(host) ?? 0
        };
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

/** Keeps an id that no host has or had. All other hosts get new ids above those. */
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

/** What the document leaves open is resolved against what there is, and said. */
function resolveReferences(
    { site, withoutHash, withoutValue }: Read,
    before: HostRow | null,
    ground: Ground,
    notes: string[]
): Site {
    let resolved = site;
    if (withoutHash.length > 0) {
        const known = new Map(before?.site.access.basicAuth.map(({ username, hash }) => [username, hash]));
        const kept = withoutHash
            .flatMap((username) => ({ username, hash: known.get(username) ?? '' }))
            .filter(({ hash }) => hash !== '');
        const missing = withoutHash.filter((username) => !known.has(username));
        resolved = {
            ...resolved,
            access: { ...resolved.access, basicAuth: [...resolved.access.basicAuth, ...kept] }
        };
        if (missing.length > 0) {
            const open = resolved.access.basicAuth.length === 0 ? '; no password is asked any more' : '';
            notes.push(
                `access.basicAuth: ${missing.join(', ')} left out, since the document has no passwords${open}`
            );
        }
    }
    if (withoutValue !== null) {
        const found = withValues(withoutValue, valuesOf(before?.site.headers.request ?? []));
        const request = found.filter((each) => !hidesValue(each) || each.value !== '');
        const missing = found.filter((each) => !request.includes(each)).map(({ name }) => name);
        resolved = { ...resolved, headers: { ...resolved.headers, request } };
        if (missing.length > 0) {
            notes.push(
                `headers.request: ${missing.join(', ')} left out, since the document has no values of credentials`
            );
        }
    }
    if (resolved.certificateId === null || ground.certificateIds === null) {
        return resolved;
    }
    const certificateId = ground.certificateIds.get(resolved.certificateId);
    if (certificateId !== undefined) {
        return { ...resolved, certificateId };
    }
    // Nothing could be served by its name without a certificate: the host stays disabled until an admin gives it one.
    notes.push(
        `arrives disabled, with sslMode internal: its certificate ${resolved.certificateId} is not in the document, or without its key`
    );
    return { ...resolved, sslMode: 'internal', certificateId: null, enabled: false };
}

function contentOf({ site, owner, tags, notes }: HostRow): unknown {
    return { site, owner, tags, notes };
}
