/** What tests of the container extension make by hand. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A tar archive of files, by their paths. */
export function archiveOf(files: Readonly<Record<string, string>>, compress = false): Buffer {
    const folder = mkdtempSync(join(tmpdir(), 'pct-'));
    for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), text);
    }
    const tar = execFileSync('tar', ['-C', folder, compress ? '-czf' : '-cf', '-', '.'], {
        maxBuffer: 1 << 28
    });
    rmSync(folder, { recursive: true });
    return tar;
}

/** The text of a file in a tar archive. */
export function fileIn(archive: Uint8Array, path: string): string {
    // One engine writes `./a`, the other `a`.
    const found = execFileSync('tar', ['-tf', '-'], { input: archive, encoding: 'utf8' })
        .split('\n')
        .find((name) => name.replace(/^\.\//, '') === path);
    return execFileSync('tar', ['-xOf', '-', found ?? path], { input: archive, encoding: 'utf8' });
}

/** The code of the failure that a promise ends with; undefined when it succeeds. */
export async function codeOf(work: Promise<unknown>): Promise<number | undefined> {
    try {
        await work;
        return undefined;
    } catch (error) {
        return (error as { code: number }).code;
    }
}
