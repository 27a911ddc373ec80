/** What a statement begins with, as the server reads it. */
import { fail } from '../errors.ts';

/**
 * Spaces and comments in front of a statement. What the servers read differently is none: `/*!`, in which MySQL runs what stands there, a comment within
 * a comment, and a carriage return that ends a line for one of them only.
 */
const front = /^(?:\s+|(?:--|#)[^\r\n]*(?:\r?\n|$)|\/\*(?!!|M!)(?:(?!\*\/|\/\*)[\s\S])*\*\/)*/;
const passwords = /\b(identified|password)\b/i;

/** The first word of a statement, upper case; empty when it begins with anything else. */
export function firstWordOf(sql: string): string {
    const rest = sql.slice(front.exec(sql)?.[0].length ?? 0);
    return /^[a-z]+(?![\w$])/i.exec(rest)?.[0].toUpperCase() ?? '';
}

/** @throws READ_ONLY 42251 for a statement that begins with none of these words */
export function mustRead(sql: string, words: readonly string[]): void {
    const word = firstWordOf(sql);
    if (!words.includes(word)) {
        throw fail.READ_ONLY({ why: `a statement begins with ${words.join(', ')}` });
    }
}

/** Whether a statement may hold a password, which is kept nowhere. */
export function mayHoldPassword(sql: string): boolean {
    return passwords.test(sql);
}
