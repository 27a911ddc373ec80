/** A tar archive of a few small files, as the engine takes files of a container. */
import type { SpecFile } from './spec.ts';

const block = 512;

/** An archive in the format ustar. @throws RangeError for a path that does not fit, which is more than 250 bytes */
export function tarOf(files: readonly SpecFile[]): Uint8Array {
    const parts = files.flatMap((file) => {
        const content = Buffer.from(file.content);
        const padding = Buffer.alloc((block - (content.length % block)) % block);
        return [headerOf(file, content.length), content, padding];
    });
    return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function headerOf({ path, mode, uid, gid }: SpecFile, size: number): Buffer {
    const header = Buffer.alloc(block);
    const [prefix, name] = split(path.replace(/^\/+/, ''));
    const octal = (value: number, length: number): string => value.toString(8).padStart(length - 1, '0');
    header.write(name, 0);
    header.write(octal(mode, 8), 100);
    header.write(octal(uid, 8), 108);
    header.write(octal(gid, 8), 116);
    header.write(octal(size, 12), 124);
    header.write(octal(Math.floor(Date.now() / 1_000), 12), 136);
    header.write('        ', 148);
    header.write('0', 156);
    header.write('ustar\x0000', 257);
    header.write(prefix, 345);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return header;
}

/** A long path is split at a slash: the name has at most 100 bytes, what stands before it at most 155. */
function split(path: string): readonly [string, string] {
    if (Buffer.byteLength(path) <= 100) {
        return ['', path];
    }
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
        const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
        if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) {
            return [prefix, name];
        }
    }
    throw new RangeError(`The path ${path} is too long for an archive`);
}
