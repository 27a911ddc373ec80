/** The rules that are always there: without them IP itself does not work, or connections that stand would break. */
import { match, meta, payload } from './matches.ts';
import { type ChainRule, liveSets, type Statement } from './ruleset.ts';

const accept: Statement = { accept: null };
const drop: Statement = { drop: null };

/** What IPv4 needs of ICMP: errors, which tell the size of packets that fit. */
export const neededIcmp = ['destination-unreachable', 'time-exceeded', 'parameter-problem'] as const;
/** What IPv6 needs of ICMP: errors, neighbour discovery, and multicast listeners. */
export const neededIcmpv6 = [
    'destination-unreachable',
    'packet-too-big',
    'time-exceeded',
    'parameter-problem',
    'mld-listener-query',
    'mld-listener-report',
    'mld-listener-done',
    'mld2-listener-report',
    'nd-router-solicit',
    'nd-router-advert',
    'nd-neighbor-solicit',
    'nd-neighbor-advert'
] as const;

const state = (...states: readonly string[]): Statement =>
    match({ ct: { key: 'state' } }, states.length === 1 ? states[0] : states, 'in');
const rule = (comment: string, ...expr: readonly Statement[]): ChainRule => ({ expr, comment });
const established = rule('base: established', state('established', 'related'), accept);
const invalid = rule('base: invalid', state('invalid'), drop);
const icmp = [
    rule('base: ICMP errors', match(payload('icmp', 'type'), { set: neededIcmp }), accept),
    rule('base: ICMPv6', match(payload('icmpv6', 'type'), { set: neededIcmpv6 }), accept)
];
const dhcp = (client: number, server: number, isAnswer: boolean): Statement[] => [
    match(payload('udp', 'sport'), isAnswer ? server : client),
    match(payload('udp', 'dport'), isAnswer ? client : server),
    accept
];
const linkLocal = { prefix: { addr: 'fe80::', len: 10 } };

/** What stood before the rules lives on: the kernel follows connections only since then, and takes theirs for new ones. */
const live = (
    address: 'saddr' | 'daddr',
    peer: 'sport' | 'dport',
    own: 'sport' | 'dport'
): readonly ChainRule[] =>
    (['ipv4', 'ipv6'] as const).map((family) =>
        rule(
            'base: connections from before',
            match(
                {
                    concat: [
                        payload(family === 'ipv4' ? 'ip' : 'ip6', address),
                        payload('tcp', peer),
                        payload('tcp', own)
                    ]
                },
                `@${liveSets[family]}`
            ),
            accept
        )
    );

/** Of what is sent to this machine. */
export const inputBase: readonly ChainRule[] = [
    rule('base: loopback', match(meta('iifname'), 'lo'), accept),
    established,
    ...icmp,
    ...live('saddr', 'sport', 'dport'),
    invalid,
    rule('base: DHCP', match(meta('nfproto'), 'ipv4'), ...dhcp(68, 67, true)),
    rule('base: DHCPv6', match(payload('ip6', 'saddr'), linkLocal), ...dhcp(546, 547, true))
];

/** Of what this machine sends. */
export const outputBase: readonly ChainRule[] = [
    rule('base: loopback', match(meta('oifname'), 'lo'), accept),
    established,
    ...icmp,
    ...live('daddr', 'dport', 'sport'),
    rule('base: DHCP', match(meta('nfproto'), 'ipv4'), ...dhcp(68, 67, false)),
    rule('base: DHCPv6', match(meta('nfproto'), 'ipv6'), ...dhcp(546, 547, false))
];

/** Of what passes through this machine. What is translated, such as published ports, goes to the chain of its own. */
export const forwardBase: readonly ChainRule[] = [
    established,
    invalid,
    rule('base: published ports', match({ ct: { key: 'status' } }, 'dnat', 'in'), {
        goto: { target: 'container' }
    })
];
