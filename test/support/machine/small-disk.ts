/** A real file system of a few megabytes, which a test can fill to the last page. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Why no small disk can be mounted here; undefined where one can. */
export const noSmallDisk = process.getuid?.() === 0 ? undefined : 'only root can mount a file system';

export interface SmallDisk {
    /** Where it is mounted. */
    readonly folder: string;
    /** Uses all of the space that is left. */
    fill(): void;
    /** Frees the space again. */
    free(): void;
    /** Sets how many files and folders the disk can hold. */
    takeFiles(files: number): void;
    close(): void;
}

const pageBytes = 4_096;

/** Mounts a file system in memory on a folder. @param files - how many files and folders it can hold */
export function mountSmallDisk(folder: string, bytes: number, files = 10_000): SmallDisk {
    mkdirSync(folder, { recursive: true });
    const options = `size=${bytes},nr_inodes=${files},mode=0755`;
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
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
        takeFiles: (more) => void execFileSync('mount', ['-o', `remount,nr_inodes=${more}`, folder]),
        close: () => void execFileSync('umount', ['--lazy', folder])
    };
}
