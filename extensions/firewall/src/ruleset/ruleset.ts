/** What the kernel gets, as objects in the words of libnftables' JSON (libnftables-json(5)). Only this room makes them, from checked values. */
import type { Family } from '../address/interval.ts';

/** The family and name of the plugin's only table. */
export const ownTable = { family: 'inet', table: 'portico' } as const;

/** Whether a table is the panel's. */
export function isOwnTable({ family, table }: { readonly family: string; readonly table: string }): boolean {
    return family === ownTable.family && table === ownTable.table;
}

/** A statement of a rule: exactly one key. */
export type Statement = Readonly<Record<string, unknown>>;

/** A rule of a chain. */
export interface ChainRule {
    readonly expr: readonly Statement[];
    /** Printable, without double quotes. */
    readonly comment?: string;
}

/** Where the kernel calls a chain, and what it does at its end. */
export interface Hook {
    readonly type: 'filter' | 'nat';
    readonly hook: 'input' | 'output' | 'forward' | 'prerouting' | 'postrouting';
    readonly prio: number;
    readonly policy: 'accept' | 'drop';
}

/** A chain; without a hook, other chains jump to it. */
export interface Chain {
    readonly name: string;
    readonly hook: Hook | null;
    readonly rules: readonly ChainRule[];
}

/** An element of a set. */
export interface Element {
    /** As {@link formatInterval} writes it. */
    readonly interval: string;
    /** Seconds until it leaves the set by itself; null: it stays. */
    readonly seconds: number | null;
}

/** A set of addresses. */
export interface KernelSet {
    readonly name: string;
    readonly family: Family;
    /** Each element counts its packets. */
    readonly isCounted: boolean;
    readonly elements: readonly Element[];
}

/** A TCP connection that stood before the rules. */
export interface LiveConnection {
    readonly family: Family;
    readonly peer: string;
    readonly peerPort: number;
    readonly ownPort: number;
}

/** Chains, sets and counters of the own table. */
export interface Ruleset {
    readonly chains: readonly Chain[];
    readonly sets: readonly KernelSet[];
    /** Connections that the kernel did not follow before there were rules: it takes their packets for new ones. Null: no such sets. */
    readonly live: readonly LiveConnection[] | null;
    /** Names of counters; they outlive the rules that count with them. */
    readonly counters: readonly string[];
}

/** The name of a set of the model in the kernel. With the id, a set that was made anew under an old name is another one. */
export function kernelSetName({
    id,
    name,
    family
}: {
    readonly id: number;
    readonly name: string;
    readonly family: Family;
}): string {
    return `${family === 'ipv4' ? 'set4' : 'set6'}-${id}-${name}`;
}

/** A set of the model in the kernel, with its elements. */
export function kernelSet(
    set: { readonly id: number; readonly name: string; readonly family: Family },
    elements: readonly Element[]
): KernelSet {
    return { name: kernelSetName(set), family: set.family, isCounted: false, elements };
}

/** The sets of connections that stood before the rules. */
export const liveSets: Readonly<Record<Family, string>> = { ipv4: 'live4', ipv6: 'live6' };
/** How long such a connection may be silent: a day. */
export const liveSeconds = 86_400;

/** The counter of a rule. */
export function counterName(rule: number): string {
    return `rule-${rule}`;
}

/** The type of the elements of a set. */
export function addressType(family: Family): string {
    return family === 'ipv4' ? 'ipv4_addr' : 'ipv6_addr';
}
