/** What may be asked for at all, in one spelling. Odd notations of addresses (`0x7f.1`, `2130706433`) become what they mean here, before anything is checked. */
import { isIPv6 } from 'node:net';

import { OutboundFailure } from './failure.ts';

/** Longest DNS name, with its final dot (RFC 1035, section 2.3.4). */
const longestName = 254;
const longestUrl = 8192;

/** The host and port of an outbound connection, as its URL names them. */
export interface Target {
    /** A name without final dot, or an address without brackets. */
    readonly host: string;
    readonly port: number;
}

/** Reads an http or https URL. @throws OutboundFailure URL_REFUSED */
export function readUrl(text: string | URL): URL {
    const url = URL.parse(String(text));
    if (url === null || url.href.length > longestUrl) {
        throw new OutboundFailure('URL_REFUSED', 'The URL is malformed or too long');
    }
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
        throw new OutboundFailure(
            'URL_REFUSED',
            `The URL must be http or https, not ${url.protocol.slice(0, -1)}`
        );
    }
    if (url.username !== '' || url.password !== '') {
        throw new OutboundFailure('URL_REFUSED', 'The URL must not hold a user name or a password');
    }
    url.hash = '';
    return url;
}

/** Where a URL's server is. */
export function targetOf(url: URL): Target {
    return {
        host: plainHost(url.hostname),
        port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    };
}

/** Reads a host and a port that a user typed. @throws OutboundFailure URL_REFUSED */
export function readTarget(host: string, port: number): Target {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
        throw new OutboundFailure('URL_REFUSED', 'The port must be from 1 to 65535');
    }
    const name = isIPv6(host) ? `[${host}]` : host;
    const url =
        /[\s/?#@\\\u0000-\u001f\u007f]/.test(host) || host.length > longestName
            ? null
            : URL.parse(`http://${name}/`);
    if (
        url === null ||
        url.hostname === '' ||
        url.port !== '' ||
        (name.includes(':') && !name.startsWith('['))
    ) {
        throw new OutboundFailure('URL_REFUSED', 'The host must be a name or an address');
    }
    return { host: plainHost(url.hostname), port };
}

function plainHost(hostname: string): string {
    return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}
