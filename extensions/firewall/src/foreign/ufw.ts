/** Reads the rules of ufw: `ufw show added` and `ufw status verbose`. */
import { readPrefix } from '../address/interval.ts';
import { readPorts } from '../address/ports.ts';
import type { Policy } from '../draft/model.ts';
import { knownServices } from '../draft/objects/known-services.ts';
import { actionOf, type Adopted, type AdoptedRule, adoptedRule, nothingAdopted } from './adopted.ts';

/** `limit` of ufw: six connections in half a minute. */
const limit = { count: 12, per: 'minute', burst: 6 } as const;

/** What ufw's rules are as ours. */
export function adoptUfw(added: string, status: string): Adopted {
    const rules: AdoptedRule[] = [];
    const unmatched: string[] = [];
    for (const line of added.split('\n').filter((each) => each.startsWith('ufw '))) {
        const rule = parseRule(line);
        if (rule === null) {
            unmatched.push(line);
        } else {
            rules.push(...rule);
        }
    }
    return { ...nothingAdopted, policy: policyOf(status), rules, unmatched };
}

function policyOf(status: string): Partial<Policy> {
    const [, incoming = '', outgoing = '', routed = ''] =
        /^Default: (\w+) \(incoming\), (\w+) \(outgoing\), (\w+) \(routed\)/m.exec(status) ?? [];
    const [input, output, forward] = [
        actionOf(incoming),
        actionOf(outgoing),
        routed === 'disabled' ? 'drop' : actionOf(routed)
    ];
    return {
        ...(input === null ? {} : { input }),
        ...(output === null ? {} : { output }),
        ...(forward === null ? {} : { forward })
    };
}

/** Reads one line, such as `ufw allow in on eth0 from 10.0.0.0/8 to any port 22 proto tcp comment 'x'`; null for another form. */
function parseRule(line: string): readonly AdoptedRule[] | null {
    const [, comment = ''] = / comment '(.*)'$/.exec(line) ?? [];
    const words = line
        .replace(/ comment '.*'$/, '')
        .split(/\s+/)
        .slice(1);
    const next = (): string => words.shift() ?? '';
    const isRoute = words[0] === 'route' && next() !== '';
    const verb = next();
    const action = verb === 'limit' ? 'accept' : actionOf(verb);
    if (action === null) {
        return null;
    }
    let rule = adoptedRule({
        direction: isRoute ? 'forward' : 'in',
        action,
        comment,
        ...(verb === 'limit' ? { rate: limit } : {})
    });
    while (words.length > 0) {
        const word = next();
        const changed = conditionOf(rule, word, next);
        if (changed === null) {
            return null;
        }
        rule = changed;
    }
    return [rule];
}

function conditionOf(rule: AdoptedRule, word: string, next: () => string): AdoptedRule | null {
    switch (word) {
        case 'in':
        case 'out':
            return { ...rule, direction: rule.direction === 'forward' ? 'forward' : word };
        case 'on':
            return rule.interface === null ? { ...rule, interface: next() } : null;
        case 'log':
        case 'log-all':
            return { ...rule, log: true };
        case 'from':
        case 'to': {
            const address = next();
            const key = word === 'from' ? 'sources' : 'destinations';
            return address === 'any'
                ? rule
                : readPrefix(address) === null
                  ? null
                  : { ...rule, [key]: [address] };
        }
        case 'proto': {
            const protocol = next();
            return protocol === 'tcp' || protocol === 'udp' ? { ...rule, protocol } : null;
        }
        case 'port':
        case 'app':
            return portsOf(rule, next());
        default:
            return portsOf(rule, word);
    }
}

function portsOf(rule: AdoptedRule, text: string): AdoptedRule | null {
    const [ports = '', protocol] = text.split('/');
    const list = ports.split(',').map((each) => each.replace(':', '-'));
    if (protocol !== undefined && protocol !== 'tcp' && protocol !== 'udp') {
        return null;
    }
    const named = { ...rule, ...(protocol === undefined ? {} : { protocol }) } as AdoptedRule;
    if (list.every((each) => readPorts(each) !== null)) {
        return { ...named, ports: list };
    }
    const service = { openssh: 'ssh' }[text.toLowerCase()] ?? text.toLowerCase();
    return knownServices.has(service) ? { ...rule, services: [service] } : null;
}
