/** Fills variables into the values of a compose file, from the stack's own environment alone. */
import type { Tree } from './document.ts';
import type { Problems } from './problems.ts';

/** The variables of a stack. */
export type Environment = ReadonlyMap<string, string>;

type Path = readonly (string | number)[];
const mostCharacters = 1_048_576;

/** Reads lines of `NAME=value`; quotes around a value are taken off, and within double ones `\n` is a line break. */
export function readEnvironment(text: string, problems: Problems): Environment {
    const found = new Map<string, string>();
    for (const [index, line] of text.split(/\r?\n/).entries()) {
        if (/^\s*(#|$)/.test(line)) {
            continue;
        }
        const [, name, raw = ''] =
            /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
        if (name === undefined) {
            problems.errors.push({ path: 'env', line: index + 1, message: 'A line is NAME=value' });
            continue;
        }
        found.set(name, unquote(raw));
    }
    return found;
}

function unquote(raw: string): string {
    const [, quote, inner = ''] = /^(["'])(.*)\1(?:\s+#.*)?$/.exec(raw) ?? [];
    if (quote === "'") {
        return inner;
    }
    if (quote === '"') {
        return inner.replace(
            /\\([nrt"\\$])/g,
            (_all, sign: string) => ({ n: '\n', r: '\r', t: '\t' })[sign] ?? sign
        );
    }
    return raw.replace(/\s+#.*$/, '');
}

/** The same tree with every text filled; keys stay as they are. */
export function interpolate(tree: Tree, environment: Environment, problems: Problems): Tree {
    const budget = { left: mostCharacters };
    const walk = (value: unknown, path: Path): unknown => {
        if (typeof value === 'string') {
            const filled = fill(value, environment, (message) => problems.error(path, message));
            budget.left -= filled.length;
            if (budget.left < 0) {
                problems.error(path, 'The variables make more than 1 MiB of the file');
                return '';
            }
            return filled;
        }
        if (Array.isArray(value)) {
            return value.map((item, index) => walk(item, [...path, index]));
        }
        if (value !== null && typeof value === 'object') {
            const copy = Object.create(null) as Record<string, unknown>;
            for (const [key, each] of Object.entries(value)) {
                copy[key] = walk(each, [...path, key]);
            }
            return copy;
        }
        return value;
    };
    return walk(tree, []) as Tree;
}

/** Fills one text: `$NAME`, `${NAME}`, `${NAME:-otherwise}`, `${NAME:?message}`, `${NAME:+instead}` and their forms without the colon; `$$` is a dollar. */
function fill(text: string, environment: Environment, report: (message: string) => void, depth = 0): string {
    if (!text.includes('$')) {
        return text;
    }
    if (depth > 16) {
        report('Variables are nested too deeply');
        return '';
    }
    let out = '';
    for (let at = 0; at < text.length;) {
        if (text[at] !== '$') {
            out += text[at];
            at += 1;
            continue;
        }
        if (text[at + 1] === '$') {
            out += '$';
            at += 2;
            continue;
        }
        const [plain] = /^[A-Za-z_][A-Za-z0-9_]*/.exec(text.slice(at + 1)) ?? [];
        if (plain !== undefined) {
            out += environment.get(plain) ?? '';
            at += 1 + plain.length;
            continue;
        }
        const end = text[at + 1] === '{' ? closingOf(text, at + 1) : -1;
        if (end < 0) {
            report(`"${text.slice(at, at + 20)}" is no variable; write $$ for a dollar`);
            return '';
        }
        out += expand(text.slice(at + 2, end), environment, report, depth);
        at = end + 1;
    }
    return out;
}

function expand(
    inner: string,
    environment: Environment,
    report: (message: string) => void,
    depth: number
): string {
    const [, name, operator = '', word = ''] =
        /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?+])([\s\S]*))?$/.exec(inner) ?? [];
    if (name === undefined) {
        report(`"\${${inner.slice(0, 40)}}" is no variable`);
        return '';
    }
    const value = environment.get(name);
    const isThere = operator.startsWith(':') ? value !== undefined && value !== '' : value !== undefined;
    switch (operator.at(-1)) {
        case '-':
            return isThere ? (value ?? '') : fill(word, environment, report, depth + 1);
        case '+':
            return isThere ? fill(word, environment, report, depth + 1) : '';
        case '?':
            if (!isThere) {
                report(`The variable ${name} is needed${word === '' ? '' : `: ${word}`}`);
            }
            return value ?? '';
        default:
            return value ?? '';
    }
}

/** Where the brace that opens at `start` closes; -1 when it does not. */
function closingOf(text: string, start: number): number {
    let open = 0;
    for (let at = start; at < text.length; at += 1) {
        if (text[at] === '{') {
            open += 1;
        } else if (text[at] === '}') {
            open -= 1;
            if (open === 0) {
                return at;
            }
        }
    }
    return -1;
}
