/** Reads the rules of iptables: `iptables-save` and `ip6tables-save`. */
import { type Family, readPrefix } from '../address/interval.ts';
import { readPorts } from '../address/ports.ts';
import type { Policy } from '../draft/model.ts';
import { actionOf, type Adopted, type AdoptedRule, adoptedRule, nothingAdopted } from './adopted.ts';

const directions = { INPUT: 'in', OUTPUT: 'out', FORWARD: 'forward' } as const;
const policies = { INPUT: 'input', OUTPUT: 'output', FORWARD: 'forward' } as const satisfies Readonly<
    Record<string, keyof Policy>
>;
type BuiltIn = keyof typeof directions;

/** What the rules of the built-in chains of `filter` are as ours; those of other chains have no counterpart. */
export function adoptIptables(text: string, family: Family): Adopted {
    const policy: { -readonly [K in keyof Policy]?: Policy[K] } = {};
    const rules: AdoptedRule[] = [];
    const unmatched: string[] = [];
    let table = '';
    for (const line of text.split('\n').map((each) => each.trim())) {
        if (line.startsWith('*')) {
            table = line.slice(1);
        }
        if (table !== 'filter') {
            continue;
        }
        const [, chain, word = ''] = /^:(INPUT|OUTPUT|FORWARD) (\w+)/.exec(line) ?? [];
        const action = chain === undefined ? null : actionOf(word);
        if (chain !== undefined && action !== null) {
            policy[policies[chain as BuiltIn]] = action;
        }
        if (line.startsWith('-A ')) {
            const rule = parseRule(line, family);
            if (rule === null) {
                unmatched.push(line);
            } else if (rule !== 'base') {
                rules.push(rule);
            }
        }
    }
    return { ...nothingAdopted, policy, rules, unmatched };
}

/** Reads one line of `iptables-save`; `base` for what our base rules do already, null for what has no counterpart. */
function parseRule(line: string, family: Family): AdoptedRule | 'base' | null {
    if (
        /-i lo -j ACCEPT$|-o lo -j ACCEPT$|(--ctstate|--state) (RELATED,ESTABLISHED|ESTABLISHED,RELATED|ESTABLISHED) -j ACCEPT$|--ctstate INVALID -j DROP$/.test(
            line
        )
    ) {
        return 'base';
    }
    const [, chain = ''] = /^-A (\S+)/.exec(line) ?? [];
    const words = (line.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? []).slice(2);
    if (!Object.hasOwn(directions, chain)) {
        return null;
    }
    let rule = adoptedRule({ direction: directions[chain as BuiltIn], action: 'accept', family });
    for (let word = words.shift(); word !== undefined; word = words.shift()) {
        const changed = conditionOf(rule, word, () => words.shift() ?? '');
        if (changed === null) {
            return null;
        }
        rule = changed;
    }
    return rule;
}

function conditionOf(rule: AdoptedRule, word: string, next: () => string): AdoptedRule | null {
    switch (word) {
        case '-p': {
            const protocol = next().replace('ipv6-icmp', 'icmpv6');
            return protocol === 'tcp' || protocol === 'udp' || protocol === 'icmp' || protocol === 'icmpv6'
                ? { ...rule, protocol }
                : null;
        }
        case '-m':
            return ['tcp', 'udp', 'comment', 'multiport', 'conntrack', 'state'].includes(next())
                ? rule
                : null;
        case '--ctstate':
        case '--state':
            return next() === 'NEW' ? rule : null;
        case '-s':
        case '-d': {
            const address = next();
            const key = word === '-s' ? 'sources' : 'destinations';
            return readPrefix(address) === null ? null : { ...rule, [key]: [address] };
        }
        case '-i':
        case '-o':
            return { ...rule, interface: next().replace(/\+$/, '*') };
        case '--dport':
        case '--dports': {
            const ports = next()
                .split(',')
                .map((each) => each.replace(':', '-'));
            return ports.every((each) => readPorts(each) !== null) ? { ...rule, ports } : null;
        }
        case '--comment':
            return { ...rule, comment: next().replace(/^"|"$/g, '').slice(0, 128) };
        case '--reject-with':
            return next() === '' ? null : rule;
        case '-j': {
            const action = actionOf(next());
            return action === null ? null : { ...rule, action };
        }
        default:
            return null;
    }
}
