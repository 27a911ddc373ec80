/**
 * Reads the statements of an SQL file as they come, without holding the file. No client program runs it, so what such a program would do by itself
 * (`\!`, `source`, `\copy`) cannot happen; it is refused because the file expects it.
 */
import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { KindName } from '../kinds/kind.ts';

const mostBytes = 128 * 1024 * 1024;
/** Commands of the client program `mariadb` at the beginning of a statement. `use` is one of the server as well. */
const clientWords =
    /^(source|system|tee|notee|pager|nopager|edit|connect|print|charset|status|rehash|prompt|resetconnection|sandbox)\b/i;
/** What `pg_dump` writes around its own commands, so that `psql` runs none of the data. */
const dumpLine = /^\\(?:un)?restrict [A-Za-z0-9]+\r?$/;
const copyStart = /^copy\b[\s\S]*\bfrom\s+stdin\b/i;

/** One thing of a script. */
export type ScriptItem =
    | { readonly type: 'statement'; readonly sql: string }
    /** The data must be read before the next item is asked for. */
    | { readonly type: 'copy'; readonly sql: string; readonly data: AsyncGenerator<Buffer> };

/** Reads one script. Texts are kept as one character a byte until a statement is whole. */
export class Script {
    readonly #kind: KindName;
    readonly #chunks: AsyncIterator<Uint8Array>;
    #text = '';
    #at = 0;
    #line = 1;
    #delimiter = ';';
    #isOver = false;

    constructor(kind: KindName, source: AsyncIterable<Uint8Array>) {
        this.#kind = kind;
        this.#chunks = source[Symbol.asyncIterator]();
    }

    /** @throws CLIENT_COMMAND 42253 */
    async *items(): AsyncGenerator<ScriptItem> {
        for (;;) {
            const sql = await this.#next();
            if (sql === null) {
                return;
            }
            if (this.#kind === 'postgresql' && copyStart.test(sql)) {
                await this.#skipLine();
                yield { type: 'copy', sql, data: this.#copyData() };
            } else {
                yield { type: 'statement', sql };
            }
        }
    }

    /** The next statement without its delimiter; null at the end. */
    async #next(): Promise<string | null> {
        while (await this.#toStatement()) {
            if (await this.#ownLine()) {
                continue;
            }
            const start = 0;
            const end = await this.#scan();
            const sql = Buffer.from(this.#text.slice(start, end), 'latin1').toString('utf8').trim();
            this.#drop(Math.min(this.#text.length, end + this.#delimiter.length));
            if (sql !== '') {
                return sql;
            }
        }
        return null;
    }

    /** Goes to the first character of a statement; false when there is none. */
    async #toStatement(): Promise<boolean> {
        for (;;) {
            const space = /^\s+/.exec(this.#text)?.[0].length ?? 0;
            this.#drop(space);
            this.#at = 0;
            if (this.#text === '') {
                if (!(await this.#more())) {
                    return false;
                }
            } else if (await this.#isComment()) {
                // Without it, what a dump tool writes for clients stands at the beginning of a line of its own.
                await this.#skipTo('\n', 1);
                this.#drop(this.#at);
            } else {
                return true;
            }
        }
    }

    /** Handles a line that is for a client program, such as DELIMITER. */
    async #ownLine(): Promise<boolean> {
        while (!this.#text.includes('\n') && this.#text.length < 4_096 && (await this.#more())) {
            // The whole line is wanted.
        }
        const line = this.#text.slice(0, this.#text.indexOf('\n') < 0 ? undefined : this.#text.indexOf('\n'));
        const delimiter = this.#kind === 'mysql' ? /^delimiter\s+(\S+)/i.exec(line)?.[1] : undefined;
        if (delimiter !== undefined || (this.#kind === 'postgresql' && dumpLine.test(line))) {
            this.#delimiter = delimiter ?? this.#delimiter;
            this.#drop(line.length);
            return true;
        }
        if (line.startsWith('\\') || (this.#kind === 'mysql' && clientWords.test(line))) {
            throw this.#clientCommand(line);
        }
        return false;
    }

    #clientCommand(text: string): Error {
        return fail.CLIENT_COMMAND({ line: this.#line, command: text.trim().slice(0, 40) });
    }

    /** Finds the delimiter that ends the statement, outside of texts and comments. */
    async #scan(): Promise<number> {
        this.#at = 0;
        for (;;) {
            const special = this.#kind === 'mysql' ? /['"`#/\\-]/g : /['"$/\\-]/g;
            special.lastIndex = this.#at;
            const end = this.#text.indexOf(this.#delimiter, this.#at);
            const found = special.exec(this.#text);
            if (end >= 0 && (found === null || end <= found.index)) {
                return end;
            }
            if (found === null) {
                this.#at = Math.max(this.#at, this.#text.length - this.#delimiter.length + 1);
                if (!(await this.#more())) {
                    return this.#text.length;
                }
                continue;
            }
            this.#at = found.index;
            await this.#skipSpecial(found[0]);
        }
    }

    async #skipSpecial(first: string): Promise<void> {
        const next = await this.#peek(1);
        if (first === '\\') {
            throw this.#clientCommand(this.#text.slice(this.#at, this.#at + 40));
        }
        if (await this.#isComment()) {
            await this.#skipTo('\n', 1);
        } else if (first === '/' && next === '*') {
            await this.#skipComment();
        } else if (first === '$') {
            await this.#skipDollar();
        } else if (first === '-' || first === '/') {
            this.#at += 1;
        } else {
            await this.#skipQuoted(first);
        }
    }

    /** Whether a comment begins here that goes to the end of the line. */
    async #isComment(): Promise<boolean> {
        const first = await this.#peek(0);
        return (
            (first === '#' && this.#kind === 'mysql') ||
            (first === '-' && (await this.#peek(1)) === '-' && (await this.#isLineComment()))
        );
    }

    async #isLineComment(): Promise<boolean> {
        return this.#kind === 'postgresql' || /^\s?$/.test(await this.#peek(2));
    }

    async #skipComment(): Promise<void> {
        await this.#skipTo('*/', 2, this.#kind === 'postgresql');
    }

    /** `$tag$ … $tag$` of PostgreSQL; a `$` within a name or before a digit is none. */
    async #skipDollar(): Promise<void> {
        while (this.#text.length < this.#at + 128 && (await this.#more())) {
            // A tag has at most 63 bytes.
        }
        const isName = this.#at > 0 && /[\w$\x80-\xff]/.test(this.#text[this.#at - 1] ?? '');
        const tag = isName
            ? undefined
            : /^\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$/.exec(
                  this.#text.slice(this.#at, this.#at + 128)
              )?.[0];
        if (tag === undefined) {
            this.#at += 1;
        } else {
            await this.#skipTo(tag, tag.length);
        }
    }

    async #skipQuoted(quote: string): Promise<void> {
        const before = this.#text.slice(Math.max(0, this.#at - 2), this.#at);
        const hasEscapes =
            this.#kind === 'mysql' ? quote !== '`' : quote === "'" && /(^|[^\w$])e$/i.test(before);
        const pattern = hasEscapes ? (quote === '"' ? /[\\"]/g : /[\\']/g) : null;
        let at = this.#at + 1;
        for (;;) {
            let found: number;
            if (pattern === null) {
                found = this.#text.indexOf(quote, at);
            } else {
                pattern.lastIndex = at;
                found = pattern.exec(this.#text)?.index ?? -1;
            }
            if (found < 0) {
                at = this.#text.length;
                if (!(await this.#more())) {
                    this.#at = this.#text.length;
                    return;
                }
            } else if (this.#text[found] === '\\') {
                at = found + 2;
                while (this.#text.length < at && (await this.#more())) {
                    // The escaped character is wanted.
                }
            } else {
                // A doubled quote begins the next part of the same text.
                this.#at = found + 1;
                return;
            }
        }
    }

    /** Skips to behind a text. With `nested`, comments within the comment count. */
    async #skipTo(text: string, from: number, nested = false): Promise<void> {
        let at = this.#at + from;
        let depth = 1;
        for (;;) {
            const end = this.#text.indexOf(text, at);
            const open = nested ? this.#text.indexOf('/*', at) : -1;
            if (open >= 0 && (end < 0 || open < end)) {
                depth += 1;
                at = open + 2;
            } else if (end >= 0) {
                at = end + text.length;
                depth -= 1;
                if (depth === 0) {
                    this.#at = at;
                    return;
                }
            } else {
                at = Math.max(at, this.#text.length - text.length);
                if (!(await this.#more())) {
                    this.#at = this.#text.length;
                    return;
                }
            }
        }
    }

    async #peek(distance: number): Promise<string> {
        while (this.#text.length <= this.#at + distance && (await this.#more())) {
            // One character is wanted.
        }
        return this.#text[this.#at + distance] ?? '';
    }

    async #skipLine(): Promise<void> {
        while (!this.#text.includes('\n') && (await this.#more())) {
            // The rest of the line is wanted.
        }
        this.#drop(this.#text.indexOf('\n') + 1);
    }

    /** The lines of COPY up to the one that ends them. */
    async *#copyData(): AsyncGenerator<Buffer> {
        const ends = /(^|\n)\\\.\r?(\n|$)/;
        let isFirst = true;
        for (;;) {
            const found = ends.exec(this.#text);
            // At the beginning of what is left, `^` stands for the beginning of a line only for the first piece.
            const isEnd = found !== null && (found[1] === '\n' || isFirst);
            const isWhole = isEnd && (found[2] === '\n' || this.#isOver);
            if (isEnd && isWhole) {
                const data = this.#text.slice(0, found.index + (found[1]?.length ?? 0));
                this.#drop(found.index + found[0].length);
                yield Buffer.from(data, 'latin1');
                return;
            }
            const kept = Math.min(this.#text.length, 5);
            const data = this.#text.slice(0, this.#text.length - kept);
            if (data !== '' && !isEnd) {
                this.#drop(data.length);
                isFirst = false;
                yield Buffer.from(data, 'latin1');
            }
            if (!(await this.#more())) {
                if (this.#isOver && ends.exec(this.#text) === null) {
                    throw errors.invalid([
                        { path: 'file', message: 'The file ends within the data of a COPY' }
                    ]);
                }
            }
        }
    }

    #drop(count: number): void {
        for (
            let at = this.#text.indexOf('\n');
            at >= 0 && at < count;
            at = this.#text.indexOf('\n', at + 1)
        ) {
            this.#line += 1;
        }
        this.#text = this.#text.slice(count);
        this.#at = Math.max(0, this.#at - count);
    }

    async #more(): Promise<boolean> {
        const { done, value } = this.#isOver ? { done: true, value: undefined } : await this.#chunks.next();
        if (done === true || value === undefined) {
            this.#isOver = true;
            return false;
        }
        this.#text += Buffer.from(value).toString('latin1');
        if (this.#text.length > mostBytes) {
            throw errors.invalid([{ path: 'file', message: `A statement has more than ${mostBytes} bytes` }]);
        }
        return true;
    }
}
