/** The network that an address belongs to, as far as one owner usually has it: 256 addresses of IPv4, a /64 of IPv6. */
import { isIPv4, isIPv6 } from 'node:net';

/** `192.0.2.0/24`, `2001:db8:0:1::/64`; an IPv4 address inside IPv6 counts as what it is. */
export function networkOf(ip: string | null): string {
    const address = ip?.replace(/%.*$/, '') ?? '';
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
    if (isIPv4(mapped)) {
        return `${mapped.slice(0, mapped.lastIndexOf('.'))}.0/24`;
    }
    if (!isIPv6(mapped)) {
        return 'local';
    }
    const [head = '', tail] = mapped.split('::');
    const left = head === '' ? [] : head.split(':');
    const right = tail === undefined || tail === '' ? [] : tail.split(':');
    const written = right.length + (right.at(-1)?.includes('.') === true ? 1 : 0);
    const groups = tail === undefined ? left : [...left, ...Array.from({ length: Math.max(0, 8 - left.length - written) }, () => '0'), ...right];
    return `${groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
