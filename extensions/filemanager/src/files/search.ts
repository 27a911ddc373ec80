/** Searches a tree for names, within limits of time and entries. */
import type { Files } from '@portico/sdk';

import { nameOf } from '../roots/path.ts';
import { type TreeEntry, walk } from './tree.ts';

/** Limits of one search. */
export const searchLimits = { milliseconds: 5_000, entries: 200_000 } as const;

/** What a search found. */
export interface SearchResult {
    readonly found: readonly TreeEntry[];
    /** Why the search ended before the end of the tree; null when it did not. */
    readonly truncated: 'results' | 'time' | 'entries' | null;
}

/** Finds names that contain the text, whatever the case; with `*` or `?` in it, whole names that fit the pattern. */
export async function search(
    files: Files,
    folder: string,
    text: string,
    limit: number,
    signal: AbortSignal
): Promise<SearchResult> {
    const matches = matcher(text);
    const found: TreeEntry[] = [];
    const until = Date.now() + searchLimits.milliseconds;
    let seen = 0;
    for await (const one of walk(files, folder, signal)) {
        seen += 1;
        if (matches(nameOf(one.path))) {
            if (found.length === limit) {
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

/** Makes a test of one name, whatever its case. */
export function matcher(text: string): (name: string) => boolean {
    const wanted = text.toLowerCase();
    return /[*?]/.test(wanted)
        ? (name) => matchesPattern(name.toLowerCase(), wanted)
        : (name) => name.toLowerCase().includes(wanted);
}

/** `*` is any text, `?` one character. Goes back to the last star only, so the time is bounded by the product of both lengths. */
function matchesPattern(name: string, pattern: string): boolean {
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
