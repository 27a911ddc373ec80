/** The conditions of a rule, resolved: names of services, sets and zones are looked up. The compiler and the evaluator both work on these. */
import { type Family, type Interval, mergeIntervals, parsePrefix } from '../../address/interval.ts';
import { type PortRange, readPorts } from '../../address/ports.ts';
import type { Model, Protocol, Rule, Zone } from '../model.ts';
import { knownServices } from './known-services.ts';

/** One way to match by protocol and port; null: any. */
export interface ServiceTerm {
    readonly protocol: Protocol | null;
    readonly ports: readonly PortRange[] | null;
}

/** Addresses of one family: written ones, or those of a set. */
export type AddressTerm =
    // The intervals ascend and do not overlap.
    | { readonly family: Family; readonly intervals: readonly Interval[]; readonly set: null }
    | {
          readonly family: Family;
          readonly intervals: null;
          readonly set: { readonly id: number; readonly name: string; readonly family: Family };
      };

/** One way to be in a zone. */
export type ZoneTerm =
    | { readonly interfaces: readonly string[]; readonly addresses: null }
    | { readonly interfaces: null; readonly addresses: AddressTerm };

/** The conditions of a rule. All of them must match; of a list, one entry must. Null is no condition. */
export interface RuleTerms {
    readonly family: Family | null;
    readonly services: readonly ServiceTerm[];
    readonly sources: readonly AddressTerm[] | null;
    readonly destinations: readonly AddressTerm[] | null;
    readonly zone: readonly ZoneTerm[] | null;
    readonly interface: string | null;
}

/** Resolves the conditions of a rule. The model was checked before. */
export function termsOf(rule: Rule, model: Model): RuleTerms {
    const zone = model.zones.find(({ name }) => name === rule.zone);
    return {
        family: rule.family === 'any' ? null : rule.family,
        services: serviceTerms(rule, model),
        sources: addressTerms(rule.sources, model),
        destinations: addressTerms(rule.destinations, model),
        zone: rule.zone === null ? null : zone === undefined ? [] : zoneTerms(zone, model),
        interface: rule.interface
    };
}

/** Resolves a zone to the interfaces and addresses that its rules compare. */
export function zoneTerms({ interfaces, sources }: Zone, model: Model): readonly ZoneTerm[] {
    const addresses = addressTerms(sources, model) ?? [];
    return [
        ...(interfaces.length === 0 ? [] : [{ interfaces, addresses: null }]),
        ...addresses.map((term) => ({ interfaces: null, addresses: term }))
    ];
}

/** Groups addresses by family; null for none. @throws AddressInvalid */
export function addressTerms(
    texts: readonly string[],
    { sets }: Pick<Model, 'sets'>
): readonly AddressTerm[] | null {
    if (texts.length === 0) {
        return null;
    }
    const named = texts.filter((text) => text.startsWith('@')).map((text) => text.slice(1));
    const written = texts.filter((text) => !text.startsWith('@')).map(parsePrefix);
    return [
        ...(['ipv4', 'ipv6'] as const).flatMap((family): AddressTerm[] => {
            const intervals = mergeIntervals(written.filter((each) => each.family === family));
            return intervals.length === 0 ? [] : [{ family, intervals, set: null }];
        }),
        ...sets
            .filter(({ name }) => named.includes(name))
            .map(({ id, name, family }) => ({ family, intervals: null, set: { id, name, family } }))
    ];
}

/** Reads `tcp/80`, `udp/5000-5010` or `icmp`; null for anything else. */
export function readServicePort(text: string): ServiceTerm | null {
    if (text === 'icmp' || text === 'icmpv6') {
        return { protocol: text, ports: null };
    }
    const [, protocol = '', ports = ''] = /^(tcp|udp)(?:\/([\d-]+))?$/.exec(text) ?? [];
    if (protocol === '') {
        return null;
    }
    const range = ports === '' ? null : readPorts(ports);
    return ports !== '' && range === null
        ? null
        : { protocol: protocol as Protocol, ports: range === null ? null : [range] };
}

function serviceTerms(rule: Rule, model: Model): readonly ServiceTerm[] {
    const own = rule.protocol === 'any' ? null : rule.protocol;
    const ranges = rule.ports.flatMap((text) => readPorts(text) ?? []);
    const ofPorts: ServiceTerm[] =
        ranges.length === 0
            ? []
            : (own === null ? (['tcp', 'udp'] as const) : [own]).map((protocol) => ({
                  protocol,
                  ports: ranges
              }));
    const ofServices = rule.services
        .flatMap(
            (name) =>
                (model.services.find((each) => each.name === name) ?? knownServices.get(name))?.ports ?? []
        )
        .flatMap((text) => readServicePort(text) ?? [])
        .filter(({ protocol }) => own === null || protocol === own);
    const all = [...ofPorts, ...joinByProtocol(ofServices)];
    return rule.ports.length === 0 && rule.services.length === 0 ? [{ protocol: own, ports: null }] : all;
}

/** Makes one term of all ports of a protocol. */
function joinByProtocol(terms: readonly ServiceTerm[]): readonly ServiceTerm[] {
    return [...Map.groupBy(terms, ({ protocol }) => protocol)].map(([protocol, all]) => ({
        protocol,
        ports: all.some(({ ports }) => ports === null) ? null : all.flatMap(({ ports }) => ports ?? [])
    }));
}
