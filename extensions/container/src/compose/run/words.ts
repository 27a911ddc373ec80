/** The words of a command line that is never run: quotes and backslashes hold them together, and nothing is expanded. */
import { errors } from '@portico/sdk';

/** The words of one command, and whether a shell would have filled something in. */
export interface CommandWords {
    readonly words: readonly string[];
    readonly expands: boolean;
}

/** The failure of a command line, with its reason. */
export const refuse = (message: string): Error => errors.invalid([{ path: 'command', message }]);

/** Takes a command line apart. @throws VALIDATION_FAILED 40001 for a quote that is not closed, and for more than one command */
export function splitCommand(line: string): CommandWords {
    const text = line.replace(/\\\r?\n/g, ' ').trim();
    const words: string[] = [];
    let word: string | null = null;
    let expands = false;
    for (let at = 0; at < text.length; at += 1) {
        const sign = text[at] as string;
        if (sign === "'" || sign === '"') {
            const { inner, end } = quoted(text, at);
            expands ||= sign === '"' && /(^|[^\\])[$`]/.test(inner);
            word = `${word ?? ''}${sign === '"' ? inner.replace(/\\(["\\$`])/g, '$1') : inner}`;
            at = end;
        } else if (sign === '\\') {
            at += 1;
            word = `${word ?? ''}${text[at] ?? ''}`;
        } else if (/\s/.test(sign)) {
            if (sign === '\n' && text.slice(at).trim() !== '') {
                throw refuse('This is more than one line: a line that goes on ends with a backslash');
            }
            if (word !== null) {
                words.push(word);
            }
            word = null;
        } else if (/[;&|<>()]/.test(sign)) {
            throw refuse(`This is one command, without ${sign}`);
        } else {
            expands ||= /[$`]/.test(sign);
            word = `${word ?? ''}${sign}`;
        }
    }
    return { words: word === null ? words : [...words, word], expands };
}

function quoted(text: string, start: number): { readonly inner: string; readonly end: number } {
    const quote = text[start];
    for (let at = start + 1; at < text.length; at += 1) {
        if (text[at] === '\\' && quote === '"') {
            at += 1;
        } else if (text[at] === quote) {
            return { inner: text.slice(start + 1, at), end: at };
        }
    }
    throw refuse('A quote is not closed');
}
