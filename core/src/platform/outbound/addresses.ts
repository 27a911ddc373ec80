/**
 * Decides which addresses the panel may send something to. An address is refused when the special-purpose registries (RFC 6890 and its
 * successors) do not call it globally reachable, unless the admin allows it. Of IPv6, only the block that is assigned at all passes (2000::/3).
 */
import ipaddr from 'ipaddr.js';

import { contains, type Ip, parseRanges, type Range } from '../address/ip.ts';

/**
 * Says in a few words why an address is refused; null when it may be used.
 *
 * @param own - the addresses of this machine
 */
export function forbids(address: Ip, allow: readonly Range[], own: readonly Ip[]): string | null {
    const inner = innerOf(address);
    if (allow.some((range) => contains(range, address) || (inner !== null && contains(range, inner)))) {
        return null;
    }
    const real = inner ?? address;
    const special = (real.kind() === 'ipv4' ? specialIPv4 : specialIPv6).find(({ range }) =>
        contains(range, real)
    );
    if (special !== undefined) {
        return special.what;
    }
    if (real.kind() === 'ipv6' && !globalUnicast.some((range) => contains(range, real))) {
        return 'not a global address';
    }
    return own.some((ip) => ip.toString() === real.toString()) ? 'an address of this machine' : null;
}

/** The IPv4 address that packets to this one end at: IPv4-mapped (RFC 4291) and NAT64 with the well-known prefix (RFC 6052). */
function innerOf(address: Ip): Ip | null {
    return carriers.some((range) => contains(range, address))
        ? ipaddr.fromByteArray(address.toByteArray().slice(-4))
        : null;
}

const carriers = parseRanges(['::ffff:0:0/96', '64:ff9b::/96']);
const globalUnicast = parseRanges(['2000::/3']);

const specialIPv4 = (
    [
        ['0.0.0.0/8', 'this network'],
        ['10.0.0.0/8', 'a private address'],
        ['100.64.0.0/10', 'a shared address of a provider'],
        ['127.0.0.0/8', 'a loopback address'],
        ['168.63.129.16/32', "a cloud provider's internal service"],
        ['169.254.0.0/16', 'a link-local address'],
        ['172.16.0.0/12', 'a private address'],
        ['192.0.0.0/24', 'reserved for protocols'],
        ['192.0.2.0/24', 'reserved for documentation'],
        ['192.88.99.0/24', 'a relay that is no longer in use'],
        ['192.168.0.0/16', 'a private address'],
        ['198.18.0.0/15', 'reserved for measurements'],
        ['198.51.100.0/24', 'reserved for documentation'],
        ['203.0.113.0/24', 'reserved for documentation'],
        ['224.0.0.0/4', 'a multicast address'],
        ['255.255.255.255/32', 'the broadcast address'],
        ['240.0.0.0/4', 'reserved']
    ] as const
).flatMap(([text, what]) => parseRanges([text]).map((range) => ({ range, what })));

const specialIPv6 = (
    [
        ['::/128', 'the unspecified address'],
        ['::1/128', 'a loopback address'],
        ['64:ff9b:1::/48', 'a private translation to IPv4'],
        ['2001::/23', 'reserved for protocols'],
        ['2001:db8::/32', 'reserved for documentation'],
        ['2002::/16', 'a tunnel to IPv4'],
        ['3fff::/20', 'reserved for documentation'],
        ['fc00::/7', 'a private address'],
        ['fe80::/10', 'a link-local address'],
        ['fec0::/10', 'a private address'],
        ['ff00::/8', 'a multicast address']
    ] as const
).flatMap(([text, what]) => parseRanges([text]).map((range) => ({ range, what })));
