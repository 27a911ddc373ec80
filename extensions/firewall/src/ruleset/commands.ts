/** Commands that make the own table what a ruleset says, in one transaction. No command names another table. */
import {
    addressType,
    type Chain,
    type Element,
    type KernelSet,
    type LiveConnection,
    liveSeconds,
    liveSets,
    ownTable,
    type Ruleset
} from './ruleset.ts';

/** One command of libnftables. */
export type Command = Readonly<Record<string, Readonly<Record<string, unknown>>>>;
/** What `nft -j -f` takes: all of it happens, or nothing. */
export interface CommandDocument {
    readonly nftables: readonly Command[];
}

/** What the own table holds in the kernel. */
export interface Present {
    readonly chains: ReadonlyMap<string, Chain['hook']>;
    readonly sets: ReadonlyMap<string, KernelSet['family']>;
    readonly counters: ReadonlySet<string>;
}

/** An own table that is not there. */
export const absent: Present = { chains: new Map(), sets: new Map(), counters: new Set() };

const at = (name: string): { family: string; table: string; name: string } => ({ ...ownTable, name });
const addTable: Command = { add: { table: { family: ownTable.family, name: ownTable.table } } };

/** Removes the own table, whether or not it is there. */
export const removeTable: CommandDocument = {
    nftables: [addTable, { delete: { table: { family: ownTable.family, name: ownTable.table } } }]
};

/** Makes the whole table anew, with all elements. */
export function wholeTable(rulesets: readonly Ruleset[], isFresh = true): CommandDocument {
    return {
        nftables: [
            ...(isFresh ? removeTable.nftables : []),
            addTable,
            ...rulesets.flatMap(({ sets }) => sets.map(addSet)),
            ...rulesets.flatMap(({ live }) => (live === null ? [] : addLive(live))),
            ...rulesets.flatMap(({ counters }) => counters.map(addCounter)),
            ...addChains(rulesets.flatMap(({ chains }) => chains))
        ]
    };
}

/** How a change treats what the new ruleset does not have. */
export interface ChangeOptions {
    /** Removes sets and counters that nothing uses now. Without it, the way back finds them as they were. */
    readonly isFinal: boolean;
    /** Sets whose elements the kernel has as they should be: they are not sent again. */
    readonly keepsElements: (set: KernelSet) => boolean;
    /** Chains, sets and counters of these names belong to another part of the table. */
    readonly isForeign: (name: string) => boolean;
}

/** Changes the table from what it holds to a ruleset. Counters and the elements of sets stay. */
export function changeTable(present: Present, next: Ruleset, options: ChangeOptions): CommandDocument {
    const { isFinal, keepsElements, isForeign } = options;
    const chains = new Set(next.chains.map(({ name }) => name));
    const sets = new Set([...next.sets.map(({ name }) => name), ...Object.values(liveSets)]);
    const counters = new Set(next.counters);
    const ours = [...present.chains.keys()].filter((name) => !isForeign(name));
    const unused = (names: Iterable<string>, used: ReadonlySet<string>): string[] =>
        [...names].filter((name) => !isForeign(name) && !used.has(name));
    return {
        nftables: [
            addTable,
            ...ours.map((name): Command => ({ flush: { chain: at(name) } })),
            ...unused(present.chains.keys(), chains).map((name): Command => ({
                delete: { chain: at(name) }
            })),
            ...next.sets.flatMap((set): readonly Command[] =>
                !present.sets.has(set.name)
                    ? [addSet(set)]
                    : keepsElements(set)
                      ? []
                      : replaceElements(set).nftables
            ),
            ...(next.live === null ? [] : addLive(next.live)),
            ...next.counters.filter((name) => !present.counters.has(name)).map(addCounter),
            ...addChains(next.chains),
            ...(isFinal
                ? [
                      ...unused(present.sets.keys(), sets).map((name): Command => ({
                          delete: { set: at(name) }
                      })),
                      ...unused(present.counters, counters).map((name): Command => ({
                          delete: { counter: at(name) }
                      }))
                  ]
                : [])
        ]
    };
}

/**
 * The way back from a ruleset to what was there before it, for a table in either state: it may run before the change, after it, or twice.
 *
 * @param before - null when there were no rules
 */
export function revertCommands(
    present: Present,
    before: Ruleset | null,
    next: Ruleset,
    isForeign: (name: string) => boolean
): CommandDocument {
    const wanted = new Set((before?.sets ?? []).map(({ name }) => name));
    const added = {
        chains: next.chains.filter(({ name }) => !present.chains.has(name)),
        sets: next.sets.filter(({ name }) => !present.sets.has(name) && !wanted.has(name)),
        counters: next.counters.filter(
            (name) => !present.counters.has(name) && !(before?.counters.includes(name) ?? false)
        )
    };
    const known = new Map([...next.chains, ...(before?.chains ?? [])].map((chain) => [chain.name, chain]));
    const ours = [...present.chains].filter(([name]) => !isForeign(name));
    return {
        nftables: [
            addTable,
            // What may be missing is made first, so that every later command finds it.
            ...[...known.values()].map(addChain),
            ...ours.filter(([name]) => !known.has(name)).map(([name, hook]) => addChain({ name, hook })),
            ...(before?.sets ?? []).map((set) => (present.sets.has(set.name) ? emptySet(set) : addSet(set))),
            ...added.sets.map(emptySet),
            ...addLive([]),
            ...(before?.counters ?? []).map(addCounter),
            ...added.counters.map(addCounter),
            ...[...new Set([...known.keys(), ...ours.map(([name]) => name)])].map((name): Command => ({
                flush: { chain: at(name) }
            })),
            ...added.chains
                .filter(({ name }) => !(before?.chains.some((chain) => chain.name === name) ?? false))
                .map(({ name }): Command => ({ delete: { chain: at(name) } })),
            ...added.sets.map(({ name }): Command => ({ delete: { set: at(name) } })),
            ...(before === null
                ? Object.values(liveSets).map((name): Command => ({ delete: { set: at(name) } }))
                : []),
            ...added.counters.map((name): Command => ({ delete: { counter: at(name) } })),
            ...(before === null ? [] : addChains(before.chains))
        ]
    };
}

/** Puts a set that is there to new elements: what is no longer there leaves, what is new comes. */
export function changeElements(
    set: KernelSet,
    { remove, add }: { readonly remove: readonly Element[]; readonly add: readonly Element[] }
): CommandDocument {
    // A command for single elements has `nft` read those of all sets first, which takes a second for a hundred thousand.
    return {
        nftables:
            remove.length === 0
                ? [addSet({ ...set, elements: add })]
                : [
                      elementCommand('delete', set, remove),
                      ...(add.length === 0 ? [] : [elementCommand('add', set, add)])
                  ]
    };
}

function elementCommand(verb: 'add' | 'delete', { name }: KernelSet, elements: readonly Element[]): Command {
    const elem =
        verb === 'add'
            ? elementExpressions(elements)
            : elements.map(({ interval }) => elementExpression(interval));
    return { [verb]: { element: { ...at(name), elem } } };
}

/** Puts a set that is there to exactly its elements. */
export function replaceElements(set: KernelSet): CommandDocument {
    return { nftables: [{ flush: { set: at(set.name) } }, addSet(set)] };
}

/** Makes a set with its elements. As part of it, they take `nft` half the time that they take in a command of their own. */
function addSet({ elements, ...set }: KernelSet): Command {
    const empty = emptySet(set);
    return elements.length === 0
        ? empty
        : { add: { set: { ...(empty['add']?.['set'] as object), elem: elementExpressions(elements) } } };
}

function emptySet({ name, family, isCounted }: Omit<KernelSet, 'elements'>): Command {
    return {
        add: {
            set: {
                ...at(name),
                type: addressType(family),
                flags: ['interval', 'timeout'],
                ...(isCounted ? { stmt: [{ counter: null }] } : {})
            }
        }
    };
}

function elementExpressions(elements: readonly Element[]): readonly unknown[] {
    return elements.map(({ interval, seconds }) => {
        const value = elementExpression(interval);
        return seconds === null ? value : { elem: { val: value, timeout: seconds } };
    });
}

/** Makes the sets of connections that stood before the rules. */
function addLive(live: readonly LiveConnection[]): readonly Command[] {
    return (['ipv4', 'ipv6'] as const).flatMap((family): readonly Command[] => {
        const set = at(liveSets[family]);
        const elem = live
            .filter((each) => each.family === family)
            .map(({ peer, peerPort, ownPort }) => ({
                elem: { val: { concat: [peer, peerPort, ownPort] }, timeout: liveSeconds }
            }));
        return [
            {
                add: {
                    set: {
                        ...set,
                        type: [addressType(family), 'inet_service', 'inet_service'],
                        flags: ['timeout']
                    }
                }
            },
            ...(elem.length === 0 ? [] : [{ add: { element: { ...set, elem } } }])
        ];
    });
}

/** An element as an expression. Its text was written by `formatInterval`, so it is not read as numbers again: lists are long. */
function elementExpression(text: string): unknown {
    if (text.includes('-')) {
        return { range: text.split('-') };
    }
    const at = text.indexOf('/');
    return at < 0 ? text : { prefix: { addr: text.slice(0, at), len: Number(text.slice(at + 1)) } };
}

function addCounter(name: string): Command {
    return { add: { counter: at(name) } };
}

/** Makes all chains first, since rules of one may jump to another. */
function addChains(chains: readonly Chain[]): readonly Command[] {
    return [
        ...chains.map(addChain),
        ...chains.flatMap(({ name, rules }) =>
            rules.map(({ expr, comment }): Command => ({
                add: {
                    rule: { ...ownTable, chain: name, expr, ...(comment === undefined ? {} : { comment }) }
                }
            }))
        )
    ];
}

function addChain({ name, hook }: Pick<Chain, 'name' | 'hook'>): Command {
    return { add: { chain: { ...at(name), ...hook } } };
}
