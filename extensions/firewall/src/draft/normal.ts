/** One spelling for each value, so that equal rules are equal texts. */
import { formatInterval, parsePrefix } from '../address/interval.ts';
import { formatPorts, readPorts } from '../address/ports.ts';
import type { AddressSet, Nat, Rule, Zone } from './model.ts';

/** Canonical addresses, each once; sets stay as they are. */
function addresses(texts: readonly string[]): readonly string[] {
    return [
        ...new Set(texts.map((text) => (text.startsWith('@') ? text : formatInterval(parsePrefix(text)))))
    ];
}

function ports(texts: readonly string[]): readonly string[] {
    const ranges = texts.flatMap((text) => readPorts(text) ?? []);
    return [...new Set(ranges.map(formatPorts))];
}

/** A rule in its one spelling. Its values were checked before. */
export function normalRule(rule: Rule): Rule {
    return {
        ...rule,
        ports: ports(rule.ports),
        services: [...new Set(rule.services)],
        sources: addresses(rule.sources),
        destinations: addresses(rule.destinations),
        expiresAt: rule.expiresAt === null ? null : new Date(rule.expiresAt).toISOString()
    };
}

/** A zone in its one spelling. */
export function normalZone(zone: Zone): Zone {
    return { ...zone, interfaces: [...new Set(zone.interfaces)], sources: addresses(zone.sources) };
}

/** A translation in its one spelling. */
export function normalNat(nat: Nat): Nat {
    return { ...nat, ports: ports(nat.ports), sources: addresses(nat.sources) };
}

/** A set in its one spelling. */
export function normalSet(set: AddressSet): AddressSet {
    return { ...set, countries: [...new Set(set.countries.map((country) => country.toLowerCase()))] };
}
