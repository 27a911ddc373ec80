/** Reads the values of a compose file by their kind. A value of another kind is a fault, never a guess. */
import type { Tree } from './document.ts';
import type { Problems } from './problems.ts';

/** Where a value stands. */
export type Path = readonly (string | number)[];

/** Whether a parsed YAML value is a mapping, and neither a list nor a scalar. */
export const isTree = (value: unknown): value is Tree =>
    value !== null && typeof value === 'object' && !Array.isArray(value);

/** The keys of one mapping. What was not read when it is closed is not carried out, and said so. */
export class Fields {
    readonly path: Path;
    readonly problems: Problems;
    readonly #tree: Tree;
    readonly #read = new Set<string>();

    constructor(value: unknown, path: Path, problems: Problems) {
        this.path = path;
        this.problems = problems;
        if (value !== null && value !== undefined && !isTree(value)) {
            problems.error(path, 'This is a mapping');
        }
        this.#tree = isTree(value) ? value : {};
    }

    has(key: string): boolean {
        return Object.hasOwn(this.#tree, key);
    }

    raw(key: string): unknown {
        this.#read.add(key);
        return Object.hasOwn(this.#tree, key) ? this.#tree[key] : undefined;
    }

    at(key: string): Path {
        return [...this.path, key];
    }

    text(key: string): string | null {
        return textOf(this.raw(key), this.at(key), this.problems);
    }

    flag(key: string): boolean {
        const value = this.raw(key);
        if (value === undefined || value === null) {
            return false;
        }
        if (value === true || value === 'true' || value === false || value === 'false') {
            return value === true || value === 'true';
        }
        this.problems.error(this.at(key), 'This is true or false');
        return false;
    }

    /** A whole number of at least `least`. */
    count(key: string, least = 0): number | null {
        const value = this.raw(key);
        if (value === undefined || value === null) {
            return null;
        }
        const number =
            typeof value === 'number' ? value : /^-?\d+$/.test(String(value)) ? Number(value) : NaN;
        if (!Number.isSafeInteger(number) || number < least) {
            this.problems.error(this.at(key), `This is a whole number of at least ${least}`);
            return null;
        }
        return number;
    }

    /** One of the words. */
    word<W extends string>(key: string, words: readonly W[]): W | null {
        const value = this.text(key);
        if (value === null) {
            return null;
        }
        if (!(words as readonly string[]).includes(value)) {
            this.problems.error(
                this.at(key),
                `This is one of ${words.filter((word) => word !== '').join(', ')}`
            );
            return null;
        }
        return value as W;
    }

    /** A list of texts; one text is a list of one where `single` says so. */
    texts(key: string, single = false): readonly string[] {
        const value = this.raw(key);
        if (value === undefined || value === null) {
            return [];
        }
        if (single && typeof value === 'string') {
            return [value];
        }
        if (!Array.isArray(value)) {
            this.problems.error(this.at(key), 'This is a list');
            return [];
        }
        return value.flatMap((item, index) => textOf(item, [...this.at(key), index], this.problems) ?? []);
    }

    /** A mapping of texts, or a list of `name=value`. A name without a value is null. */
    pairs(key: string): readonly (readonly [string, string | null])[] {
        const value = this.raw(key);
        if (value === undefined || value === null) {
            return [];
        }
        if (Array.isArray(value)) {
            return value.flatMap((item, index) => {
                const text = textOf(item, [...this.at(key), index], this.problems);
                if (text === null) {
                    return [];
                }
                const at = text.indexOf('=');
                return [
                    at < 0 ? ([text, null] as const) : ([text.slice(0, at), text.slice(at + 1)] as const)
                ];
            });
        }
        if (!isTree(value)) {
            this.problems.error(this.at(key), 'This is a mapping, or a list of NAME=value');
            return [];
        }
        return Object.entries(value).map(
            ([name, each]) => [name, textOf(each, [...this.at(key), name], this.problems)] as const
        );
    }

    /** The mapping at a key. */
    child(key: string): Fields | null {
        const value = this.raw(key);
        return value === undefined ? null : new Fields(value, this.at(key), this.problems);
    }

    /** Each entry of the mapping at a key. */
    children(key: string): readonly (readonly [string, Fields])[] {
        const value = this.raw(key);
        if (value === undefined || value === null) {
            return [];
        }
        if (!isTree(value)) {
            this.problems.error(this.at(key), 'This is a mapping');
            return [];
        }
        return Object.entries(value).map(([name, each]) => [
            name,
            new Fields(each, [...this.at(key), name], this.problems)
        ]);
    }

    /** Names every key that was not read; `x-…` is for people. */
    close(reasons: Readonly<Record<string, string>> = {}): void {
        for (const key of Object.keys(this.#tree)) {
            if (!this.#read.has(key) && !key.startsWith('x-')) {
                this.problems.lacks(this.at(key), Object.hasOwn(reasons, key) ? reasons[key] : '');
            }
        }
    }
}

/** A text; numbers and flags are written as texts. */
export function textOf(value: unknown, path: Path, problems: Problems): string | null {
    if (value === undefined || value === null) {
        return null;
    }
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
        const text = String(value);
        if (text.includes('\0')) {
            problems.error(path, 'A text has no zero byte');
            return null;
        }
        return text;
    }
    problems.error(path, 'This is a text');
    return null;
}

/** Seconds of `1m30s`, `500ms`, or a number of seconds. */
export function secondsOf(value: string | null, path: Path, problems: Problems): number | null {
    if (value === null) {
        return null;
    }
    if (/^\d+(\.\d+)?$/.test(value)) {
        return Number(value);
    }
    const units = { h: 3_600, m: 60, s: 1, ms: 0.001, us: 0.000_001, ns: 0.000_000_001 } as const;
    if (!/^(\d+(\.\d+)?(h|ms|m|s|us|ns))+$/.test(value)) {
        problems.error(path, 'This is a time such as 1m30s');
        return null;
    }
    return [...value.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|ns)/g)].reduce(
        (sum, [, number, unit]) => sum + Number(number) * units[unit as keyof typeof units],
        0
    );
}

/** Bytes of `512m`, `1gb`, or a number of bytes. */
export function bytesOf(value: string | null, path: Path, problems: Problems): number | null {
    if (value === null) {
        return null;
    }
    const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)i?b?$/i.exec(value) ?? [];
    if (number === undefined) {
        problems.error(path, 'This is a size such as 512m');
        return null;
    }
    return Math.round(
        Number(number) * 1_024 ** ['', 'k', 'm', 'g', 't'].indexOf(unit.toLowerCase().replace('b', ''))
    );
}

/** The words of a command line: quotes and backslashes hold them together, and nothing is expanded. */
export function wordsOf(line: string, path: Path, problems: Problems): readonly string[] {
    const words: string[] = [];
    let word: string | null = null;
    let quote = '';
    for (let at = 0; at < line.length; at += 1) {
        const sign = line[at] as string;
        if (quote !== '') {
            if (sign === quote) {
                quote = '';
            } else if (sign === '\\' && quote === '"' && /["\\$`]/.test(line[at + 1] ?? '')) {
                at += 1;
                word += line[at] ?? '';
            } else {
                word += sign;
            }
        } else if (sign === '"' || sign === "'") {
            quote = sign;
            word ??= '';
        } else if (/\s/.test(sign)) {
            if (word !== null) {
                words.push(word);
            }
            word = null;
        } else if (sign === '\\') {
            at += 1;
            word = `${word ?? ''}${line[at] ?? ''}`;
        } else {
            word = `${word ?? ''}${sign}`;
        }
    }
    if (quote !== '') {
        problems.error(path, 'A quote is not closed');
    }
    return word === null ? words : [...words, word];
}
