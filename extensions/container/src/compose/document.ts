/** Reads the text of a compose file: plain YAML with anchors and merge keys, within limits, and nothing that runs code or changes its meaning. */
import {
    type Document,
    isAlias,
    isCollection,
    isMap,
    isScalar,
    LineCounter,
    parseDocument,
    visit
} from 'yaml';

import type { Problems } from './problems.ts';

/** A text of a compose file has at most so many bytes. */
export const mostBytes = 1_048_576;
const mostAliases = 100;
const mostLevels = 64;

/** A tree of plain values. Objects have no prototype, so no key has a meaning of its own. */
export type Tree = Readonly<Record<string, unknown>>;

/** A text that was read. */
export interface ReadDocument {
    /** Null when the text is not usable; then there are faults. */
    readonly tree: Tree | null;
    lineOf(path: readonly (string | number)[]): number | null;
}

/** Reads the text; faults go to `problems`, which can ask `lineOf` for lines. */
export function readDocument(
    text: string,
    report: (lineOf: ReadDocument['lineOf']) => Problems
): ReadDocument {
    const lines = new LineCounter();
    const nothing: ReadDocument = { tree: null, lineOf: () => null };
    if (Buffer.byteLength(text) > mostBytes) {
        report(() => null).error([], 'A compose file has at most 1 MiB');
        return nothing;
    }
    const document = parseDocument(text, {
        version: '1.2',
        schema: 'core',
        merge: true,
        uniqueKeys: true,
        strict: true,
        lineCounter: lines,
        logLevel: 'error'
    });
    const lineOf = (path: readonly (string | number)[]): number | null => lineAt(document, lines, path);
    const problems = report(lineOf);
    for (const { message, pos } of document.errors) {
        problems.errors.push({
            path: '',
            line: lines.linePos(pos[0]).line,
            message: message.split('\n', 1)[0] ?? message
        });
    }
    if (document.directives?.yaml.explicit === true && document.directives.yaml.version !== '1.2') {
        problems.error([], 'A compose file is YAML 1.2');
    }
    if (problems.errors.length > 0 || !isWithinLimits(document, lines, problems)) {
        return { ...nothing, lineOf };
    }
    return { tree: plainTree(document, problems), lineOf };
}

function isWithinLimits(document: Document.Parsed, lines: LineCounter, problems: Problems): boolean {
    let aliases = 0;
    const refuse = (node: { readonly range?: readonly number[] | null } | null, message: string): symbol => {
        const at = node?.range?.[0];
        problems.errors.push({ path: '', line: at === undefined ? null : lines.linePos(at).line, message });
        return visit.BREAK;
    };
    visit(document, {
        Node(_key, node, path) {
            if (path.length > mostLevels * 2) {
                return refuse(node, `More than ${mostLevels} levels`);
            }
            if (isAlias(node)) {
                aliases += 1;
                return aliases > mostAliases ? refuse(node, `More than ${mostAliases} aliases`) : undefined;
            }
            if ((isScalar(node) || isCollection(node)) && node.tag !== undefined && !isPlainTag(node.tag)) {
                return refuse(node, `The tag ${node.tag} is refused`);
            }
            return undefined;
        },
        Pair(_key, pair) {
            return isScalar(pair.key) ? undefined : refuse(null, 'A key is a text');
        }
    });
    return problems.errors.length === 0;
}

/** The tags that the parser itself gives to plain values carry no author's choice. */
const isPlainTag = (tag: string): boolean => tag === 'tag:yaml.org,2002:merge';

function plainTree(document: Document.Parsed, problems: Problems): Tree | null {
    try {
        const value: unknown = document.toJS({ maxAliasCount: mostAliases });
        if (value === null || typeof value !== 'object' || Array.isArray(value)) {
            problems.error([], 'A compose file is a mapping');
            return null;
        }
        return bare(value, [], problems, { left: 200_000 }) as Tree;
    } catch (error) {
        problems.error([], (error as Error).message.split('\n', 1)[0] ?? 'The anchors cannot be resolved');
        return null;
    }
}

/** Copies a value into objects without a prototype. `left` bounds what anchors make of a small text. */
function bare(
    value: unknown,
    path: readonly string[],
    problems: Problems,
    budget: { left: number }
): unknown {
    budget.left -= 1;
    if (budget.left < 0 || path.length > mostLevels) {
        throw new Error('The anchors of the file make too much of it');
    }
    if (Array.isArray(value)) {
        return value.map((item, index) => bare(item, [...path, String(index)], problems, budget));
    }
    if (value !== null && typeof value === 'object') {
        const copy = Object.create(null) as Record<string, unknown>;
        for (const [key, each] of Object.entries(value)) {
            if (key === '__proto__') {
                problems.error([...path, key], 'This key is refused');
                continue;
            }
            copy[key] = bare(each, [...path, key], problems, budget);
        }
        return copy;
    }
    return value;
}

function lineAt(
    document: Document.Parsed,
    lines: LineCounter,
    path: readonly (string | number)[]
): number | null {
    for (let length = path.length; length > 0; length -= 1) {
        const parent = document.getIn(path.slice(0, length - 1), true);
        const key = path[length - 1];
        if (isMap(parent)) {
            const pair = parent.items.find(
                (each) => isScalar(each.key) && String(each.key.value) === String(key)
            );
            const at = isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
            if (at !== undefined) {
                return lines.linePos(at).line;
            }
        }
        const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined;
        if (node?.range?.[0] !== undefined) {
            return lines.linePos(node.range[0]).line;
        }
    }
    return null;
}
