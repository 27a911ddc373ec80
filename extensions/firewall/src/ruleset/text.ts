/** A ruleset in nft's own language, as the boot loads it. It writes the few statements that this plugin makes, and refuses others. */
import type { Family } from '../address/interval.ts';
import {
    addressType,
    type Chain,
    type KernelSet,
    liveSets,
    ownTable,
    type Ruleset,
    type Statement
} from './ruleset.ts';

/** Writes the table with all of its content; loading it replaces the table that is there. */
export function rulesetText(rulesets: readonly Ruleset[]): string {
    const lines = [
        `table ${ownTable.family} ${ownTable.table}`,
        `delete table ${ownTable.family} ${ownTable.table}`,
        `table ${ownTable.family} ${ownTable.table} {`,
        ...rulesets.flatMap(({ counters }) => counters.map((name) => `    counter ${name} {\n    }`)),
        ...rulesets.flatMap(({ sets }) => sets.map(setText)),
        ...(rulesets.some(({ live }) => live !== null) ? (['ipv4', 'ipv6'] as const).map(liveText) : []),
        ...rulesets.flatMap(({ chains }) => chains.map(chainText)),
        '}'
    ];
    return `${lines.join('\n')}\n`;
}

function setText({ name, family, isCounted, elements }: KernelSet): string {
    const entries = elements.map(
        ({ interval, seconds }) => `${interval}${seconds === null ? '' : ` timeout ${seconds}s`}`
    );
    return [
        `    set ${name} {`,
        `        type ${addressType(family)}`,
        '        flags interval,timeout',
        ...(isCounted ? ['        counter'] : []),
        ...(entries.length === 0 ? [] : [`        elements = { ${entries.join(',\n            ')} }`]),
        '    }'
    ].join('\n');
}

function liveText(family: Family): string {
    return `    set ${liveSets[family]} {\n        type ${addressType(family)} . inet_service . inet_service\n        flags timeout\n    }`;
}

function chainText({ name, hook, rules }: Chain): string {
    return [
        `    chain ${name} {`,
        ...(hook === null
            ? []
            : [`        type ${hook.type} hook ${hook.hook} priority ${hook.prio}; policy ${hook.policy};`]),
        ...rules.map(
            ({ expr, comment }) =>
                `        ${[...expr.map(statementText), ...(comment === undefined ? [] : [`comment "${comment}"`])].join(' ')}`
        ),
        '    }'
    ].join('\n');
}

/** An object with one key, as its key and value. */
function only(value: unknown): readonly [string, unknown] {
    return Object.entries(value as Record<string, unknown>)[0] ?? ['', null];
}

/** @throws TypeError for a statement that the plugin does not make */
function statementText(statement: Statement): string {
    const [kind, value] = only(statement);
    switch (kind) {
        case 'accept':
        case 'drop':
            return kind;
        case 'match': {
            const { op, left, right } = value as { op: string; left: unknown; right: unknown };
            const operator = op === '==' || op === 'in' ? [] : [op];
            return [
                expressionText(left),
                ...operator,
                isInterface(left) ? namesText(right) : expressionText(right)
            ].join(' ');
        }
        case 'goto':
        case 'jump':
            return `${kind} ${(value as { target: string }).target}`;
        case 'counter':
            return `counter name "${String(value)}"`;
        case 'log':
            return `log prefix "${(value as { prefix: string }).prefix}"`;
        case 'limit': {
            const {
                rate,
                per,
                burst,
                inv = false
            } = value as { rate: number; per: string; burst: number; inv?: boolean };
            return `limit rate ${inv ? 'over ' : ''}${rate}/${per} burst ${burst} packets`;
        }
        case 'reject': {
            const { type, expr } = value as { type: string; expr?: string };
            return `reject with ${type}${expr === undefined ? '' : ` ${expr}`}`;
        }
        case 'dnat':
        case 'snat':
        case 'masquerade':
        case 'redirect':
            return translationText(kind, value);
        default:
            throw new TypeError(`The ruleset has no statement ${kind}`);
    }
}

function translationText(kind: string, value: unknown): string {
    const { family, addr, port } = (value ?? {}) as { family?: string; addr?: string; port?: number };
    const target = `${addr === undefined ? '' : port !== undefined && family === 'ip6' ? `[${addr}]` : addr}${port === undefined ? '' : `:${port}`}`;
    return [kind, family, ...(target === '' ? [] : ['to', target])]
        .filter((part) => part !== undefined)
        .join(' ');
}

function isInterface(expression: unknown): boolean {
    const { meta } = expression as { readonly meta?: { readonly key: string } };
    return meta?.key === 'iifname' || meta?.key === 'oifname';
}

/** Names of interfaces stand in quotes: one may be called like a word of the language. */
function namesText(value: unknown): string {
    return typeof value === 'string'
        ? `"${value}"`
        : `{ ${(value as { set: string[] }).set.map((name) => `"${name}"`).join(', ')} }`;
}

function expressionText(expression: unknown): string {
    if (typeof expression === 'number') {
        return String(expression);
    }
    if (typeof expression === 'string') {
        return expression;
    }
    if (Array.isArray(expression)) {
        return expression.map(expressionText).join(',');
    }
    const [kind, value] = only(expression);
    switch (kind) {
        case 'meta':
            return `meta ${(value as { key: string }).key}`;
        case 'payload': {
            const { protocol, field } = value as { protocol: string; field: string };
            return `${protocol} ${field}`;
        }
        case 'ct': {
            const { key, dir } = value as { key: string; dir?: string };
            return ['ct', dir, key].filter((part) => part !== undefined).join(' ');
        }
        case 'concat':
            return (value as unknown[]).map(expressionText).join(' . ');
        case 'set':
            return `{ ${(value as unknown[]).map(expressionText).join(', ')} }`;
        case 'range':
            return (value as unknown[]).map(expressionText).join('-');
        case 'prefix': {
            const { addr, len } = value as { addr: string; len: number };
            return `${addr}/${len}`;
        }
        default:
            throw new TypeError(`The ruleset has no expression ${kind}`);
    }
}
