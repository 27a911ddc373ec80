/** Conditions as statements. A condition with several ways becomes several lists of statements, one for each way. */
import { bitsOf, type Family, formatAddress, type Interval, prefixLengthOf } from '../address/interval.ts';
import { mergePorts, type PortRange } from '../address/ports.ts';
import type { Direction } from '../draft/model.ts';
import type { AddressTerm, RuleTerms, ServiceTerm, ZoneTerm } from '../draft/objects/terms.ts';
import { kernelSetName, type Statement } from './ruleset.ts';

const protocolOf = { ipv4: 'ip', ipv6: 'ip6' } as const;

/** Makes the statement of nftables that compares two expressions. */
export function match(left: unknown, right: unknown, op = '=='): Statement {
    return { match: { op, left, right } };
}

/** Makes the expression of nftables for a property of the packet, such as `iifname`. */
export function meta(key: string): unknown {
    return { meta: { key } };
}

/** A field of a header. */
export function payload(protocol: string, field: string): unknown {
    return { payload: { protocol, field } };
}

/** An interval as an expression. */
export function intervalExpression(interval: Interval): unknown {
    const { family, from, to } = interval;
    const length = prefixLengthOf(interval);
    return length === null
        ? { range: [formatAddress(family, from), formatAddress(family, to)] }
        : length === bitsOf(family)
          ? formatAddress(family, from)
          : { prefix: { addr: formatAddress(family, from), len: length } };
}

/** Ports as the right side of a match. */
export function portsExpression(ranges: readonly PortRange[]): unknown {
    const merged = mergePorts(ranges).map(({ from, to }) => (from === to ? from : { range: [from, to] }));
    return merged.length === 1 ? merged[0] : { set: merged };
}

/** The lists of statements that match an interface; a pattern with `*` cannot stand in a set. */
export function interfaceMatches(
    key: 'iifname' | 'oifname',
    names: readonly string[]
): readonly Statement[][] {
    const whole = names.filter((name) => !name.endsWith('*'));
    return [
        ...(whole.length === 0 ? [] : [[match(meta(key), whole.length === 1 ? whole[0] : { set: whole })]]),
        ...names.filter((name) => name.endsWith('*')).map((name) => [match(meta(key), name)])
    ];
}

/** Matches the addresses of a term. A published port is known by its address before the translation. */
export function addressMatch(direction: Direction, field: 'saddr' | 'daddr', term: AddressTerm): Statement {
    const protocol = protocolOf[term.family];
    const left =
        direction === 'container' && field === 'daddr'
            ? { ct: { key: `${protocol} daddr`, dir: 'original' } }
            : payload(protocol, field);
    if (term.set !== null) {
        return match(left, `@${kernelSetName(term.set)}`);
    }
    const intervals = term.intervals.map(intervalExpression);
    return match(left, intervals.length === 1 ? intervals[0] : { set: intervals });
}

/** Lists of statements, each with the family that it stands for. */
interface Way {
    readonly family: Family | null;
    readonly statements: readonly Statement[];
}

/** The lists of statements that match a rule, one for each way in which it can match. */
export function ruleMatches(direction: Direction, terms: RuleTerms): readonly (readonly Statement[])[] {
    const none: readonly Way[] = [{ family: null, statements: [] }];
    const addresses = (field: 'saddr' | 'daddr', all: readonly AddressTerm[] | null): readonly Way[] =>
        all?.map((term) => ({ family: term.family, statements: [addressMatch(direction, field, term)] })) ??
        none;
    const families: readonly Way[] =
        terms.family === null
            ? none
            : [{ family: terms.family, statements: [match(meta('nfproto'), terms.family)] }];
    const interfaces: readonly Way[] =
        terms.interface === null
            ? none
            : interfaceMatches(direction === 'out' ? 'oifname' : 'iifname', [terms.interface]).map(
                  (statements) => ({
                      family: null,
                      statements
                  })
              );
    const lists = [
        families,
        interfaces,
        terms.zone === null ? none : terms.zone.flatMap((term) => zoneWays(direction, term)),
        addresses('saddr', terms.sources),
        addresses('daddr', terms.destinations),
        terms.services.flatMap((term) => serviceWays(direction, term))
    ];
    return lists.reduce(combine, none).map(({ statements }) => withoutFamilyTwice(statements));
}

/** The lists of statements that match a zone. */
export function zoneMatches(terms: readonly ZoneTerm[]): readonly (readonly Statement[])[] {
    return terms.flatMap((term) => zoneWays('in', term).map(({ statements }) => statements));
}

function zoneWays(direction: Direction, { interfaces, addresses }: ZoneTerm): readonly Way[] {
    return interfaces !== null
        ? interfaceMatches('iifname', interfaces).map((statements) => ({ family: null, statements }))
        : [{ family: addresses.family, statements: [addressMatch(direction, 'saddr', addresses)] }];
}

function serviceWays(direction: Direction, { protocol, ports }: ServiceTerm): readonly Way[] {
    const family = protocol === 'icmp' ? 'ipv4' : protocol === 'icmpv6' ? 'ipv6' : null;
    if (protocol === null) {
        return [{ family, statements: [] }];
    }
    const isProtocol = match(meta('l4proto'), protocol === 'icmpv6' ? 'ipv6-icmp' : protocol);
    if (ports === null) {
        return [{ family, statements: [isProtocol] }];
    }
    // nft 1.0.6 forgets the byte order of these ports in a set, so each range is a match of its own.
    return direction === 'container'
        ? mergePorts(ports).map((range) => ({
              family,
              statements: [
                  isProtocol,
                  match({ ct: { key: 'proto-dst', dir: 'original' } }, portsExpression([range]))
              ]
          }))
        : [{ family, statements: [match(payload(protocol, 'dport'), portsExpression(ports))] }];
}

/** Every pair of ways whose families fit together. */
function combine(some: readonly Way[], others: readonly Way[]): readonly Way[] {
    return some.flatMap((one) =>
        others
            .filter(({ family }) => one.family === null || family === null || one.family === family)
            .map((other) => ({
                family: one.family ?? other.family,
                statements: [...one.statements, ...other.statements]
            }))
    );
}

/** An address says its family already, so the match of the family itself is left out. */
function withoutFamilyTwice(statements: readonly Statement[]): readonly Statement[] {
    const isFamily = (statement: Statement): boolean => JSON.stringify(statement).includes('"nfproto"');
    const isAddress = (statement: Statement): boolean => /"protocol":"ip6?"/.test(JSON.stringify(statement));
    return statements.some(isAddress) ? statements.filter((each) => !isFamily(each)) : statements;
}
