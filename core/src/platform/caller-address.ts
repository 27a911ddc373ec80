/** Who a stranger is: an address says little, since whoever has one address of an IPv6 network of 64 bits has them all. */
import { isIPv4, isIPv6 } from 'node:net';

/** `203.0.113.9`, or `2001:db8:0:1::/64`; an IPv4 address inside IPv6 counts as what it is, and text that is no address stays as it is. */
export function callerOf(address: string): string {
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
    if (mapped !== undefined && isIPv4(mapped)) {
        return mapped;
    }
    const [plain = ''] = address.split('%');
    if (!isIPv6(plain)) {
        return address;
    }
    const [left = '', right] = plain.split('::');
    const front = left === '' ? [] : left.split(':');
    const back = right === undefined || right === '' ? [] : right.split(':');
    // A dotted quad at the end stands for two groups; it is never within the first four.
    const written = front.length + back.length + (plain.includes('.') ? 1 : 0);
    const groups =
        right === undefined
            ? front
            : [...front, ...Array<string>(Math.max(0, 8 - written)).fill('0'), ...back];
    return `${groups
        .slice(0, 4)
        .map((group) => Number.parseInt(group, 16).toString(16))
        .join(':')}::/64`;
}

/** The network that one owner usually has: 256 addresses of IPv4, a /64 of IPv6; `local` without an address. */
export function networkOf(address: string | null): string {
    const caller = address === null ? '' : callerOf(address);
    if (isIPv4(caller)) {
        return `${caller.slice(0, caller.lastIndexOf('.'))}.0/24`;
    }
    return caller.endsWith('::/64') ? caller : 'local';
}
