/** Finds where the statements of an SQL file end: outside of texts, names and comments. */
import type { KindName } from '../../kinds/kind.ts';

/** The bytes that are compared. */
export const byte = {
    newline: 10,
    quote: 39,
    doubleQuote: 34,
    hash: 35,
    dollar: 36,
    star: 42,
    dash: 45,
    slash: 47,
    backslash: 92,
    backtick: 96
} as const;

/** What the scanner must see at once: a `$tag$` of PostgreSQL has 65 bytes at most. */
const lookahead = 128;
const dollarTag = /^\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$/;

/** Something in which no statement ends. */
type Inside =
    | { readonly type: 'quoted'; readonly quote: number; readonly escapes: boolean }
    | { readonly type: 'until'; readonly end: string }
    | { readonly type: 'comment'; depth: number };

/** Scans one statement after the other. It goes on where it was when more bytes have come, so each byte is looked at once. */
export class Scanner {
    readonly #isMysql: boolean;
    readonly #refuse: (at: number) => Error;
    readonly #special: Uint8Array;
    #delimiter: Buffer;
    #at = 0;
    #inside: Inside | null = null;

    /** @param refuse - makes the error for a command of a client program that begins there */
    constructor(kind: KindName, refuse: (at: number) => Error) {
        this.#isMysql = kind === 'mysql';
        this.#refuse = refuse;
        this.#delimiter = Buffer.from(';');
        this.#special = new Uint8Array(256);
        this.delimiter = ';';
    }

    /** What ends a statement, one character a byte. */
    set delimiter(text: string) {
        this.#delimiter = Buffer.from(text, 'latin1');
        this.#special.fill(0);
        for (const each of Buffer.from(this.#isMysql ? '\'"`#/\\-' : '\'"$/\\-')) {
            this.#special[each] = 1;
        }
        this.#special[this.#delimiter[0] ?? 0] = 1;
    }

    get delimiterBytes(): number {
        return this.#delimiter.length;
    }

    /**
     * Where the statement at the beginning of `bytes` ends; null when more of them are wanted.
     *
     * @param isAll - nothing comes after these bytes
     */
    find(bytes: Buffer, isAll: boolean): number | null {
        const end = this.#find(bytes, isAll) ?? (isAll ? bytes.length : null);
        if (end !== null) {
            this.#at = 0;
            this.#inside = null;
        }
        return end;
    }

    #find(bytes: Buffer, isAll: boolean): number | null {
        const ahead = Math.max(lookahead, this.#delimiter.length);
        for (;;) {
            if (this.#inside !== null && !this.#leave(bytes, this.#inside, isAll)) {
                return null;
            }
            this.#inside = null;
            this.#toSpecial(bytes);
            const left = bytes.length - this.#at;
            if (left === 0 || (left < ahead && !isAll)) {
                return null;
            }
            if (bytes.subarray(this.#at, this.#at + this.#delimiter.length).equals(this.#delimiter)) {
                return this.#at;
            }
            this.#enter(bytes);
        }
    }

    #toSpecial(bytes: Buffer): void {
        const special = this.#special;
        let at = this.#at;
        while (at < bytes.length && special[bytes[at] as number] === 0) {
            at += 1;
        }
        this.#at = at;
    }

    /** Goes behind what begins at a special byte, or into it. */
    #enter(bytes: Buffer): void {
        const first = bytes[this.#at];
        if (first === byte.backslash) {
            throw this.#refuse(this.#at);
        }
        if (first === byte.quote || first === byte.doubleQuote || first === byte.backtick) {
            this.#inside = { type: 'quoted', quote: first, escapes: this.#hasEscapes(bytes, first) };
            this.#at += 1;
        } else if (isLineComment(bytes, this.#at, this.#isMysql)) {
            this.#inside = { type: 'until', end: '\n' };
            this.#at += 1;
        } else if (first === byte.slash && bytes[this.#at + 1] === byte.star) {
            this.#inside = { type: 'comment', depth: 1 };
            this.#at += 2;
        } else if (first === byte.dollar && !this.#isMysql) {
            this.#enterDollar(bytes);
        } else {
            this.#at += 1;
        }
    }

    /** In PostgreSQL only in a text with an `E` before it. */
    #hasEscapes(bytes: Buffer, quote: number): boolean {
        if (this.#isMysql) {
            return quote !== byte.backtick;
        }
        const before = bytes.toString('latin1', Math.max(0, this.#at - 2), this.#at);
        return quote === byte.quote && /(^|[^\w$])e$/i.test(before);
    }

    /** `$tag$ … $tag$`; a `$` within a name or before a digit is none. */
    #enterDollar(bytes: Buffer): void {
        const isName =
            this.#at > 0 && /[\w$\x80-\xff]/.test(bytes.toString('latin1', this.#at - 1, this.#at));
        const tag = isName ? null : dollarTag.exec(bytes.toString('latin1', this.#at, this.#at + lookahead));
        if (tag !== null) {
            this.#inside = { type: 'until', end: tag[0] };
        }
        this.#at += tag === null ? 1 : tag[0].length;
    }

    /** Goes behind the end of what the scanner is in; false when it is not there yet. */
    #leave(bytes: Buffer, inside: Inside, isAll: boolean): boolean {
        if (inside.type === 'quoted') {
            return this.#leaveQuoted(bytes, inside, isAll);
        }
        if (inside.type === 'comment') {
            return this.#leaveComment(bytes, inside);
        }
        const found = bytes.indexOf(inside.end, this.#at, 'latin1');
        this.#at =
            found < 0 ? Math.max(this.#at, bytes.length - inside.end.length + 1) : found + inside.end.length;
        return found >= 0;
    }

    #leaveQuoted(
        bytes: Buffer,
        { quote, escapes }: { readonly quote: number; readonly escapes: boolean },
        isAll: boolean
    ): boolean {
        const escape = escapes ? byte.backslash : quote;
        let at = this.#at;
        for (; at < bytes.length; at += 1) {
            const found = bytes[at];
            if (found !== quote && found !== escape) {
                continue;
            }
            if (at + 1 === bytes.length && !isAll) {
                break;
            }
            // A doubled quote stands for itself, as what is escaped does.
            if (found === quote && bytes[at + 1] !== quote) {
                this.#at = at + 1;
                return true;
            }
            at += 1;
        }
        this.#at = Math.min(at, bytes.length);
        return false;
    }

    /** In PostgreSQL, comments within a comment count. */
    #leaveComment(bytes: Buffer, inside: { depth: number }): boolean {
        for (;;) {
            const end = bytes.indexOf('*/', this.#at);
            const open = this.#isMysql ? -1 : bytes.indexOf('/*', this.#at);
            if (open >= 0 && (end < 0 || open < end)) {
                inside.depth += 1;
                this.#at = open + 2;
            } else if (end >= 0) {
                inside.depth -= 1;
                this.#at = end + 2;
                if (inside.depth === 0) {
                    return true;
                }
            } else {
                this.#at = Math.max(this.#at, bytes.length - 1);
                return false;
            }
        }
    }
}

/** Whether a comment begins here that goes to the end of the line. In MySQL a space comes after `--`. */
export function isLineComment(bytes: Buffer, at: number, isMysql: boolean): boolean {
    if (isMysql && bytes[at] === byte.hash) {
        return true;
    }
    const isDashes = bytes[at] === byte.dash && bytes[at + 1] === byte.dash;
    return isDashes && (!isMysql || isSpace(bytes[at + 2] ?? byte.newline));
}

/** Space, tab, or the end of a line or page. */
export function isSpace(each: number): boolean {
    return each === 32 || (each >= 9 && each <= 13);
}
