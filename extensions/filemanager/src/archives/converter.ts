/**
 * Programs that read and write the formats that Node does not know. They run as an account without rights, without a network, and within
 * limits; they get bytes and print bytes. What they print is as hostile as the archive, and goes through the same checks.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { type Child, errors, isFailure, type SpawnOptions } from '@portico/sdk';

import { fail } from '../errors.ts';
import { bytesOf } from '../files/content/bytes.ts';
import { filesystem } from '../files/filesystem.ts';
import type { Ctx } from '../settings.ts';

/** Brings what is missing. */
export const installCommand = 'apt-get install libarchive-tools xz-utils bzip2';
const unprivileged = 'nobody';
const readingLimits = { memoryBytes: 512 * 2 ** 20, cpuSeconds: 60 };
const mostErrorText = 300;
const converterFolder = 'convert';

/** The programs that pack a tar, and how they do it. */
const packing = {
    'tar.xz': ['xz', ['-c']],
    'tar.bz2': ['bzip2', ['-c']],
    '7z': ['bsdtar', ['-cf', '-', '--format', '7zip', '@-']]
} as const;
/** A format that a program writes. */
export type ConvertedFormat = keyof typeof packing;

/** An archive to convert. */
export interface ConverterInput {
    readonly handle: FileHandle;
    readonly size: number;
    readonly signal: AbortSignal;
    /** Is called with the bytes of the archive that were read so far. */
    read(bytes: number): void;
}

/** Runs the programs that read and write archives, as an account without rights. */
export class Converter {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The programs that are missing. */
    async missing(): Promise<string[]> {
        const found = await Promise.all(
            ['bsdtar', 'xz', 'bzip2'].map(async (program) => {
                try {
                    await this.#ctx.exec(program, ['--version'], { timeoutSeconds: 5, cwd: '/' });
                    return [];
                } catch (error) {
                    if (isFailure(error) && error.code === 50302) {
                        return [program];
                    }
                    throw error;
                }
            })
        );
        return found.flat();
    }

    /** Yields an archive as a pax stream. @throws ARCHIVE_REFUSED 42251 when the program cannot read it, TOOL_MISSING 50302 */
    async *toPax(input: ConverterInput, isSeekable: boolean): AsyncGenerator<Uint8Array> {
        await using closing = new AsyncDisposableStack();
        const limits = readingLimits;
        if (isSeekable) {
            const folder = await this.#copy(input);
            closing.defer(() => rm(folder, { recursive: true, force: true }));
            const args = ['-cf', '-', '--format', 'pax', '@archive'];
            const child = closing.use(
                await this.#start('bsdtar', args, { cwd: folder, limits, signal: input.signal })
            );
            await child.stdin.close();
            yield* output(child, 'bsdtar');
            return;
        }
        const args = ['-cf', '-', '--format', 'pax', '@-'];
        const child = closing.use(
            await this.#start('bsdtar', args, { cwd: '/', limits, signal: input.signal })
        );
        const feeding = feed(child, told(bytesOf(input.handle, 0, input.size), input.read));
        yield* output(child, 'bsdtar');
        await feeding;
    }

    /** Yields the content of one packed file. @throws ARCHIVE_REFUSED 42251 when the program cannot read it, TOOL_MISSING 50302 */
    async *unpack(format: 'xz' | 'bz2', input: ConverterInput): AsyncGenerator<Uint8Array> {
        const program = format === 'xz' ? 'xz' : 'bzip2';
        await using child = await this.#start(program, ['-dc'], {
            cwd: '/',
            limits: readingLimits,
            signal: input.signal
        });
        const feeding = feed(child, told(bytesOf(input.handle, 0, input.size), input.read));
        yield* output(child, program);
        await feeding;
    }

    /** Yields a tar in another format. @throws TOOL_MISSING 50302 */
    async *fromTar(
        format: ConvertedFormat,
        tar: AsyncIterable<Uint8Array>,
        signal: AbortSignal
    ): AsyncGenerator<Uint8Array> {
        const [program, args] = packing[format];
        await using child = await this.#start(program, args, { cwd: '/', signal });
        const feeding = feed(child, tar);
        yield* output(child, program);
        const failed = await feeding;
        if (failed !== null) {
            throw failed;
        }
    }

    async #start(program: string, args: readonly string[], options: SpawnOptions): Promise<Child> {
        try {
            return await this.#ctx.spawn(program, args, {
                ...options,
                isolate: { network: false },
                ...(process.geteuid?.() === 0 ? { user: unprivileged } : {})
            });
        } catch (error) {
            throw isFailure(error) && error.code === 50302 && error.data?.['tool'] === program
                ? errors.toolMissing(program, installCommand)
                : error;
        }
    }

    /** A copy that the program can seek in. It reads it by its working folder, for it may not enter the folder above. */
    async #copy({ handle, size, read, signal }: ConverterInput): Promise<string> {
        const folder = join(this.#ctx.dataDir, converterFolder, randomUUID());
        await mkdir(folder, { recursive: true, mode: 0o711 });
        try {
            await filesystem(async () => {
                const target = await open(join(folder, 'archive'), 'wx', 0o644);
                try {
                    for await (const chunk of told(bytesOf(handle, 0, size), read)) {
                        signal.throwIfAborted();
                        await target.appendFile(chunk);
                    }
                    await target.chmod(0o644);
                } finally {
                    await target.close();
                }
            });
            return folder;
        } catch (error) {
            await rm(folder, { recursive: true, force: true });
            throw error;
        }
    }

    /** Removes copies that a crash left. */
    async removeRemains(): Promise<void> {
        await rm(join(this.#ctx.dataDir, converterFolder), { recursive: true, force: true });
    }
}

/** Yields what a program prints, and fails when it does. */
async function* output(child: Child, program: string): AsyncGenerator<Uint8Array> {
    const said = textOf(child.stderr);
    for await (const chunk of child.stdout) {
        yield chunk;
    }
    const { code, signal } = await child.exited;
    const text = (await said).replace(/\s+/g, ' ').trim().slice(0, mostErrorText);
    // A program that leaves something out says so, and may end well all the same.
    if (code !== 0 || text !== '') {
        throw fail.ARCHIVE_REFUSED({
            why: text === '' ? `${program} ended with ${code ?? signal}` : text
        });
    }
}

/** Writes to a program, and ends its input. Resolves with the error of the source; a program that stops reading says why itself. */
async function feed(child: Child, source: AsyncIterable<Uint8Array>): Promise<Error | null> {
    const writer = child.stdin.getWriter();
    let failed: Error | null = null;
    try {
        const chunks = source[Symbol.asyncIterator]();
        for (;;) {
            const next = await chunks.next().catch((error: unknown) => {
                failed = error as Error;
                return { done: true, value: undefined } as const;
            });
            if (next.done === true) {
                break;
            }
            await writer.write(next.value);
        }
        if (failed !== null) {
            await child.kill('SIGKILL');
        }
        await writer.close();
    } catch {
        // The program closed its input: its exit code and its words say why.
    }
    return failed;
}

async function textOf(source: AsyncIterable<Uint8Array>): Promise<string> {
    let text = '';
    for await (const chunk of source) {
        if (text.length < 4_096) {
            text += Buffer.from(chunk).toString('utf8');
        }
    }
    return text;
}

/** Yields a source, and says after each chunk how many bytes passed. */
export async function* told(
    source: AsyncIterable<Uint8Array>,
    read: (bytes: number) => void
): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of source) {
        bytes += chunk.byteLength;
        read(bytes);
        yield chunk;
    }
}
