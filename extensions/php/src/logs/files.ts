/** The log files of sites: read from the end, followed, and cut. Their account can put anything in their place, so they are opened without following links. */
import { setTimeout as wait } from 'node:timers/promises';

import type { Files } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { Site } from '../sites/site.ts';

const blockBytes = 65_536;
const pollMs = 250;
/** A longer line is cut. */
const lineBytes = 32_768;
const copyBytes = 1_048_576;

/** The folder of a site's logs. */
export function logsOf(ctx: Ctx, { folder }: Site): Files {
    return ctx.files(`${folder}/logs`);
}

/** The last lines of a log, and with `follow` each further one until the signal aborts. A log that is not there is empty. */
export async function* readLog(
    files: Files,
    name: string,
    {
        lines,
        follow,
        signal
    }: { readonly lines: number; readonly follow: boolean; readonly signal: AbortSignal }
): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    let [text, at] = await readEnd(files, name, lines);
    let identity = await identityOf(files, name);
    for (;;) {
        const parts = text.split('\n');
        text = parts.pop() ?? '';
        yield* parts;
        if (text.length > lineBytes) {
            yield text;
            text = '';
        }
        if (!follow || signal.aborted) {
            if (text !== '') {
                yield text;
            }
            return;
        }
        await wait(pollMs, undefined, { signal }).catch(() => undefined);
        const now = await identityOf(files, name);
        // A new file, or one that was cut, is read from its beginning.
        if (now.key !== identity.key || now.size < at) {
            at = 0;
        }
        identity = now;
        const more = await readFrom(files, name, at);
        at += more.length;
        text += decoder.decode(more, { stream: true });
    }
}

/** Moves the content of a log that is too large to `<log>.1`. Writers keep their file open, so it is cut and not renamed. */
export async function rotate(files: Files, name: string, mostBytes: number): Promise<boolean> {
    const entry = await files.stat(name).catch(() => null);
    if (entry === null || entry.type !== 'file' || entry.size <= mostBytes) {
        return false;
    }
    const source = await files.open(name, 'r+');
    try {
        const copy = await files.open(`${name}.1`, 'w', 0o600);
        try {
            await copy.chown(entry.uid, entry.gid);
            // Only the newest bytes are kept, however much was written since the last time.
            let at = Math.max(0, entry.size - mostBytes);
            for (;;) {
                const { bytesRead, buffer } = await source.read(Buffer.alloc(copyBytes), 0, copyBytes, at);
                if (bytesRead === 0) {
                    break;
                }
                await copy.write(buffer.subarray(0, bytesRead));
                at += bytesRead;
            }
        } finally {
            await copy.close();
        }
        await source.truncate(0);
    } finally {
        await source.close();
    }
    return true;
}

/** Bytes of a log from a place on, at most one block. */
export async function readFrom(files: Files, name: string, at: number): Promise<Buffer> {
    try {
        const handle = await files.open(name);
        try {
            const { bytesRead, buffer } = await handle.read(Buffer.alloc(blockBytes), 0, blockBytes, at);
            return buffer.subarray(0, bytesRead);
        } finally {
            await handle.close();
        }
    } catch {
        return Buffer.alloc(0);
    }
}

/** Size of a log; 0 without one. */
export async function sizeOf(files: Files, name: string): Promise<number> {
    return (await identityOf(files, name)).size;
}

async function identityOf(
    files: Files,
    name: string
): Promise<{ readonly key: string; readonly size: number }> {
    const entry = await files.stat(name).catch(() => null);
    // Device and inode stand at the beginning of the version.
    return entry === null
        ? { key: '', size: 0 }
        : { key: entry.version.split('-').slice(0, 2).join('-'), size: entry.size };
}

async function readEnd(files: Files, name: string, lines: number): Promise<[text: string, end: number]> {
    const size = await sizeOf(files, name);
    let start = size;
    let bytes = Buffer.alloc(0);
    let found = 0;
    while (start > 0 && found <= lines) {
        const from = Math.max(0, start - blockBytes);
        const block = (await readFrom(files, name, from)).subarray(0, start - from);
        if (block.length === 0) {
            break;
        }
        bytes = Buffer.concat([block, bytes]);
        start = from;
        found = bytes.filter((byte) => byte === 10).length;
    }
    const text = bytes.toString('utf8');
    const all = text.split('\n');
    const last = all.pop() ?? '';
    return [[...all.slice(lines === 0 ? all.length : -lines), last].join('\n'), size];
}
