/** Addresses, prefixes and ranges as pairs of whole numbers. Text from outside becomes such a pair, and only pairs become text for `nft`. */
import { isIP } from 'node:net';

import ipaddr from 'ipaddr.js';

/** The version of IP. */
export type Family = 'ipv4' | 'ipv6';

/** All addresses from `from` to `to`, both included. */
export interface Interval {
    readonly family: Family;
    readonly from: bigint;
    readonly to: bigint;
}

const bits = { ipv4: 32, ipv6: 128 } as const;
const mapped = 0xffffn << 32n;

/** Why a text is no address; the message is shown to the caller. */
export class AddressInvalid extends Error {}

/** Number of bits of an address. */
export function bitsOf(family: Family): number {
    return bits[family];
}

/** Reads one address. IPv4 inside IPv6 is read as IPv4 by {@link unmapped} alone. @throws AddressInvalid */
export function parseAddress(text: string): Interval {
    const found = readAddress(text);
    if (found === null) {
        throw new AddressInvalid(`${quote(text)} is no IP address`);
    }
    return { family: found.family, from: found.value, to: found.value };
}

/**
 * Reads an address or a prefix such as `10.0.0.0/8`.
 *
 * @throws AddressInvalid for a zone id, bits beyond the prefix, and IPv4 inside IPv6
 */
export function parsePrefix(text: string): Interval {
    const [, head = '', digits] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
    if (head.includes('%')) {
        throw new AddressInvalid(
            `${quote(text)} has a zone id; name the interface in a zone or a rule instead`
        );
    }
    const found = readAddress(head);
    if (found === null) {
        throw new AddressInvalid(`${quote(text)} is no IP address and no prefix such as 10.0.0.0/8`);
    }
    const { family, value } = found;
    if (family === 'ipv6' && value >> 32n === mapped >> 32n) {
        throw new AddressInvalid(`${quote(text)} is an IPv4 address inside IPv6; write it as IPv4`);
    }
    const width = bits[family];
    const length = digits === undefined ? width : Number(digits);
    if (length > width) {
        throw new AddressInvalid(`${quote(text)} has a prefix of more than ${width} bits`);
    }
    const mask = (1n << BigInt(width - length)) - 1n;
    if ((value & mask) !== 0n) {
        throw new AddressInvalid(`${quote(text)} has bits beyond its prefix`);
    }
    return { family, from: value, to: value | mask };
}

/** Reads an address or prefix; null for anything else. */
export function readPrefix(text: string): Interval | null {
    try {
        return parsePrefix(text);
    } catch (error) {
        if (error instanceof AddressInvalid) {
            return null;
        }
        throw error;
    }
}

/** The address of a peer, where IPv4 inside IPv6 means IPv4; null for a text that is none. */
export function readPeer(text: string): Interval | null {
    const found = readAddress(text.replace(/%.*$/, ''));
    if (found === null) {
        return null;
    }
    const isMapped = found.family === 'ipv6' && found.value >> 32n === mapped >> 32n;
    const value = isMapped ? found.value & 0xffffffffn : found.value;
    return { family: isMapped ? 'ipv4' : found.family, from: value, to: value };
}

/** Number of leading bits that all addresses share; null when the interval is no prefix. */
export function prefixLengthOf({ family, from, to }: Interval): number | null {
    const size = to - from + 1n;
    if ((size & (size - 1n)) !== 0n || from % size !== 0n) {
        return null;
    }
    return bits[family] - (size.toString(2).length - 1);
}

/** Writes one address in its shortest form (RFC 5952). */
export function formatAddress(family: Family, value: bigint): string {
    if (family === 'ipv4') {
        const number = Number(value);
        return `${number >>> 24}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`;
    }
    const parts = Array.from({ length: 8 }, (_, index) =>
        Number((value >> BigInt(112 - 16 * index)) & 0xffffn)
    );
    return new ipaddr.IPv6(parts).toRFC5952String();
}

/** Writes an interval as an address, as a prefix, or as `from-to`. {@link parseWritten} reads it again. */
export function formatInterval(interval: Interval): string {
    const { family, from, to } = interval;
    const length = prefixLengthOf(interval);
    return length === null
        ? `${formatAddress(family, from)}-${formatAddress(family, to)}`
        : length === bits[family]
          ? formatAddress(family, from)
          : `${formatAddress(family, from)}/${length}`;
}

/** Reads what {@link formatInterval} wrote. @throws AddressInvalid */
export function parseWritten(text: string): Interval {
    const at = text.indexOf('-');
    if (at < 0) {
        return parsePrefix(text);
    }
    const [first, last] = [parseAddress(text.slice(0, at)), parseAddress(text.slice(at + 1))];
    if (first.family !== last.family || first.from > last.from) {
        throw new AddressInvalid(`${quote(text)} is no range`);
    }
    return { family: first.family, from: first.from, to: last.from };
}

/** Whether two intervals share an address. */
export function overlaps(one: Interval, other: Interval): boolean {
    return one.family === other.family && one.from <= other.to && other.from <= one.to;
}

/** Whether the first interval holds all of the second one. */
export function covers(outer: Interval, inner: Interval): boolean {
    return outer.family === inner.family && outer.from <= inner.from && inner.to <= outer.to;
}

/** Joins intervals of one family that overlap or touch; the result ascends. */
export function mergeIntervals(all: readonly Interval[]): Interval[] {
    const sorted = [...all].sort((one, other) =>
        one.from < other.from ? -1 : one.from > other.from ? 1 : 0
    );
    const merged: Interval[] = [];
    for (const each of sorted) {
        const last = merged.at(-1);
        if (last === undefined || each.from > last.to + 1n) {
            merged.push(each);
        } else if (each.to > last.to) {
            merged[merged.length - 1] = { ...last, to: each.to };
        }
    }
    return merged;
}

/** Whether an address lies in one of these intervals, which ascend and do not overlap. */
export function includesAddress(ascending: readonly Interval[], value: bigint): boolean {
    let [low, high] = [0, ascending.length];
    while (low < high) {
        const middle = (low + high) >>> 1;
        if ((ascending[middle] as Interval).to < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const found = ascending[low];
    return found !== undefined && found.from <= value;
}

function readAddress(text: string): { readonly family: Family; readonly value: bigint } | null {
    // Stricter than the library, which also reads 127.1 and 0x7f.0.0.1.
    const version = text.includes('%') ? 0 : isIP(text);
    if (version === 4) {
        const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
        return { family: 'ipv4', value: BigInt(((a * 256 + b) * 256 + c) * 256 + d) };
    }
    if (version === 0) {
        return null;
    }
    // The URL parser writes a dotted quad as two groups: the library takes `::192.0.2.1` for `::ffff:192.0.2.1`.
    const bytes = ipaddr.IPv6.parse(new URL(`http://[${text}]`).hostname.slice(1, -1)).toByteArray();
    return { family: 'ipv6', value: bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n) };
}

/** A text for a message: short, and without control characters. */
function quote(text: string): string {
    return JSON.stringify(text.slice(0, 60));
}
