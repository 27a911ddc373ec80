/** Reads the rules of other tables of nft that hang on the hooks of the kernel. */
import { readPrefix } from '../address/interval.ts';
import { formatPorts } from '../address/ports.ts';
import type { Action, Policy } from '../draft/model.ts';
import type { Listed } from '../kernel/nft.ts';
import { isOwnTable } from '../ruleset/ruleset.ts';
import { type Adopted, type AdoptedRule, adoptedRule, nothingAdopted } from './adopted.ts';
import { rangesOf } from './kernel.ts';

const directions = { input: 'in', output: 'out', forward: 'forward' } as const;
type HookName = keyof typeof directions;
type ListedRule = NonNullable<Listed['rule']>;

interface Match {
    readonly op: string;
    readonly left: {
        readonly payload?: { readonly protocol: string; readonly field: string };
        readonly meta?: { readonly key: string };
        readonly ct?: { readonly key: string };
    };
    readonly right: unknown;
}

/** What the chains of other tables are as ours. A rule that jumps elsewhere has no counterpart. */
export function adoptNft(ruleset: readonly Listed[]): Adopted {
    const hooks = new Map<string, HookName>();
    const policy: { -readonly [K in keyof Policy]?: Policy[K] } = {};
    const rules: AdoptedRule[] = [];
    const unmatched: string[] = [];
    for (const { chain, rule } of ruleset) {
        if (
            chain !== undefined &&
            !isOwnTable(chain) &&
            chain.type === 'filter' &&
            Object.hasOwn(directions, chain.hook ?? '')
        ) {
            const hook = chain.hook as HookName;
            hooks.set(`${chain.family} ${chain.table} ${chain.name}`, hook);
            if (chain.policy === 'drop') {
                policy[hook] = 'drop';
            }
        }
        const hook = rule === undefined ? undefined : hooks.get(`${rule.family} ${rule.table} ${rule.chain}`);
        if (rule === undefined || hook === undefined) {
            continue;
        }
        const adopted = adoptRule(rule, directions[hook]);
        if (adopted === null) {
            unmatched.push(
                `${rule.family} ${rule.table} ${rule.chain}: ${JSON.stringify(rule.expr).slice(0, 300)}`
            );
        } else if (adopted !== 'base') {
            rules.push(adopted);
        }
    }
    return { ...nothingAdopted, policy, rules, unmatched };
}

function adoptRule(listed: ListedRule, direction: 'in' | 'out' | 'forward'): AdoptedRule | 'base' | null {
    const text = JSON.stringify(listed.expr);
    if (/"ct":\{"key":"state"\}/.test(text) && !text.includes('"new"')) {
        return 'base';
    }
    let action: Action | null = null;
    let rule = adoptedRule({
        direction,
        action: 'accept',
        family: listed.family === 'ip' ? 'ipv4' : listed.family === 'ip6' ? 'ipv6' : 'any',
        comment: (listed.comment ?? '').slice(0, 128)
    });
    for (const statement of listed.expr) {
        const [kind = '', value] = Object.entries(statement)[0] ?? [];
        if (kind === 'match') {
            const changed = conditionOf(rule, value as Match);
            if (changed === null) {
                return null;
            }
            rule = changed;
        } else if (kind === 'accept' || kind === 'drop' || kind === 'reject') {
            action = kind;
        } else if (kind !== 'counter' && kind !== 'log') {
            return null;
        }
    }
    return rule.interface === 'lo' ? 'base' : action === null ? null : { ...rule, action };
}

function conditionOf(rule: AdoptedRule, { op, left, right }: Match): AdoptedRule | null {
    const { protocol, field } = left.payload ?? {};
    if (op !== '==' && op !== 'in') {
        return null;
    }
    if ((protocol === 'tcp' || protocol === 'udp') && field === 'dport') {
        const ports = rangesOf(right).map(formatPorts);
        return ports.length === 0 ? null : { ...rule, protocol, ports };
    }
    if ((protocol === 'ip' || protocol === 'ip6') && (field === 'saddr' || field === 'daddr')) {
        const addresses = addressesOf(right);
        return addresses === null
            ? null
            : { ...rule, [field === 'saddr' ? 'sources' : 'destinations']: addresses };
    }
    const key = left.meta?.key;
    if (
        (key === 'iifname' || key === 'oifname' || key === 'iif' || key === 'oif') &&
        typeof right === 'string'
    ) {
        return { ...rule, interface: right };
    }
    if (key === 'l4proto' && (right === 'tcp' || right === 'udp' || right === 'icmp')) {
        return { ...rule, protocol: right };
    }
    return left.ct?.key === 'state' && right === 'new' ? rule : null;
}

function addressesOf(right: unknown): readonly string[] | null {
    const { set, prefix } = (typeof right === 'object' && right !== null ? right : {}) as {
        readonly set?: readonly unknown[];
        readonly prefix?: { readonly addr: string; readonly len: number };
    };
    const texts =
        typeof right === 'string'
            ? [right]
            : prefix !== undefined
              ? [`${prefix.addr}/${prefix.len}`]
              : (set?.flatMap((each) => addressesOf(each) ?? ['']) ?? ['']);
    return texts.every((text) => readPrefix(text) !== null) ? texts : null;
}
