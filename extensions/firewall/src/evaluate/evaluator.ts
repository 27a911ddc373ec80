/** Says what the ruleset of a model does with a packet that begins a connection, by the same conditions that the compiler writes. */
import { includesAddress, type Interval } from '../address/interval.ts';
import { type PortRange, readPorts } from '../address/ports.ts';
import type { Action, Direction, Model, Nat, Protocol, Rule } from '../draft/model.ts';
import {
    type AddressTerm,
    addressTerms,
    type RuleTerms,
    type ServiceTerm,
    termsOf,
    type ZoneTerm,
    zoneTerms
} from '../draft/objects/terms.ts';
import { parseTarget } from '../draft/target.ts';
import { isActive } from '../ruleset/compile.ts';

/** The first packet of a connection. */
export interface Packet {
    readonly direction: Direction;
    /** One address. */
    readonly source: Interval;
    /** One address of the same family. */
    readonly destination: Interval;
    readonly protocol: Protocol;
    /** Null for protocols without ports. */
    readonly port: number | null;
    /** Where it comes in, or goes out; null: unknown, and then no condition on an interface matches. */
    readonly interface: string | null;
}

/** What becomes of a packet, and why. */
export interface Verdict {
    readonly verdict: Action;
    readonly ruleId: number | null;
    /** What it met, in order, in words. */
    readonly path: readonly string[];
}

/** What a model is evaluated with. */
export interface EvaluatorOptions {
    readonly model: Model;
    /** Milliseconds since 1970. */
    readonly now: number;
    /** The addresses of a set, ascending and without overlaps. */
    intervals(set: string): readonly Interval[];
    /** The ban that holds an address, as a text; null for none. */
    ban(source: Interval): string | null;
}

interface Prepared {
    readonly rule: Rule;
    readonly terms: RuleTerms;
}

const chains: Readonly<Record<Direction, keyof Model['policy']>> = {
    in: 'input',
    out: 'output',
    forward: 'forward',
    container: 'container'
};

/** Evaluates packets against one model. */
export class Evaluator {
    readonly #options: EvaluatorOptions;
    readonly #rules: ReadonlyMap<Direction, readonly Prepared[]>;
    readonly #zones: readonly {
        readonly name: string;
        readonly policy: Action;
        readonly terms: readonly ZoneTerm[];
    }[];

    constructor(options: EvaluatorOptions) {
        const { model, now } = options;
        this.#options = options;
        const prepared = model.rules
            .filter((rule) => isActive(rule, now))
            .map((rule) => ({ rule, terms: termsOf(rule, model) }));
        this.#rules = Map.groupBy(prepared, ({ rule }) => rule.direction);
        this.#zones = model.zones.flatMap((zone) =>
            zone.policy === null
                ? []
                : [{ name: zone.name, policy: zone.policy, terms: zoneTerms(zone, model) }]
        );
    }

    /** What becomes of a packet. */
    evaluate(given: Packet): Verdict {
        const path: string[] = [];
        const packet = this.#translated(given, path);
        const decided = (verdict: Action, why: string, ruleId: number | null = null): Verdict => ({
            verdict,
            ruleId,
            path: [...path, why]
        });
        if (packet.interface === 'lo' && (packet.direction === 'in' || packet.direction === 'out')) {
            return decided('accept', 'base: loopback');
        }
        const ban = packet.direction === 'out' ? null : this.#options.ban(packet.source);
        if (ban !== null) {
            return decided('drop', `ban of ${ban}`);
        }
        for (const { rule, terms } of this.#rules.get(packet.direction) ?? []) {
            if (!this.#matches(packet, terms)) {
                continue;
            }
            if (rule.rate !== null && rule.action !== 'accept') {
                path.push(`rule ${rule.id}: only beyond ${rule.rate.count} per ${rule.rate.per}`);
            } else {
                return decided(rule.action, `rule ${rule.id}: ${rule.action}`, rule.id);
            }
        }
        const zone =
            packet.direction === 'out'
                ? undefined
                : this.#zones.find(({ terms }) => this.#inZone(packet, terms));
        const policy = this.#options.model.policy[chains[packet.direction]];
        return zone === undefined
            ? decided(policy, `policy ${chains[packet.direction]}: ${policy}`)
            : decided(zone.policy, `zone ${zone.name}: ${zone.policy}`);
    }

    #matches(packet: Packet, terms: RuleTerms): boolean {
        return (
            (terms.family === null || terms.family === packet.source.family) &&
            (terms.interface === null || isInterface(terms.interface, packet.interface)) &&
            (terms.zone === null || this.#inZone(packet, terms.zone)) &&
            this.#hasAddress(terms.sources, packet.source) &&
            this.#hasAddress(terms.destinations, packet.destination) &&
            terms.services.some((term) => isService(term, packet))
        );
    }

    #inZone(packet: Packet, terms: readonly ZoneTerm[]): boolean {
        return terms.some(({ interfaces, addresses }) =>
            interfaces === null
                ? this.#hasAddress([addresses], packet.source)
                : interfaces.some((name) => isInterface(name, packet.interface))
        );
    }

    #hasAddress(terms: readonly AddressTerm[] | null, address: Interval): boolean {
        return (
            terms === null ||
            terms.some(
                (term) =>
                    term.family === address.family &&
                    includesAddress(
                        term.set === null ? term.intervals : this.#options.intervals(term.set.name),
                        address.from
                    )
            )
        );
    }

    /** A redirect or a translation of the destination happens before the rules. */
    #translated(packet: Packet, path: string[]): Packet {
        if (packet.direction !== 'in') {
            return packet;
        }
        const nat = this.#options.model.nat.find(
            (each) => (each.type === 'redirect' || each.type === 'dnat') && this.#isTranslated(each, packet)
        );
        const target = nat?.to == null ? null : parseTarget(nat.to);
        if (nat === undefined || target === null || packet.interface === 'lo') {
            return packet;
        }
        path.push(`translation ${nat.id}: ${nat.type} to ${nat.to}`);
        // The rules for published ports see the port and the address that the visitor named.
        return nat.type === 'dnat' ? { ...packet, direction: 'container' } : { ...packet, port: target.port };
    }

    #isTranslated(nat: Nat, packet: Packet): boolean {
        const target = nat.to === null ? null : parseTarget(nat.to);
        const ports = nat.ports.flatMap((text) => readPorts(text) ?? []);
        return (
            (target?.address == null || target.address.family === packet.source.family) &&
            (nat.protocol === 'any' || nat.protocol === packet.protocol) &&
            (ports.length === 0 || isPort(ports, packet.port)) &&
            (nat.interface === null || isInterface(nat.interface, packet.interface)) &&
            this.#hasAddress(addressTerms(nat.sources, this.#options.model), packet.source)
        );
    }
}

function isService({ protocol, ports }: ServiceTerm, packet: Packet): boolean {
    const isFamily =
        packet.protocol === 'icmp'
            ? packet.source.family === 'ipv4'
            : packet.protocol !== 'icmpv6' || packet.source.family === 'ipv6';
    return (
        isFamily &&
        (protocol === null || protocol === packet.protocol) &&
        (ports === null || isPort(ports, packet.port))
    );
}

function isPort(ranges: readonly PortRange[], port: number | null): boolean {
    return port !== null && ranges.some(({ from, to }) => from <= port && port <= to);
}

function isInterface(pattern: string, name: string | null): boolean {
    return (
        name !== null && (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern)
    );
}
