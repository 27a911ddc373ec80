/** Who a stranger is: one IPv4 address, or one IPv6 network of 64 bits, since whoever has one address of such a network has them all. */
import { isIPv4, isIPv6 } from 'node:net';

/** `203.0.113.9`, or `2001:db8:0:1::/64`; text that is no address stays as it is. */
export function networkOf(address: string): string {
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
    const groups = right === undefined ? front : [...front, ...Array<string>(8 - written).fill('0'), ...back];
    return `${groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
