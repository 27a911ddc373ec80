/**
 * Decides which addresses the panel may send something to. An address is refused when the special-purpose registries (RFC 6890 and its
 * successors) do not call it globally reachable, unless the admin allows it. Of IPv6, only the block that is assigned at all passes (2000::/3).
 */
import { parseIp } from '../ip.ts';

/** An IP address as a number of 32 or 128 bits. */
export interface Address {
    readonly family: 4 | 6;
    readonly value: bigint;
}

/** A block of addresses that begin with the same bits. */
export interface Range extends Address {
    /** Number of bits, 0 to 32 or 128. */
    readonly prefix: number;
}

const bitsOf = { 4: 32, 6: 128 } as const;

/** Reads one address in its plain notation, without brackets and zone; null for anything else. */
export function parseAddress(text: string): Address | null {
    const ip = parseIp(text);
    return ip === null
        ? null
        : {
              family: ip.kind() === 'ipv4' ? 4 : 6,
              value: ip.toByteArray().reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
          };
}

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address; null for anything else. Bits after the prefix are ignored. */
export function parseRange(text: string): Range | null {
    const [, head = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
    const address = parseAddress(head);
    if (address === null) {
        return null;
    }
    const prefix = digits === undefined ? bitsOf[address.family] : Number(digits);
    return prefix > bitsOf[address.family] ? null : { ...address, prefix };
}

/** Tells whether an address lies in a range. */
export function contains(range: Range, address: Address): boolean {
    const rest = BigInt(bitsOf[range.family] - range.prefix);
    return range.family === address.family && range.value >> rest === address.value >> rest;
}

/**
 * Says in a few words why an address is refused; null when it may be used.
 *
 * @param own - the addresses of this machine
 */
export function forbids(address: Address, allow: readonly Range[], own: readonly Address[]): string | null {
    const inner = innerOf(address);
    if (allow.some((range) => contains(range, address) || (inner !== null && contains(range, inner)))) {
        return null;
    }
    const real = inner ?? address;
    const special = (real.family === 4 ? specialIPv4 : specialIPv6).find(({ range }) =>
        contains(range, real)
    );
    if (special !== undefined) {
        return special.what;
    }
    if (real.family === 6 && !contains(globalUnicast, real)) {
        return 'not a global address';
    }
    return own.some(({ family, value }) => family === real.family && value === real.value)
        ? 'an address of this machine'
        : null;
}

/** The IPv4 address that packets to this one end at: IPv4-mapped (RFC 4291) and NAT64 with the well-known prefix (RFC 6052). */
function innerOf(address: Address): Address | null {
    return carriers.some((range) => contains(range, address))
        ? { family: 4, value: address.value & 0xffff_ffffn }
        : null;
}

function range(text: string): Range {
    const parsed = parseRange(text);
    if (parsed === null) {
        throw new TypeError(`${text} is not a range`);
    }
    return parsed;
}

const carriers = ['::ffff:0:0/96', '64:ff9b::/96'].map(range);
const globalUnicast = range('2000::/3');

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
).map(([text, what]) => ({ range: range(text), what }));

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
).map(([text, what]) => ({ range: range(text), what }));
