/** Names that a certificate is ordered for, in the one spelling that CAs take. */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

import type { Invalid } from '../../../platform/errors.ts';

const mostDomains = 100;

/** Brings the names of an order to one spelling, and says what is wrong with them. */
export function readDomains(sent: readonly string[]): {
    readonly domains: readonly string[];
    readonly faults: readonly Invalid[];
} {
    const faults: Invalid[] = [];
    const domains = sent.map((text, at) => {
        const wildcard = text.startsWith('*.');
        // What would be read as the end of a host in a URL is none in a name.
        const name = /[\p{Cc}\s/?#@:%\\[\]]/u.test(text)
            ? ''
            : domainToASCII(wildcard ? text.slice(2) : text).toLowerCase();
        if (
            name === '' ||
            name.length > 251 ||
            isIP(name) !== 0 ||
            !/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)
        ) {
            faults.push({
                path: `domains.${at}`,
                message: `domains.${at} must be a DNS name of at least two labels, with a wildcard as its first or without`
            });
        }
        return wildcard ? `*.${name}` : name;
    });
    const twice = domains.findIndex((domain, at) => domains.indexOf(domain) !== at);
    if (twice !== -1) {
        faults.push({ path: `domains.${twice}`, message: `domains.${twice} is there twice` });
    }
    if (domains.length > mostDomains) {
        faults.push({ path: 'domains', message: `domains must not be more than ${mostDomains}` });
    }
    return { domains, faults };
}
