/** The chains and sets of bans. They stand apart from the rules, so that no apply and no trial touches a ban. */
import type { Family } from '../address/interval.ts';
import { match, payload } from './matches.ts';
import type { Chain, ChainRule, Element, KernelSet, Ruleset } from './ruleset.ts';

/** The names of the sets of bans. */
export const banSets: Readonly<Record<Family, string>> = { ipv4: 'bans4', ipv6: 'bans6' };
/** Less than that of the chains of rules: the kernel asks the chain of the least priority first. */
const priority = -20;

/** What a banned address began itself; answers to what this machine asked pass. */
const rules: readonly ChainRule[] = (['ipv4', 'ipv6'] as const).map((family) => ({
    expr: [
        match({ ct: { key: 'direction' } }, 'original'),
        match(payload(family === 'ipv4' ? 'ip' : 'ip6', 'saddr'), `@${banSets[family]}`),
        { drop: null }
    ],
    comment: 'bans'
}));
const chain = (hook: 'input' | 'forward'): Chain => ({
    name: `bans-${hook}`,
    hook: { type: 'filter', hook, prio: priority, policy: 'accept' },
    rules
});

const chains = [chain('input'), chain('forward')];
/** Names of the chains that look into the sets. */
export const banChains: readonly string[] = chains.map(({ name }) => name);

/** The set of bans of a family. */
export function banSet(family: Family, elements: readonly Element[]): KernelSet {
    return { name: banSets[family], family, isCounted: true, elements };
}

/** The part of the table that drops what banned addresses send. */
export function compileBans(elements: (family: Family) => readonly Element[]): Ruleset {
    return {
        chains,
        sets: (['ipv4', 'ipv6'] as const).map((family) => banSet(family, elements(family))),
        live: null,
        counters: []
    };
}
