/** A real file system of a few megabytes, which a test can fill to the last page. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Why no small disk can be mounted here; undefined where one can. */
export const noSmallDisk = process.getuid?.() === 0 ? undefined : 'only root can mount a file system';

export interface SmallDisk {
    /** Where it is mounted. */
    readonly folder: string;
    /** Takes all of the space that is left. */
    fill(): void;
    /** Gives the space back. */
    free(): void;
    close(): void;
}

const pageBytes = 4_096;

/** Mounts a file system in memory on a folder. */
export function mountSmallDisk(folder: string, bytes: number): SmallDisk {
    mkdirSync(folder, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0755`, 'tmpfs', folder]);
    const filler = join(folder, 'filler');
    return {
        folder,
        fill() {
            const file = openSync(filler, 'a', 0o600);
            const page = Buffer.alloc(pageBytes);
            try {
                while (true) {
                    writeSync(file, page);
                }
            } catch (error) {
                if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') {
                    throw error;
                }
            } finally {
                closeSync(file);
            }
        },
        free: () => rmSync(filler, { force: true }),
        close: () => void execFileSync('umount', ['--lazy', folder])
    };
}
