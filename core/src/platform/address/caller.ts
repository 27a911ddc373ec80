/** Groups addresses by their owner: the holder of one IPv6 address usually holds the whole /64 around it. */
import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

import { parseIp, unmapped } from './ip.ts';

/** The owner's block: `203.0.113.9`, or `2001:db8:0:1::/64`. An IPv4 address inside IPv6 counts as IPv4; text that is no address stays as it is. */
export function callerOf(address: string): string {
    const [plain = ''] = address.split('%');
    const read = parseIp(plain);
    if (read === null) {
        return address;
    }
    const ip = unmapped(read);
    return ip instanceof ipaddr.IPv4
        ? ip.toString()
        : `${ip.parts
              .slice(0, 4)
              .map((group) => group.toString(16))
              .join(':')}::/64`;
}

/** The network that one owner usually has: 256 addresses of IPv4, a /64 of IPv6; `local` without an address. */
export function networkOf(address: string | null): string {
    const caller = address === null ? '' : callerOf(address);
    if (isIP(caller) === 4) {
        return `${caller.slice(0, caller.lastIndexOf('.'))}.0/24`;
    }
    return caller.endsWith('::/64') ? caller : 'local';
}
