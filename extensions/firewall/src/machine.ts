/** What the plugin reads of the machine by itself: its clock, the addresses of its interfaces and the names of its users. */
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';

import { type Interval, overlaps, readPeer, readPrefix } from './address/interval.ts';

/** An address of an interface, with the network that it stands in. */
export interface OwnAddress {
    readonly interface: string;
    readonly address: Interval;
    readonly network: Interval;
}

/** A machine; tests pass one whose addresses are those of a network namespace. */
export interface Machine {
    /** Milliseconds since 1970. */
    now(): number;
    /** Milliseconds that a list from a URL may take. */
    readonly listMs: number;
    addresses(): readonly OwnAddress[];
    /** Names of local users by their numbers, as texts. */
    users(): Promise<ReadonlyMap<string, string>>;
}

/** The machine that the panel runs on. */
export const realMachine: Machine = {
    now: () => Date.now(),
    listMs: 30_000,
    addresses: () =>
        Object.entries(networkInterfaces()).flatMap(([name, all = []]) =>
            all.flatMap(({ address, cidr }) => ownAddress(name, address, cidr) ?? [])
        ),
    users: async () => readUsers(await readFile('/etc/passwd', 'utf8').catch(() => ''))
};

/** Reads the form of `/etc/passwd`: of two users with one number, the first counts. */
export function readUsers(text: string): ReadonlyMap<string, string> {
    const pairs = text.split('\n').map((line) => line.split(':'));
    return new Map(pairs.reverse().map(([name = '', , uid = '']) => [uid, name]));
}

/** An address with its network; null for a text that is none. */
export function ownAddress(name: string, address: string, cidr: string | null): OwnAddress | null {
    const own = readPeer(address);
    if (own === null) {
        return null;
    }
    const length = Number(cidr?.split('/')[1] ?? Number.NaN);
    const width = own.family === 'ipv4' ? 32 : 128;
    const host = Number.isInteger(length) ? (1n << BigInt(width - length)) - 1n : 0n;
    const from = own.from & ~host;
    return { interface: name, address: own, network: { family: own.family, from, to: from | host } };
}

const loopback = ['127.0.0.0/8', '::1'].flatMap((text) => readPrefix(text) ?? []);

/** Whether all of an interval is loopback, or any of it. */
export function touchesLoopback(interval: Interval): boolean {
    return loopback.some((each) => overlaps(each, interval));
}

/** Whether an address is one of the machine's own. */
export function isOwn(machine: Machine, address: Interval): boolean {
    return touchesLoopback(address) || machine.addresses().some((own) => overlaps(own.address, address));
}

/** The interfaces through which packets from an address may come: that of its network, else all but loopback. */
export function interfacesTo(machine: Machine, address: Interval): readonly string[] {
    const all = machine.addresses();
    if (isOwn(machine, address)) {
        return ['lo'];
    }
    const direct = all.filter(({ network }) => overlaps(network, address));
    const names = (direct.length === 0 ? all : direct).map((each) => each.interface);
    return [...new Set(names)].filter((name) => name !== 'lo');
}
