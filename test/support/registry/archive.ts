import { gzipSync } from 'node:zlib';

/** One entry of an archive, which is written as it is, without any correction. */
export interface ArchiveEntry {
    readonly path: string;
    readonly content?: string | Uint8Array;
    /** The type flag of tar: `0` file, `1` hard link, `2` symbolic link, `5` folder, `6` pipe. */
    readonly type?: '0' | '1' | '2' | '3' | '5' | '6';
    readonly link?: string;
    readonly mode?: number;
}

const block = 512;

/** Makes a compressed archive of any entries, also hostile ones. */
export function archiveOf(entries: readonly ArchiveEntry[]): Uint8Array {
    return gzipSync(tarOf(entries));
}

/** Makes an archive without compression. */
export function tarOf(entries: readonly ArchiveEntry[]): Uint8Array {
    return Buffer.concat([
        ...entries.flatMap(({ path, content = '', type = '0', link = '', mode = 0o644 }) => {
            const body = Buffer.from(content);
            return [
                header(path, body.length, type, link, mode),
                body,
                Buffer.alloc((block - (body.length % block)) % block)
            ];
        }),
        Buffer.alloc(2 * block)
    ]);
}

/** Makes an archive of a package as npm does: every file is below `package/`. */
export function packageArchive(
    packageJson: object,
    files: Readonly<Record<string, string>>,
    more: readonly ArchiveEntry[] = []
): Uint8Array {
    return archiveOf([
        { path: 'package/package.json', content: JSON.stringify(packageJson) },
        ...Object.entries(files).map(([path, content]) => ({ path: `package/${path}`, content })),
        ...more
    ]);
}

function header(path: string, size: number, type: string, link: string, mode: number): Buffer {
    const bytes = Buffer.alloc(block);
    bytes.write(path, 0, 100);
    bytes.write(`${mode.toString(8).padStart(7, '0')}\0`, 100);
    bytes.write('0000000\0', 108);
    bytes.write('0000000\0', 116);
    bytes.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
    bytes.write('00000000000\0', 136);
    bytes.write('        ', 148);
    bytes.write(type, 156);
    bytes.write(link, 157, 100);
    bytes.write('ustar\x0000', 257, 'latin1');
    const sum = bytes.reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return bytes;
}
