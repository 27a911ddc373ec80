/** Finds the address of the client when a proxy stands in front of the panel. */
import { BlockList, isIP } from 'node:net';

/** Only so many entries of `X-Forwarded-For` are read, counted from the right. */
const mostHops = 20;

/** A list of addresses and ranges to look addresses up in. Text that is neither is left out. */
export function proxyList(entries: readonly string[]): BlockList {
    const list = new BlockList();
    for (const entry of entries) {
        const [address = '', prefix] = entry.split('/');
        const family = isIP(address);
        if (family === 0) {
            continue;
        }
        const kind = family === 4 ? 'ipv4' : 'ipv6';
        if (prefix === undefined) {
            list.addAddress(address, kind);
        } else {
            list.addSubnet(address, Number(prefix), kind);
        }
    }
    return list;
}

/**
 * The client's address: the TCP peer, unless that is trusted; then the rightmost entry of `X-Forwarded-For` that is not a trusted proxy.
 * Every proxy appends the peer that it saw, so entries further left come from a sender that is not trusted. When all are trusted: the leftmost.
 */
export function clientAddress(trusted: BlockList, peer: string, forwardedFor: string | undefined): string {
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
    const bare =
        /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ??
        /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text)?.[1] ??
        text;
    const [address = ''] = bare.split('%');
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
    const plain = mapped ?? address;
    return isIP(plain) === 0 ? null : plain.toLowerCase();
}

function isTrusted(trusted: BlockList, address: string): boolean {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 4 ? 'ipv4' : 'ipv6');
}
