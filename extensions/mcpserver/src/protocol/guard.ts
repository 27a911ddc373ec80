/** Which names and pages may reach the endpoint of the agents: a page of another origin, or a name that was made to point here, is refused. */
import { isIP } from 'node:net';

import { fail } from '../errors.ts';

/** What is allowed beside addresses and `localhost`. */
export interface Allowed {
    /** The address of the panel. */
    readonly url: string | null;
    readonly hosts: readonly string[];
    readonly origins: readonly string[];
}

/** @throws HOST_REFUSED 40351; ORIGIN_REFUSED 40350 */
export function checkSource(headers: Headers, { url, hosts, origins }: Allowed): void {
    const host = headers.get('host') ?? '';
    const own = URL.parse(`http://${host}`);
    const panel = url === null ? null : URL.parse(url);
    const name = own?.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase() ?? '';
    const isKnown =
        isIP(name) !== 0 ||
        name === 'localhost' ||
        name === panel?.hostname ||
        hosts.some((known) => known.toLowerCase() === name);
    if (own === null || !isKnown) {
        throw fail.HOST_REFUSED({ host: host.slice(0, 253) });
    }
    const origin = headers.get('origin');
    if (origin === null) {
        return;
    }
    const from = URL.parse(origin);
    const isOwn = from !== null && (from.origin === panel?.origin || sameHost(from, host));
    if (!isOwn && !origins.some((listed) => URL.parse(listed)?.origin === (from?.origin ?? ''))) {
        throw fail.ORIGIN_REFUSED({ origin: origin.slice(0, 300) });
    }
}

/** The same name and port; without a port in `Host`, the origin has its scheme's own. */
function sameHost(from: URL, host: string): boolean {
    return URL.parse(`${from.protocol}//${host}`)?.host === from.host;
}
