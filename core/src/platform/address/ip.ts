/** Reads IP addresses and ranges of them. */
import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/** An IP address. Its `toString()` is the shortest spelling (RFC 5952). */
export type Ip = ipaddr.IPv4 | ipaddr.IPv6;

/** All addresses that begin with the same bits as `base`. */
export interface Range {
    readonly base: Ip;
    /** Number of bits, 0 to 32 or 128. */
    readonly prefix: number;
}

/** Reads one address in its plain notation, without brackets and zone; null for anything else. */
export function parseIp(text: string): Ip | null {
    // Stricter than the library, which also reads 127.1 and 0x7f.0.0.1.
    const family = isIP(text);
    if (family === 0 || text.includes('%')) {
        return null;
    }
    // The URL parser writes a dotted quad as two groups: the library takes `::192.0.2.1` for `::ffff:192.0.2.1`.
    return ipaddr.parse(family === 4 ? text : new URL(`http://[${text}]`).hostname.slice(1, -1));
}

/** The IPv4 address inside an IPv4-mapped IPv6 address (RFC 4291); every other address as it is. */
export function unmapped(ip: Ip): Ip {
    return ip instanceof ipaddr.IPv6 && ip.isIPv4MappedAddress() ? ip.toIPv4Address() : ip;
}

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address; null for anything else. Bits after the prefix are ignored. */
export function parseRange(text: string): Range | null {
    const [, head = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
    const base = parseIp(head);
    if (base === null) {
        return null;
    }
    const bits = base.toByteArray().length * 8;
    const prefix = digits === undefined ? bits : Number(digits);
    return prefix > bits ? null : { base, prefix };
}

/** Reads a list of addresses and ranges; text that is neither is left out. */
export function parseRanges(texts: readonly string[]): Range[] {
    return texts.flatMap((text) => parseRange(text) ?? []);
}

/** Tells whether an address lies in a range. */
export function contains({ base, prefix }: Range, ip: Ip): boolean {
    // The library's types do not say that both sides are of one kind.
    return base.kind() === ip.kind() && (base as ipaddr.IPv4).match(ip as ipaddr.IPv4, prefix);
}
