/** The map of what is reachable: what listens or is published, against each network, by the evaluator that simulates. */
import { type Interval, parsePrefix } from '../address/interval.ts';
import type { Model, Zone } from '../draft/model.ts';
import type { Evaluator } from '../evaluate/evaluator.ts';
import type { Foreign } from '../foreign/foreign.ts';
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import { type Listener, listListeners } from './sockets.ts';

/** What one network can reach of the machine. */
export interface Reach {
    readonly target: string;
    readonly port: number;
    readonly from: string;
    readonly kind: 'host' | 'container' | 'listener';
    readonly verdict: 'accept' | 'drop' | 'reject';
    readonly ruleId: number | null;
}

/** What the map is made of. */
export interface ReachabilityOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly foreign: Foreign;
    readonly model: Model;
    readonly evaluator: Evaluator;
    /** Ports of the engine, with the domains that it serves there. */
    readonly hosts: readonly { readonly port: number; readonly domains: readonly string[] }[];
}

interface Target {
    readonly target: string;
    readonly protocol: 'tcp' | 'udp';
    readonly port: number;
    readonly kind: Reach['kind'];
    /** Null: every address of the machine. */
    readonly address: Interval | null;
}

interface Origin {
    readonly name: string;
    readonly source: Interval;
    readonly interface: string | null;
}

/** Addresses that stand for visitors from the internet (RFC 5737, RFC 3849). */
const internet = ['203.0.113.77', '2001:db8::77'];

/** Makes the map: each target from each zone and from the internet. */
export async function mapReachability(options: ReachabilityOptions): Promise<readonly Reach[]> {
    const { ctx, machine, foreign, model, evaluator, hosts } = options;
    const published = await foreign.published();
    const targets: readonly Target[] = [
        ...(await listListeners(ctx)).filter(isOutside).flatMap((each) => targetsOf(each, hosts, published)),
        ...published.map(({ protocol, port, target }): Target => ({
            target,
            protocol,
            port,
            kind: 'container',
            address: null
        }))
    ];
    const origins = [...model.zones.flatMap((zone) => originsOf(zone, machine)), ...internetOrigins(machine)];
    return targets.flatMap((target) => {
        const fitting = origins.filter(
            ({ source }) => target.address === null || target.address.family === source.family
        );
        return [...Map.groupBy(fitting, ({ name }) => name)].map(([from, ways]): Reach => {
            const results = ways.map(({ source, interface: name }) =>
                evaluator.evaluate({
                    direction: target.kind === 'container' ? 'container' : 'in',
                    source,
                    destination: target.address ?? ownAddress(machine, source),
                    protocol: target.protocol,
                    port: target.port,
                    interface: name
                })
            );
            // What one address of a network reaches, the network reaches.
            const best = results.find(({ verdict }) => verdict === 'accept') ?? results[0];
            return {
                target: target.target,
                port: target.port,
                from,
                kind: target.kind,
                verdict: best?.verdict ?? 'drop',
                ruleId: best?.ruleId ?? null
            };
        });
    });
}

/** What listens on loopback alone is reached by no network. */
function isOutside({ address }: Listener): boolean {
    return (
        address === null || (address.family === 'ipv4' ? address.from >> 24n !== 127n : address.from !== 1n)
    );
}

function targetsOf(
    { protocol, port, address, program, text }: Listener,
    hosts: ReachabilityOptions['hosts'],
    published: Awaited<ReturnType<Foreign['published']>>
): readonly Target[] {
    if (published.some((each) => each.protocol === protocol && each.port === port)) {
        return []; // A proxy of the container engine holds the port; the published one stands for it.
    }
    const domains =
        protocol === 'tcp' ? hosts.filter((each) => each.port === port).flatMap((each) => each.domains) : [];
    const listener: Target = {
        target: `${program ?? 'unknown'} ${protocol} ${text}`,
        protocol,
        port,
        kind: 'listener',
        address
    };
    return domains.length === 0
        ? [listener]
        : domains.map((target) => ({ ...listener, target, kind: 'host' }));
}

function originsOf({ name, interfaces, sources }: Zone, machine: Machine): readonly Origin[] {
    const own = machine.addresses();
    return [
        ...sources
            .filter((text) => !text.startsWith('@'))
            .map((text) => {
                const prefix = parsePrefix(text);
                const near = own.find(
                    ({ network }) =>
                        network.family === prefix.family &&
                        network.from <= prefix.from &&
                        prefix.from <= network.to
                );
                return { name, source: { ...prefix, to: prefix.from }, interface: near?.interface ?? null };
            }),
        ...interfaces.flatMap((pattern) =>
            own
                .filter((each) =>
                    pattern.endsWith('*')
                        ? each.interface.startsWith(pattern.slice(0, -1))
                        : each.interface === pattern
                )
                .map(({ network, interface: at }) => ({
                    name,
                    source: { ...network, from: network.from, to: network.from },
                    interface: at
                }))
        )
    ];
}

/** Visitors from the internet may come through each interface that is not loopback. */
function internetOrigins(machine: Machine): readonly Origin[] {
    const names = [...new Set(machine.addresses().map((each) => each.interface))].filter(
        (name) => name !== 'lo'
    );
    return internet.flatMap((text) =>
        names.map((name) => ({ name: 'internet', source: parsePrefix(text), interface: name }))
    );
}

function ownAddress(machine: Machine, source: Interval): Interval {
    return (
        machine.addresses().find((each) => each.address.family === source.family && each.interface !== 'lo')
            ?.address ?? source
    );
}
