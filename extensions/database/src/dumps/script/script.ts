/**
 * Reads the statements of an SQL file as they come, without holding the file. No client program runs it, so what such a program would do by itself
 * (`\!`, `source`, `\copy`) cannot happen; it is refused because the file expects it.
 */
import { errors } from '@portico/sdk';

import { fail } from '../../errors.ts';
import type { KindName } from '../../kinds/kind.ts';
import { byte, isLineComment, isSpace, Scanner } from './scanner.ts';

const mostBytes = 128 * 1024 * 1024;
/** What is looked at of a line that may be for a client program. */
const lineBytes = 4_096;
/** The beginning of a comment: two dashes and a space. */
const commentBytes = 3;
/** The longest end of the data of a COPY with the end of the line before it. */
const endBytes = 5;
/** What a message shows of a command. */
const shownBytes = 40;
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

/** Reads one script. It holds the statement that it reads, and of the data of a COPY one piece. */
export class Script {
    readonly #kind: KindName;
    readonly #chunks: AsyncIterator<Uint8Array>;
    readonly #scanner: Scanner;
    #bytes: Buffer = Buffer.alloc(0);
    #line = 1;
    #isOver = false;

    constructor(kind: KindName, source: AsyncIterable<Uint8Array>) {
        this.#kind = kind;
        this.#chunks = source[Symbol.asyncIterator]();
        this.#scanner = new Scanner(kind, (at) =>
            this.#clientCommand(this.#bytes.toString('latin1', at, at + shownBytes))
        );
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
            let end = this.#scanner.find(this.#bytes, this.#isOver);
            while (end === null) {
                await this.#more();
                end = this.#scanner.find(this.#bytes, this.#isOver);
            }
            const sql = this.#bytes.toString('utf8', 0, end).trim();
            this.#drop(Math.min(this.#bytes.length, end + this.#scanner.delimiterBytes));
            if (sql !== '') {
                return sql;
            }
        }
        return null;
    }

    /** Goes to the first byte of a statement; false when there is none. */
    async #toStatement(): Promise<boolean> {
        for (;;) {
            let spaces = 0;
            while (spaces < this.#bytes.length && isSpace(this.#bytes[spaces] as number)) {
                spaces += 1;
            }
            this.#drop(spaces);
            if (this.#bytes.length < commentBytes && (await this.#more())) {
                continue;
            }
            if (!isLineComment(this.#bytes, 0, this.#kind === 'mysql')) {
                return this.#bytes.length > 0;
            }
            // Without it, what a dump tool writes for clients stands at the beginning of a line of its own.
            await this.#skipLine();
        }
    }

    /** Handles a line that is for a client program, such as DELIMITER. */
    async #ownLine(): Promise<boolean> {
        while (
            this.#bytes.length < lineBytes &&
            !this.#bytes.includes(byte.newline) &&
            (await this.#more())
        ) {
            // The whole line is wanted.
        }
        const text = this.#bytes.toString('latin1', 0, lineBytes);
        const line = text.slice(0, text.includes('\n') ? text.indexOf('\n') : undefined);
        const delimiter = this.#kind === 'mysql' ? /^delimiter\s+(\S+)/i.exec(line)?.[1] : undefined;
        if (delimiter !== undefined || (this.#kind === 'postgresql' && dumpLine.test(line))) {
            if (delimiter !== undefined) {
                this.#scanner.delimiter = delimiter;
            }
            this.#drop(line.length);
            return true;
        }
        if (line.startsWith('\\') || (this.#kind === 'mysql' && clientWords.test(line))) {
            throw this.#clientCommand(line);
        }
        return false;
    }

    #clientCommand(text: string): Error {
        return fail.CLIENT_COMMAND({ line: this.#line, command: text.trim().slice(0, shownBytes) });
    }

    async #skipLine(): Promise<void> {
        let end = this.#bytes.indexOf(byte.newline);
        while (end < 0) {
            this.#drop(this.#bytes.length);
            if (!(await this.#more())) {
                return;
            }
            end = this.#bytes.indexOf(byte.newline);
        }
        this.#drop(end + 1);
    }

    /** The lines of COPY up to the one that ends them. */
    async *#copyData(): AsyncGenerator<Buffer> {
        let isFirst = true;
        for (;;) {
            const found = findCopyEnd(this.#bytes, { isFirst, isAll: this.#isOver });
            const data = this.#bytes.subarray(0, found?.start ?? Math.max(0, this.#bytes.length - endBytes));
            if (found !== null || data.length > 0) {
                this.#drop(found?.end ?? data.length);
                isFirst = false;
                yield data;
            }
            if (found !== null) {
                return;
            }
            if (!(await this.#more()) && findCopyEnd(this.#bytes, { isFirst, isAll: true }) === null) {
                throw errors.invalid([{ path: 'file', message: 'The file ends within the data of a COPY' }]);
            }
        }
    }

    #drop(count: number): void {
        for (
            let at = this.#bytes.indexOf(byte.newline);
            at >= 0 && at < count;
            at = this.#bytes.indexOf(byte.newline, at + 1)
        ) {
            this.#line += 1;
        }
        this.#bytes = this.#bytes.subarray(count);
    }

    /** Reads at least as much as it holds, so that a long statement is not copied again and again; false at the end. */
    async #more(): Promise<boolean> {
        const pieces: Uint8Array[] = [this.#bytes];
        let length = this.#bytes.length;
        const wanted = Math.max(1, 2 * length);
        while (length < wanted && !this.#isOver) {
            const { done, value } = await this.#chunks.next();
            if (done === true) {
                this.#isOver = true;
            } else {
                pieces.push(value);
                length += value.length;
            }
        }
        if (length > mostBytes) {
            throw errors.invalid([{ path: 'file', message: `A statement has more than ${mostBytes} bytes` }]);
        }
        const hasMore = length > this.#bytes.length;
        if (hasMore) {
            this.#bytes = Buffer.concat(pieces, length);
        }
        return hasMore;
    }
}

/**
 * Where the line `\.` ends the data of a COPY: `start` is behind the data, `end` behind the line. Null when it is not in these bytes.
 *
 * @param isFirst - the bytes begin with a line
 * @param isAll - nothing comes after these bytes
 */
function findCopyEnd(
    bytes: Buffer,
    { isFirst, isAll }: { readonly isFirst: boolean; readonly isAll: boolean }
): { readonly start: number; readonly end: number } | null {
    for (let at = bytes.indexOf('\\.'); at >= 0; at = bytes.indexOf('\\.', at + 1)) {
        const isLine = at === 0 ? isFirst : bytes[at - 1] === byte.newline;
        const rest = isLine ? /^\\\.\r?(\n|$)/.exec(bytes.toString('latin1', at, at + endBytes)) : null;
        if (rest !== null && (rest[1] === '\n' || isAll)) {
            return { start: at, end: at + rest[0].length };
        }
    }
    return null;
}
