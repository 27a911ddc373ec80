/** The files of an installed version as one hash: what was installed is what is loaded. */
import { createHash } from 'node:crypto';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const atOnce = 16;
const chunkBytes = 256 * 1024;

/** An entry that an installed version cannot have. */
export class TreeError extends Error {
    override readonly name = 'TreeError';
}

/**
 * Hashes the path, the content and the executable bit of every file below a folder; folders without files do not count.
 *
 * @param sync - also brings every file and folder to the disk
 * @throws TreeError when something other than a file or folder lies there
 */
export async function hashTree(
    folder: string,
    { sync = false }: { readonly sync?: boolean } = {}
): Promise<string> {
    const { files, folders } = await walk(folder);
    const lines: string[] = new Array<string>(files.length);
    const queue = files.entries();
    await Promise.all(
        Array.from({ length: atOnce }, async () => {
            for (const [index, path] of queue) {
                lines[index] = `${JSON.stringify(path)} ${await hashFile(join(folder, path), sync)}\n`;
            }
        })
    );
    if (sync) {
        for (const path of folders) {
            await syncFolder(join(folder, path));
        }
    }
    const hash = createHash('sha512');
    lines.forEach((line) => hash.update(line));
    return `sha512-${hash.digest('base64')}`;
}

/** Brings a folder's list of names to the disk. */
export async function syncFolder(path: string): Promise<void> {
    const handle = await open(path, 'r');
    try {
        await handle.sync();
    } finally {
        await handle.close();
    }
}

/** All files and folders below it, relative, in the order of their bytes; the deepest folders first. */
async function walk(
    folder: string
): Promise<{ readonly files: readonly string[]; readonly folders: readonly string[] }> {
    const files: string[] = [];
    const folders: string[] = [''];
    for (let index = 0; index < folders.length; index += 1) {
        const path = folders[index] ?? '';
        for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
            const child = path === '' ? entry.name : `${path}/${entry.name}`;
            if (entry.isDirectory()) {
                folders.push(child);
            } else if (entry.isFile()) {
                files.push(child);
            } else {
                throw new TreeError(`${child} is neither a file nor a folder`);
            }
        }
    }
    return { files: files.sort(byBytes), folders: folders.reverse() };
}

async function hashFile(path: string, sync: boolean): Promise<string> {
    const handle = await open(path, 'r');
    try {
        const hash = createHash('sha512');
        const { mode } = await handle.stat();
        for await (const chunk of handle.createReadStream({ autoClose: false, highWaterMark: chunkBytes })) {
            hash.update(chunk as Buffer);
        }
        if (sync) {
            await handle.sync();
        }
        return `${(mode & 0o100) === 0 ? '-' : 'x'} ${hash.digest('base64')}`;
    } finally {
        await handle.close();
    }
}

function byBytes(one: string, two: string): number {
    return Buffer.compare(Buffer.from(one), Buffer.from(two));
}
