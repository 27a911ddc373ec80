/** Search by name: a walk that ends in time whatever it walks over. */
import type { Files } from '@portico/sdk';

import { nameOf } from '../roots/path.ts';
import { type Found, walk } from './tree.ts';

/** What one search may cost. */
export const searchLimits = { milliseconds: 5_000, entries: 200_000 } as const;

export interface SearchResult {
    readonly found: readonly Found[];
    /** Why the search ended before the end of the tree; null when it did not. */
    readonly truncated: 'results' | 'time' | 'entries' | null;
}

/** Finds names that contain the text, whatever the case; with `*` or `?` in it, whole names that fit the pattern. */
export async function search(
    files: Files,
    folder: string,
    text: string,
    most: number,
    signal: AbortSignal
): Promise<SearchResult> {
    const fits = matcher(text);
    const found: Found[] = [];
    const until = Date.now() + searchLimits.milliseconds;
    let seen = 0;
    for await (const one of walk(files, folder, signal)) {
        seen += 1;
        if (fits(nameOf(one.path))) {
            if (found.length === most) {
                return { found, truncated: 'results' };
            }
            found.push(one);
        }
        if (seen >= searchLimits.entries) {
            return { found, truncated: 'entries' };
        }
        if (Date.now() > until) {
            return { found, truncated: 'time' };
        }
    }
    return { found, truncated: null };
}

/** A test of one name. */
export function matcher(text: string): (name: string) => boolean {
    const wanted = text.toLowerCase();
    return /[*?]/.test(wanted)
        ? (name) => fitsPattern(name.toLowerCase(), wanted)
        : (name) => name.toLowerCase().includes(wanted);
}

/** `*` is any text, `?` one character. Goes back to the last star only, so no pattern takes more than the product of both lengths. */
function fitsPattern(name: string, pattern: string): boolean {
    let [at, of, star, mark] = [0, 0, -1, 0];
    while (at < name.length) {
        if (of < pattern.length && pattern[of] === '*') {
            star = of;
            mark = at;
            of += 1;
        } else if (of < pattern.length && (pattern[of] === '?' || pattern[of] === name[at])) {
            at += 1;
            of += 1;
        } else if (star >= 0) {
            of = star + 1;
            mark += 1;
            at = mark;
        } else {
            return false;
        }
    }
    return [...pattern.slice(of)].every((character) => character === '*');
}
