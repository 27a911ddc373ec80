/** Which parts of a host need `hosts:unsafe`, and which changes around them do. */
import { isDeepStrictEqual } from 'node:util';

import type { Site } from '../../../engine/site.ts';
import { isMetadataHost } from '../../../platform/address/metadata.ts';
import { addressesInHostsFile } from './hosts-file.ts';
import { dialled } from './safety.ts';

/**
 * Whether a change needs `hosts:unsafe`: it changes an unsafe part; or the host has one, and the change opens it to more visitors.
 *
 * @param before - null for a new host
 */
export function isUnsafeChange(before: Site | null, after: Site): boolean {
    const parts = unsafeParts(after);
    if (unsafeParts(before) !== parts) {
        return true;
    }
    return before !== null && parts !== '[]' && (addsNames(before, after) || takesProtection(before, after));
}

/** The parts of a host that need `hosts:unsafe`, as text. A change that leaves the text as it is needs no such permission. */
function unsafeParts(site: Site | null): string {
    if (site === null) {
        return '[]';
    }
    const isSocket = (address: string): boolean => address.startsWith('unix/');
    const isHost = (name: string): boolean => name.toLowerCase() === 'host';
    const sockets = site.upstreams
        .map(({ address }) => address)
        .filter(isSocket)
        .sort();
    // The path, and whether it is stripped, decide which part of a socket's service can be reached.
    const locations = site.locations
        .filter(({ upstream }) => isSocket(upstream))
        .map(({ path, upstream, stripPrefix }) => [path, upstream, stripPrefix])
        .sort();
    const host = [
        ...site.headers.request.filter(({ name }) => isHost(name)),
        ...(site.access.forwardAuth?.copyHeaders.filter(isHost) ?? []).map(() => site.access.forwardAuth?.url)
    ];
    const metadata = dialled(site)
        .filter(({ address: { host: name } }) => [name, ...addressesInHostsFile(name)].some(isMetadataHost))
        .map(({ address }) => address.text)
        .sort();
    const parts = [site.advanced, site.static?.root ?? null, site.php, sockets, locations, host, metadata];
    return parts.some((part) => part !== null && (!Array.isArray(part) || part.length > 0))
        ? JSON.stringify(parts)
        : '[]';
}

function addsNames(before: Site, after: Site): boolean {
    const known = new Set([before.domain, ...before.aliases]);
    return [after.domain, ...after.aliases].some((name) => !known.has(name));
}

/** Any other change of what guards a host may open it: which of two rules lets more visitors in, is not for this place to judge. */
function takesProtection(before: Site, after: Site): boolean {
    return (
        (isGuarded(before) && !isDeepStrictEqual(before.access, after.access)) ||
        (before.forceHttps && !after.forceHttps) ||
        (before.ssl && !after.ssl) ||
        (after.cors !== null && !isDeepStrictEqual(before.cors, after.cors))
    );
}

function isGuarded({ access }: Site): boolean {
    return (
        access.allow.length > 0 ||
        access.deny.length > 0 ||
        access.basicAuth.length > 0 ||
        access.forwardAuth !== null
    );
}
