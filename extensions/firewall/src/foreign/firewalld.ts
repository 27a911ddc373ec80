/** Reads the zones of firewalld: `firewall-cmd --list-all-zones`. */
import { readPrefix } from '../address/interval.ts';
import { readPorts } from '../address/ports.ts';
import { knownServices } from '../draft/objects/known-services.ts';
import { actionOf, type Adopted, type AdoptedRule, adoptedRule } from './adopted.ts';

type Fields = Readonly<Record<string, string>>;

/** Fields of a zone that hold nothing that could be lost. */
const silent = new Set([
    'target',
    'interfaces',
    'sources',
    'services',
    'ports',
    'icmp-block-inversion',
    'forward',
    'masquerade'
]);

/** What firewalld's zones in use are as ours. */
export function adoptFirewalld(text: string): Adopted {
    const zones: Adopted['zones'][number][] = [];
    const rules: AdoptedRule[] = [];
    const unmatched: string[] = [];
    for (const block of text.split(/\n\s*\n/)) {
        const [head = '', ...lines] = block.trim().split('\n');
        const [, name] = /^([A-Za-z][A-Za-z0-9_-]{0,29}) \(.*active.*\)$/.exec(head.trim()) ?? [];
        if (name === undefined) {
            continue;
        }
        const fields: Fields = Object.fromEntries(
            lines.map((line) => [line.trim().split(':')[0], line.slice(line.indexOf(':') + 1).trim()])
        );
        const listed = (key: string): readonly string[] =>
            (fields[key] ?? '').split(/\s+/).filter((each) => each !== '');
        const sources = listed('sources').filter((each) => readPrefix(each) !== null);
        zones.push({
            name,
            interfaces: listed('interfaces'),
            sources,
            policy: fields['target'] === 'default' ? 'reject' : actionOf(fields['target'] ?? '')
        });
        for (const service of listed('services')) {
            const known = service === 'dhcpv6-client' ? null : service;
            if (known !== null && knownServices.has(known)) {
                rules.push(adoptedRule({ direction: 'in', action: 'accept', zone: name, services: [known] }));
            } else if (known !== null) {
                unmatched.push(`${name}: service ${service}`);
            }
        }
        for (const port of listed('ports')) {
            const [range = '', protocol] = port.split('/');
            const isKnown = (protocol === 'tcp' || protocol === 'udp') && readPorts(range) !== null;
            if (isKnown) {
                rules.push(
                    adoptedRule({ direction: 'in', action: 'accept', zone: name, ports: [range], protocol })
                );
            } else {
                unmatched.push(`${name}: port ${port}`);
            }
        }
        unmatched.push(...lossesOf(name, fields, lines));
    }
    return {
        policy: {},
        zones: zones.filter(({ interfaces, sources }) => interfaces.length + sources.length > 0),
        rules,
        nat: [],
        unmatched
    };
}

function lossesOf(name: string, fields: Fields, lines: readonly string[]): readonly string[] {
    const named = Object.entries(fields)
        .filter(
            ([key, value]) =>
                !silent.has(key) && key !== 'rich rules' && value !== '' && /^[a-z- ]+$/.test(key)
        )
        .map(([key, value]) => `${name}: ${key} ${value}`);
    const rich = lines
        .filter((line) => line.trim().startsWith('rule '))
        .map((line) => `${name}: ${line.trim()}`);
    return [...(fields['masquerade'] === 'yes' ? [`${name}: masquerade`] : []), ...named, ...rich];
}
