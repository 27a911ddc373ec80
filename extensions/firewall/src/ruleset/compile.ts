/** Makes the kernel's ruleset of a model. Pure: the same input gives the same ruleset. */
import { formatAddress } from '../address/interval.ts';
import { mergePorts, readPorts } from '../address/ports.ts';
import type { Action, Direction, Model, Nat, Rule } from '../draft/model.ts';
import { addressTerms, termsOf, zoneTerms } from '../draft/objects/terms.ts';
import { parseTarget } from '../draft/target.ts';
import { forwardBase, inputBase, outputBase } from './base.ts';
import {
    addressMatch,
    interfaceMatches,
    match,
    meta,
    payload,
    portsExpression,
    ruleMatches,
    zoneMatches
} from './matches.ts';
import {
    type Chain,
    type ChainRule,
    counterName,
    type Element,
    type Hook,
    kernelSet,
    type LiveConnection,
    type Ruleset,
    type Statement
} from './ruleset.ts';

/** What a ruleset is made of beside the model. */
export interface CompileOptions {
    /** Milliseconds since 1970; rules that have expired by then are left out. */
    readonly now: number;
    readonly logDropped: boolean;
    /** Connections that stand while there are no rules in the kernel. */
    readonly live?: readonly LiveConnection[];
    /** Elements of a set of the model. */
    elements(set: string): readonly Element[];
}

/** Before the chains of other programs, which come at 0; after the bans. */
const priority = -10;
const hooks: Readonly<Record<'input' | 'output' | 'forward', Omit<Hook, 'policy'>>> = {
    input: { type: 'filter', hook: 'input', prio: priority },
    output: { type: 'filter', hook: 'output', prio: priority },
    forward: { type: 'filter', hook: 'forward', prio: priority }
};
const refuse: Chain = {
    name: 'refuse',
    hook: null,
    rules: [
        { expr: [match(meta('l4proto'), 'tcp'), { reject: { type: 'tcp reset' } }] },
        { expr: [{ reject: { type: 'icmpx', expr: 'port-unreachable' } }] }
    ]
};
const verdicts: Readonly<Record<Action, Statement>> = {
    accept: { accept: null },
    drop: { drop: null },
    reject: { goto: { target: refuse.name } }
};
const longestComment = 120;

/** Makes the ruleset of a model, which was checked before. */
export function compile(model: Model, options: CompileOptions): Ruleset {
    const rules = model.rules.filter((rule) => isActive(rule, options.now));
    const of = (direction: Direction): readonly Rule[] =>
        rules.filter((rule) => rule.direction === direction);
    const limited = rules.filter(({ rate }) => rate !== null);
    return {
        chains: [
            refuse,
            ...limited.map((rule) => limitedChain(rule)),
            containerChain(model, of('container'), options),
            filterChain('input', model, inputBase, of('in'), options),
            filterChain('output', model, outputBase, of('out'), options),
            filterChain('forward', model, forwardBase, of('forward'), options),
            ...natChains(model)
        ],
        sets: model.sets.map((set) => kernelSet(set, options.elements(set.name))),
        live: options.live ?? [],
        counters: rules.map(({ id }) => counterName(id))
    };
}

/** Whether a rule is in force at a time. */
export function isActive({ enabled, expiresAt }: Rule, now: number): boolean {
    return enabled && (expiresAt === null || Date.parse(expiresAt) > now);
}

function filterChain(
    name: 'input' | 'output' | 'forward',
    model: Model,
    base: readonly ChainRule[],
    rules: readonly Rule[],
    options: CompileOptions
): Chain {
    const policy = model.policy[name];
    return {
        name,
        hook: { ...hooks[name], policy: policy === 'accept' ? 'accept' : 'drop' },
        rules: [
            ...base,
            ...rules.flatMap((rule) => chainRules(rule, model)),
            ...(name === 'output' ? [] : zonePolicies(model)),
            ...end(policy, options)
        ]
    };
}

/** What visitors send to published ports. Its last rule decides, since the chain that came here would let it pass. */
function containerChain(model: Model, rules: readonly Rule[], options: CompileOptions): Chain {
    const { container: policy } = model.policy;
    return {
        name: 'container',
        hook: null,
        rules: [
            ...rules.flatMap((rule) => chainRules(rule, model)),
            ...zonePolicies(model),
            ...end(policy, options),
            ...(policy === 'reject' ? [] : [{ expr: [verdicts[policy]] }])
        ]
    };
}

function zonePolicies(model: Model): readonly ChainRule[] {
    return model.zones.flatMap((zone) => {
        const { name, policy } = zone;
        return policy === null
            ? []
            : zoneMatches(zoneTerms(zone, model)).map((matches) => ({
                  expr: [...matches, verdicts[policy]],
                  comment: `zone ${name}`
              }));
    });
}

/** The last rules of a chain: what is dropped is logged, and a refusal is answered. */
function end(policy: Action, { logDropped }: CompileOptions): readonly ChainRule[] {
    return [
        ...(policy !== 'accept' && logDropped
            ? [
                  {
                      expr: [
                          { limit: { rate: 10, per: 'second', burst: 20 } },
                          { log: { prefix: 'portico:dropped ' } }
                      ]
                  }
              ]
            : []),
        ...(policy === 'reject' ? [{ expr: [verdicts.reject] }] : [])
    ];
}

function chainRules(rule: Rule, model: Model): readonly ChainRule[] {
    const action = rule.rate === null ? actionOf(rule) : [{ jump: { target: counterName(rule.id) } }];
    const expiry =
        rule.expiresAt === null
            ? []
            : [match(meta('time'), Math.floor(Date.parse(rule.expiresAt) / 1000), '<')];
    const comment = commentOf(rule.comment);
    return ruleMatches(rule.direction, termsOf(rule, model)).map((matches) => ({
        expr: [...matches, ...expiry, ...action],
        ...(comment === '' ? {} : { comment })
    }));
}

/** The limit of a rule counts for all of its ways together, so it has a chain of its own. */
function limitedChain(rule: Rule): Chain {
    const { rate } = rule;
    const limit =
        rate === null
            ? []
            : [
                  {
                      limit: {
                          rate: rate.count,
                          per: rate.per,
                          burst: rate.burst,
                          ...(rule.action === 'accept' ? {} : { inv: true })
                      }
                  }
              ];
    return { name: counterName(rule.id), hook: null, rules: [{ expr: [...limit, ...actionOf(rule)] }] };
}

function actionOf({ id, log, action }: Rule): readonly Statement[] {
    return [
        { counter: counterName(id) },
        ...(log ? [{ log: { prefix: `portico:rule-${id} ` } }] : []),
        verdicts[action]
    ];
}

/** A comment as `nft` can print and read it again: it knows no escape for a double quote, and 128 bytes at most. */
function commentOf(comment: string): string {
    let text = comment.replaceAll('"', "'");
    while (Buffer.byteLength(text) > longestComment) {
        text = [...text].slice(0, -1).join('');
    }
    return text;
}

function natChains(model: Model): readonly Chain[] {
    const chain = (
        name: 'prerouting' | 'postrouting',
        prio: number,
        types: readonly Nat['type'][]
    ): readonly Chain[] => {
        const entries = model.nat.filter(({ type }) => types.includes(type));
        return entries.length === 0
            ? []
            : [
                  {
                      name,
                      hook: { type: 'nat', hook: name, prio, policy: 'accept' },
                      rules: entries.flatMap((nat) => natRules(nat, model))
                  }
              ];
    };
    return [
        ...chain('prerouting', -100, ['dnat', 'redirect']),
        ...chain('postrouting', 100, ['snat', 'masquerade'])
    ];
}

function natRules(nat: Nat, model: Model): readonly ChainRule[] {
    const isIncoming = nat.type === 'dnat' || nat.type === 'redirect';
    const target = nat.to === null ? null : parseTarget(nat.to);
    const family = target?.address?.family ?? null;
    const ports = mergePorts(nat.ports.flatMap((text) => readPorts(text) ?? []));
    const interfaces =
        nat.interface === null ? [[]] : interfaceMatches(isIncoming ? 'iifname' : 'oifname', [nat.interface]);
    const sources = addressTerms(nat.sources, model)?.filter(
        (term) => family === null || term.family === family
    ) ?? [null];
    const protocol =
        nat.protocol === 'any'
            ? []
            : ports.length > 0
              ? [match(payload(nat.protocol, 'dport'), portsExpression(ports))]
              : [match(meta('l4proto'), nat.protocol)];
    const translation = {
        [nat.type]:
            target === null
                ? null
                : {
                      ...(target.address === null
                          ? {}
                          : {
                                family: target.address.family === 'ipv4' ? 'ip' : 'ip6',
                                addr: formatAddress(target.address.family, target.address.from)
                            }),
                      ...(target.port === null ? {} : { port: target.port })
                  }
    };
    return interfaces.flatMap((matches) =>
        sources.map((source) => ({
            expr: [
                ...(family === null || source !== null ? [] : [match(meta('nfproto'), family)]),
                ...matches,
                ...(source === null ? [] : [addressMatch('in', 'saddr', source)]),
                ...protocol,
                translation
            ],
            comment: `nat ${nat.id}`
        }))
    );
}
