/** What writes each format of archives, entry by entry. */
import { Readable, type Transform } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';

import tar from 'tar-stream';
import yazl from 'yazl';

import type { TreeEntry } from '../files/tree.ts';
import type { Converter } from './converter.ts';
import type { WrittenFormat } from './format.ts';

/** Writes the entries of one archive, in one format. */
export interface Packer {
    folder(name: string, found: TreeEntry): Promise<void>;
    file(name: string, found: TreeEntry, body: AsyncIterable<Uint8Array>): Promise<void>;
    end(): void;
    /** Gives up, so that the output fails with this error. */
    destroy(error: Error): void;
    readonly output: AsyncIterable<Uint8Array>;
}

/** Makes what writes a format. Its output fails with TOOL_MISSING 50302 where a program is missing. */
export function createPacker(format: WrittenFormat, converter: Converter, signal: AbortSignal): Packer {
    switch (format) {
        case 'zip':
            return zipPacker();
        case 'tar':
            return tarPacker(null);
        case 'tar.gz':
            return tarPacker(createGzip());
        case 'tar.zst':
            return tarPacker(createZstdCompress());
        default: {
            const packer = tarPacker(null);
            return { ...packer, output: converter.fromTar(format, packer.output, signal) };
        }
    }
}

function tarPacker(compressed: Transform | null): Packer {
    const out = tar.pack();
    if (compressed !== null) {
        pipeline(out, compressed).catch((error: unknown) => compressed.destroy(error as Error));
    }
    const header = (name: string, { entry }: TreeEntry) => ({
        name,
        mode: entry.mode & 0o777,
        mtime: entry.modifiedAt,
        uid: entry.uid,
        gid: entry.gid
    });
    return {
        output: (compressed ?? out) as AsyncIterable<Uint8Array>,
        async folder(name, found) {
            await new Promise<void>(
                (resolve, reject) =>
                    void out.entry({ ...header(`${name}/`, found), type: 'directory' }, (error) =>
                        error ? reject(error) : resolve()
                    )
            );
        },
        async file(name, found, body) {
            const sink = out.entry({ ...header(name, found), type: 'file', size: found.entry.size });
            await pipeline(Readable.from(body, { objectMode: false }), sink);
        },
        end: () => out.finalize(),
        destroy(error) {
            out.destroy(error);
            compressed?.destroy(error);
        }
    };
}

function zipPacker(): Packer {
    const zip = new yazl.ZipFile();
    const output = zip.outputStream as Readable;
    zip.on('error', (error: Error) => output.destroy(error));
    const options = ({ entry }: TreeEntry) => ({ mode: entry.mode & 0o777, mtime: entry.modifiedAt });
    return {
        output,
        async folder(name, found) {
            const { mode, mtime } = options(found);
            zip.addEmptyDirectory(name, { mode: mode | 0o040000, mtime });
        },
        async file(name, found, body) {
            const { mode, mtime } = options(found);
            const input = Readable.from(body, { objectMode: false });
            zip.addReadStream(input, name, { mode: mode | 0o100000, mtime, size: found.entry.size });
            const cut = (): void => void input.destroy();
            output.once('close', cut);
            try {
                await finished(input);
            } finally {
                output.off('close', cut);
            }
        },
        end: () => zip.end(),
        destroy: (error) => void output.destroy(error)
    };
}
