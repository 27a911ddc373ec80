/** Reads IP addresses. */
import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/** Reads one address in its plain notation, without brackets and zone; null for anything else. */
export function parseIp(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
    // Stricter than the library, which also reads 127.1 and 0x7f.0.0.1.
    const family = isIP(text);
    if (family === 0 || text.includes('%')) {
        return null;
    }
    // The URL parser writes a dotted quad as two groups: the library takes `::192.0.2.1` for `::ffff:192.0.2.1`.
    return ipaddr.parse(family === 4 ? text : new URL(`http://[${text}]`).hostname.slice(1, -1));
}
