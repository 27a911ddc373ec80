/** What other programs have in the kernel: read, never changed. */
import { type PortRange, readPorts } from '../address/ports.ts';
import type { Listed } from '../kernel/nft.ts';
import { isOwnTable } from '../ruleset/ruleset.ts';

/** A program whose rules are in the kernel. */
export interface ForeignTool {
    readonly tool: string;
    readonly active: boolean;
    readonly tables: readonly string[];
    readonly rules: number;
}

/** A port that another program sends to a container. */
export interface PublishedPort {
    readonly protocol: 'tcp' | 'udp';
    readonly port: number;
    /** Where it leads, as text. */
    readonly target: string;
}

type ListedRule = NonNullable<Listed['rule']>;

/** By the name of a chain, or of a table; the first that fits. */
const signs: readonly (readonly [tool: string, sign: RegExp])[] = [
    ['ufw', /^ufw6?-/],
    ['docker', /^DOCKER/],
    ['podman', /^(NETAVARK|netavark|CNI-)/],
    ['fail2ban', /^f2b-|^addr-set/],
    ['crowdsec', /^(crowdsec|CROWDSEC)/],
    ['firewalld', /^firewalld$/],
    ['libvirt', /^(LIBVIRT_|libvirt)/],
    ['kubernetes', /^(KUBE-|kube-)/]
];
const iptablesTables = new Set(['filter', 'nat', 'mangle', 'raw', 'security']);

/** The programs whose tables are in the kernel. */
export function foreignTools(ruleset: readonly Listed[]): readonly ForeignTool[] {
    const found = new Map<string, { readonly tables: Set<string>; rules: number }>();
    const note = (tool: string, table: string, rules: number): void => {
        const entry = found.get(tool) ?? { tables: new Set<string>(), rules: 0 };
        entry.tables.add(table);
        entry.rules += rules;
        found.set(tool, entry);
    };
    for (const { rule, chain } of ruleset) {
        const place = rule ?? chain;
        if (place === undefined || isOwnTable(place)) {
            continue;
        }
        const name = rule?.chain ?? chain?.name ?? '';
        note(
            toolOf(place.table, place.family, name),
            `${place.family} ${place.table}`,
            rule === undefined ? 0 : 1
        );
    }
    return [...found]
        .filter(([tool, { rules }]) => rules > 0 || tool !== 'iptables')
        .map(([tool, { tables, rules }]) => ({ tool, active: rules > 0, tables: [...tables], rules }));
}

/** Ports that are translated to another address, by rules of nft or of iptables, as `nft` lists them. */
export function publishedPorts(ruleset: readonly Listed[]): readonly PublishedPort[] {
    return ruleset.flatMap(({ rule }) => {
        if (rule === undefined || isOwnTable(rule)) {
            return [];
        }
        const target = rule.expr
            .map((each) => each['dnat'] as { addr?: unknown; port?: unknown } | undefined)
            .find((each) => each?.addr !== undefined);
        return target === undefined
            ? []
            : portsOf(rule).map((each) => ({
                  ...each,
                  target: `${String(target.addr)}${target.port === undefined ? '' : `:${String(target.port)}`}`
              }));
    });
}

/** Reads the translations in the output of `iptables-save -t nat`: `nft` does not show those of the older kind. */
export function publishedByIptables(text: string): readonly PublishedPort[] {
    return text.split('\n').flatMap((line): readonly PublishedPort[] => {
        const [, target] = /-j DNAT .*--to-destination (\S+)/.exec(line) ?? [];
        const [, protocol] = / -p (tcp|udp)\b/.exec(line) ?? [];
        const [, ports = ''] = /--dport (\d+(?::\d+)?)/.exec(line) ?? [];
        const range = readPorts(ports.replace(':', '-'));
        return target === undefined || protocol === undefined || range === null
            ? []
            : [{ protocol: protocol as 'tcp' | 'udp', port: range.from, target }];
    });
}

function toolOf(table: string, family: string, chain: string): string {
    const sign = signs.find(([, pattern]) => pattern.test(chain) || pattern.test(table));
    return sign?.[0] ?? (iptablesTables.has(table) && family !== 'inet' ? 'iptables' : 'nft');
}

function portsOf({
    expr
}: ListedRule): readonly { readonly protocol: 'tcp' | 'udp'; readonly port: number }[] {
    for (const statement of expr) {
        const { left, right } = (statement['match'] ?? {}) as {
            readonly left?: { readonly payload?: { readonly protocol: string; readonly field: string } };
            readonly right?: unknown;
        };
        const { protocol, field } = left?.payload ?? {};
        if ((protocol === 'tcp' || protocol === 'udp') && field === 'dport') {
            return rangesOf(right).map(({ from }) => ({ protocol, port: from }));
        }
    }
    return [];
}

/** The ports of the right side of a match. */
export function rangesOf(right: unknown): readonly PortRange[] {
    if (typeof right === 'number') {
        return [{ from: right, to: right }];
    }
    const { set, range } = (right ?? {}) as {
        readonly set?: readonly unknown[];
        readonly range?: readonly [unknown, unknown];
    };
    if (set !== undefined) {
        return set.flatMap(rangesOf);
    }
    return range !== undefined && typeof range[0] === 'number' && typeof range[1] === 'number'
        ? [{ from: range[0], to: range[1] }]
        : [];
}
