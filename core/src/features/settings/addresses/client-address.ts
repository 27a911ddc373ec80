/** Finds the address of the client when a proxy stands in front of the panel. */
import { isIPv4 } from 'node:net';

import { contains, parseIp, type Range, unmapped } from '../../../platform/address/ip.ts';

/** Only so many entries of `X-Forwarded-For` are read, counted from the right. */
const mostHops = 20;

/**
 * The client's address: the TCP peer, unless that is trusted; then the rightmost entry of `X-Forwarded-For` that is not a trusted proxy.
 * Every proxy appends the peer that it saw, so entries further left come from a sender that is not trusted. When all are trusted: the leftmost.
 */
export function clientAddress(
    trusted: readonly Range[],
    peer: string,
    forwardedFor: string | undefined
): string {
    let client = plainAddress(peer) ?? peer;
    if (forwardedFor === undefined || !isTrusted(trusted, client)) {
        return client;
    }
    for (const entry of forwardedFor.split(',').slice(-mostHops).reverse()) {
        const address = plainAddress(entry.trim());
        if (address === null) {
            return client;
        }
        client = address;
        if (!isTrusted(trusted, client)) {
            return client;
        }
    }
    return client;
}

/** An address without port, brackets, zone and the mapping of IPv4 into IPv6; null for text that is no address. */
export function plainAddress(text: string): string | null {
    if (isIPv4(text)) {
        return text;
    }
    const bare =
        /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ??
        /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text)?.[1] ??
        text;
    const ip = parseIp(bare.replace(/%.*$/, ''));
    return ip === null ? null : unmapped(ip).toString();
}

function isTrusted(trusted: readonly Range[], address: string): boolean {
    const ip = parseIp(address);
    return ip !== null && trusted.some((range) => contains(range, ip));
}
