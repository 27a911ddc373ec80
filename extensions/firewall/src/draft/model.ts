/** What rules, zones, sets, NAT and policies are. A model is plain JSON: it is stored, exported and compiled as it is. */
import type { Family } from '../address/interval.ts';

/** Which traffic a rule sees. `container`: what visitors send to ports that are translated, such as published ports of containers. */
export type Direction = 'in' | 'out' | 'forward' | 'container';
/** What becomes of a packet. */
export type Action = 'accept' | 'drop' | 'reject';
/** Protocols that rules know. */
export type Protocol = 'tcp' | 'udp' | 'icmp' | 'icmpv6';

/** Limits how often a rule matches. */
export interface Rate {
    readonly count: number;
    readonly per: 'second' | 'minute' | 'hour';
    readonly burst: number;
}

/** A rule. It matches a packet that all of its conditions match; an empty list is no condition. */
export interface Rule {
    readonly id: number;
    readonly version: number;
    readonly direction: Direction;
    readonly action: Action;
    readonly family: 'any' | Family;
    readonly protocol: 'any' | Protocol;
    readonly ports: readonly string[];
    /** Names of services; a packet matches that is of one of them, or of `ports`. */
    readonly services: readonly string[];
    /** Addresses, prefixes, and sets as `@name`. */
    readonly sources: readonly string[];
    readonly destinations: readonly string[];
    readonly zone: string | null;
    readonly interface: string | null;
    readonly rate: Rate | null;
    readonly log: boolean;
    readonly comment: string;
    /** ISO 8601. */
    readonly expiresAt: string | null;
    readonly enabled: boolean;
}

/** A name for networks: by the interface that their packets come through, or by their addresses. */
export interface Zone {
    readonly id: number;
    readonly version: number;
    readonly name: string;
    readonly interfaces: readonly string[];
    readonly sources: readonly string[];
    /** What happens to packets from there that no rule matches; null: what the policy says. */
    readonly policy: Action | null;
}

/** A list of addresses. Its elements lie beside the model. */
export interface AddressSet {
    readonly id: number;
    readonly version: number;
    readonly name: string;
    readonly family: Family;
    readonly source: 'manual' | 'url' | 'country';
    readonly url: string | null;
    readonly countries: readonly string[];
    readonly everyHours: number;
}

/** A translation of addresses. */
export interface Nat {
    readonly id: number;
    readonly version: number;
    readonly type: 'dnat' | 'snat' | 'masquerade' | 'redirect';
    readonly protocol: 'any' | 'tcp' | 'udp';
    readonly ports: readonly string[];
    /** An address, an address with a port, or a port. */
    readonly to: string | null;
    readonly interface: string | null;
    readonly sources: readonly string[];
}

/** A service of the admin's own: a name for ports such as `tcp/8080`. */
export interface Service {
    readonly name: string;
    readonly ports: readonly string[];
}

/** What happens to packets that no rule matches. */
export interface Policy {
    readonly input: Action;
    readonly output: Action;
    readonly forward: Action;
    readonly container: Action;
}

/** Everything that the kernel gets, but for the elements of sets and the bans. */
export interface Model {
    readonly policy: Policy;
    readonly zones: readonly Zone[];
    readonly services: readonly Service[];
    readonly sets: readonly AddressSet[];
    /** In the order in which they are tried. */
    readonly rules: readonly Rule[];
    readonly nat: readonly Nat[];
}

/** The most of each kind. */
export const most = {
    rules: 2_000,
    zones: 200,
    sets: 200,
    services: 500,
    nat: 500,
    elements: 500_000,
    bans: 10_000
} as const;

/** The fault of a field by which all sets together would hold too many elements. */
export function tooManyElements(path: string): { readonly path: string; readonly message: string } {
    return { path, message: `All sets together hold ${most.elements} elements at most` };
}
