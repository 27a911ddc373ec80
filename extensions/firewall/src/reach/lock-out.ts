/** Says which connections of the caller to the panel rules would refuse. */
import type { PanelListener } from '@portico/sdk';

import { type Interval, readPeer } from '../address/interval.ts';
import type { Model } from '../draft/model.ts';
import type { Evaluator } from '../evaluate/evaluator.ts';
import { interfacesTo, type Machine } from '../machine.ts';

/** Where the panel or its engine takes TCP connections. */
export type PanelWay = Pick<PanelListener, 'role' | 'address' | 'port'>;

/** A connection that would be refused. */
export interface RefusedConnection {
    readonly from: string;
    readonly role: PanelWay['role'];
    readonly port: number;
    readonly verdict: string;
    readonly ruleId: number | null;
}

/** How the caller came here. */
export interface Caller {
    readonly ip: string;
    /** The header `Host`. */
    readonly host: string | undefined;
}

/** What tells whether the caller gets in. */
export interface LockOutOptions {
    readonly machine: Machine;
    readonly ways: (
        caller: Caller
    ) => Promise<{ readonly listeners: readonly PanelWay[]; readonly isBehindEngine: boolean }>;
    readonly evaluator: (model: Model) => Promise<Evaluator>;
}

/**
 * The caller's ways to the panel that rules would close; empty when the caller gets in. A caller who came one way needs that way; one of whom
 * this is not known needs any.
 */
export async function findLockOut(
    model: Model,
    caller: Caller,
    options: LockOutOptions
): Promise<readonly RefusedConnection[]> {
    const { ip, host } = caller;
    const source = readPeer(ip);
    const { machine } = options;
    const interfaces = source === null ? ['lo'] : interfacesTo(machine, source);
    if (source === null || interfaces.includes('lo')) {
        return [];
    }
    const { listeners, isBehindEngine } = await options.ways(caller);
    const evaluator = await options.evaluator(model);
    const port = portOf(host);
    const reachable = listeners.filter(
        ({ role, address }) => (role === 'panel' || isBehindEngine) && isReachableAt(address, source)
    );
    const used = reachable.filter((each) => each.port === port);
    const ways = used.length > 0 ? used : reachable;
    const refused = ways.flatMap((way) => {
        const found = refusalOf(way, source, interfaces, evaluator, machine);
        return found === null ? [] : [found];
    });
    return ways.length > 0 && refused.length === ways.length ? refused : [];
}

function refusalOf(
    way: PanelWay,
    source: Interval,
    interfaces: readonly string[],
    evaluator: Evaluator,
    machine: Machine
): RefusedConnection | null {
    const at = readPeer(way.address);
    // Where it is not known which interface or address is used, all of them must be open.
    for (const name of interfaces) {
        for (const destination of destinationsOf(at, name, source, machine)) {
            const { verdict, ruleId } = evaluator.evaluate({
                direction: 'in',
                source,
                destination,
                protocol: 'tcp',
                port: way.port,
                interface: name
            });
            if (verdict !== 'accept') {
                return { from: way.address, role: way.role, port: way.port, verdict, ruleId };
            }
        }
    }
    return null;
}

/** The addresses that a caller may have used at an interface: the listener's own, or those of the interface. */
function destinationsOf(
    at: Interval | null,
    name: string,
    source: Interval,
    machine: Machine
): readonly Interval[] {
    if (at !== null && at.from !== 0n) {
        return [at];
    }
    const own = machine.addresses().filter(({ address }) => address.family === source.family);
    const here = own.filter((each) => each.interface === name);
    return (here.length > 0 ? here : own).map(({ address }) => address);
}

function isReachableAt(address: string, source: Interval): boolean {
    const at = readPeer(address);
    if (at === null) {
        return true;
    }
    if (at.from === 0n) {
        return at.family === 'ipv6' || source.family === 'ipv4';
    }
    return at.family === source.family && (at.family === 'ipv4' ? at.from >> 24n !== 127n : at.from !== 1n);
}

/** The port that the caller named; 80 and 443 when none, since the scheme is not known. */
function portOf(host: string | undefined): number | null {
    const [, port] = /:(\d{1,5})$/.exec(host ?? '') ?? [];
    return port === undefined ? null : Number(port);
}
