/** Runs the statements of a dump as a guest: an account that owns one database and nothing else. */
import type { FileHandle } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';

import { fail } from '../errors.ts';
import type { KindName, Session } from '../kinds/kind.ts';
import type { Ctx } from '../settings.ts';
import { restoreCall, toolUser } from './clients.ts';
import { Script } from './script/script.ts';
import { tailOf, through } from './streams.ts';

/** How a file holds its statements. */
export type Encoding = 'sql' | 'gzip' | 'pg_dump';

const magic = { pg_dump: Buffer.from('PGDMP'), gzip: Buffer.from([0x1f, 0x8b]) } as const;
/** Bytes at the beginning of a file that say how it holds its statements. */
export const magicBytes = magic.pg_dump.length;
const chunkBytes = 1024 * 1024;
const unzippedBytes = 64 * 1024;
/** Statements that change who owns or may use things: the guest may not, and its database has an owner. */
const skipped = {
    postgresql:
        /^(alter\s[^;]*\sowner\s+to\s|grant\s|revoke\s|set\s+session\s+authorization|reset\s+session\s+authorization|comment\s+on\s+extension\s|alter\s+default\s+privileges\s|create\s+schema\s+public$)/i,
    mysql: /^(set\s+@@global\.|set\s+@@session\.sql_log_bin|set\s+@mysqldump_temp_log_bin)/i
} as const;
const definer =
    /\bdefiner\s*=\s*(`(?:[^`]|``)*`|"(?:[^"]|"")*"|'[^']*'|\w+)@(`(?:[^`]|``)*`|"(?:[^"]|"")*"|'[^']*'|[\w%.]+)/gi;
const making = /^(\/\*!\d+\s+)?(create|alter|definer)\b/i;

/** How a file of a stranger holds its statements, by its first bytes. */
export function encodingOf(kind: KindName, first: Uint8Array): Encoding {
    const starts = (bytes: Uint8Array): boolean =>
        Buffer.compare(first.subarray(0, bytes.length), bytes) === 0;
    return kind === 'postgresql' && starts(magic.pg_dump) ? 'pg_dump' : starts(magic.gzip) ? 'gzip' : 'sql';
}

/** The bytes of the SQL in a file. `pg_restore` reads what a stranger wrote: without rights and without a network. */
export async function* sqlOf(
    ctx: Ctx,
    handle: FileHandle,
    encoding: Encoding,
    signal: AbortSignal
): AsyncGenerator<Uint8Array> {
    const file = readFile(handle, signal);
    if (encoding === 'sql') {
        yield* file;
    } else if (encoding === 'gzip') {
        yield* through(file, createGunzip({ chunkSize: unzippedBytes }));
    } else {
        const { file: tool, args, env, privateFiles } = await restoreCall();
        await using child = await ctx.spawn(tool, args, {
            ...toolUser,
            env,
            privateFiles,
            isolate: { network: false },
            signal
        });
        const fed = feed(child.stdin, file);
        const said = tailOf(child.stderr);
        yield* child.stdout;
        await fed;
        const { code } = await child.exited;
        if (code !== 0) {
            throw fail.SQL_FAILED({
                sqlState: null,
                message: (await said) || 'pg_restore cannot read this file'
            });
        }
    }
}

/** The bytes of a file from its beginning, until the signal aborts. The handle stays open. */
export async function* readFile(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (let position = 0; ;) {
        signal.throwIfAborted();
        const buffer = Buffer.allocUnsafe(chunkBytes);
        const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position);
        if (bytesRead === 0) {
            return;
        }
        position += bytesRead;
        yield buffer.subarray(0, bytesRead);
    }
}

async function feed(target: WritableStream<Uint8Array>, source: AsyncIterable<Uint8Array>): Promise<void> {
    const writer = target.getWriter();
    try {
        for await (const chunk of source) {
            await writer.write(chunk);
        }
        await writer.close();
    } catch {
        // The program has ended before it read all; its exit code says whether that is a failure.
    }
}

/** Reads a script to its end without running it. @throws CLIENT_COMMAND 42253 */
export async function checkScript(kind: KindName, source: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const item of new Script(kind, source).items()) {
        if (item.type === 'copy') {
            for await (const _ of item.data) {
                // Only its end is wanted.
            }
        }
    }
}

/** What stands in place of the statements of a script. */
export interface ScriptChange {
    statements(sql: string, session: Session): Promise<readonly string[]>;
    /** The data of a COPY statement. */
    data(sql: string, data: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
    /** What runs after the last statement. */
    end(): readonly string[];
    /** Is called when all that has run. */
    after(session: Session): Promise<void>;
}

/** Runs a script in a session of the guest; says how many statements were left out. @throws SQL_FAILED 42250 */
export async function runScript(
    kind: KindName,
    session: Session,
    source: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    change?: ScriptChange
): Promise<{ readonly statements: number; readonly skipped: number }> {
    let [statements, left] = [0, 0];
    const stop = (): void => session.destroy();
    signal.addEventListener('abort', stop, { once: true });
    try {
        for await (const item of new Script(kind, source).items()) {
            signal.throwIfAborted();
            if (item.type === 'copy') {
                await session.copy(item.sql, change?.data(item.sql, item.data) ?? item.data);
            } else if (skipped[kind].test(item.sql)) {
                left += 1;
                continue;
            } else {
                const isMaking = kind === 'mysql' && making.test(item.sql);
                const sql = isMaking ? item.sql.replace(definer, '') : item.sql;
                await runAll(session, change === undefined ? [sql] : await change.statements(sql, session));
            }
            statements += 1;
        }
        await runAll(session, change?.end() ?? []);
        await change?.after(session);
        return { statements, skipped: left };
    } catch (error) {
        signal.throwIfAborted();
        throw error;
    } finally {
        signal.removeEventListener('abort', stop);
    }
}

async function runAll(session: Session, statements: readonly string[]): Promise<void> {
    for (const sql of statements) {
        const result = await session.stream(sql, [], { write: true });
        for await (const _ of result.batches) {
            // Rows that a dump asks for are of no use.
        }
    }
}
