/** The rules for a new password: long enough, and not easy to guess. There are no rules about kinds of characters. */
import { invalid } from '../../../platform/errors.ts';
import { commonWords, walks } from './common-passwords.ts';

const leastCharacters = 10;
const mostBytes = 1024;
const leastDifferent = 5;
const substitutes: Readonly<Record<string, string>> = {
    '0': 'o',
    '1': 'l',
    '3': 'e',
    '4': 'a',
    '5': 's',
    '7': 't',
    '@': 'a',
    $: 's',
    '!': 'i',
    '€': 'e'
};

/**
 * Checks a new password. Passwords are used exactly as they were typed: nothing is cut, folded or normalised.
 *
 * @param context - words that belong to this account and this panel; a password that consists of one of them is refused
 * @throws VALIDATION_FAILED 40001 at `path`
 */
export function checkPassword(password: string, path: string, context: readonly string[]): void {
    const message = faultOf(password, context);
    if (message !== null) {
        throw invalid({ path, message });
    }
}

/** The fault of a password; null when there is none. */
export function faultOf(password: string, context: readonly string[]): string | null {
    if (!password.isWellFormed()) {
        return 'The password contains an incomplete character';
    }
    const characters = [...password];
    if (characters.length < leastCharacters) {
        return `The password must have at least ${leastCharacters} characters`;
    }
    if (Buffer.byteLength(password) > mostBytes) {
        return `The password must not be longer than ${mostBytes} bytes`;
    }
    if (isCommon(password, characters, context)) {
        return 'The password is too easy to guess';
    }
    return null;
}

function isCommon(password: string, characters: readonly string[], context: readonly string[]): boolean {
    const lower = password.toLowerCase();
    if (
        new Set(characters).size < leastDifferent ||
        isRepeated(lower) ||
        isWalk(lower) ||
        /^[\d\s./:-]{1,12}$/.test(lower)
    ) {
        return true;
    }
    const known = new Set(context.map((word) => word.toLowerCase()).filter((word) => word.length >= 3));
    return [lower, folded(lower)].some((text) => {
        const core = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
        return [text, core, folded(core), core.replaceAll(/[\s._-]/g, '')].some(
            (candidate) =>
                commonWords.has(candidate) ||
                known.has(candidate) ||
                commonWords.has(unit(candidate)) ||
                known.has(unit(candidate))
        );
    });
}

function folded(text: string): string {
    return [...text].map((character) => substitutes[character] ?? character).join('');
}

/** Whether a short piece is repeated, as in `abc12abc12abc12`. */
function isRepeated(text: string): boolean {
    const shortest = unit(text);
    return shortest.length < text.length && shortest.length <= 5;
}

/** The piece that a text repeats, or the whole text. */
function unit(text: string): string {
    const again = (text + text).indexOf(text, 1);
    return again > 0 && again < text.length ? text.slice(0, again) : text;
}

/** Whether a text consists of runs along rows of keys, the alphabet or the digits, with at most two other characters. */
function isWalk(text: string): boolean {
    let rest = text.length;
    let at = 0;
    while (at < text.length) {
        const length = longestRun(text, at);
        if (length >= 4) {
            rest -= length;
            at += length;
        } else {
            at += 1;
        }
    }
    return rest <= 2;
}

function longestRun(text: string, from: number): number {
    let best = 0;
    for (const walk of [...walks, ...reversed]) {
        let length = best;
        while (from + length < text.length && walk.includes(text.slice(from, from + length + 1))) {
            length += 1;
        }
        best = length;
    }
    return best;
}

const reversed: readonly string[] = walks.map((walk) => [...walk].reverse().join(''));
