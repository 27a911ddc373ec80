/** The machine as this plugin reads it: small files of the kernel, the space of file systems, two clocks. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';

/** Space of one file system, bytes and inodes. `available` is what is left for those who are not root. */
export interface Space {
    readonly total: number;
    readonly free: number;
    readonly available: number;
    readonly inodes: number;
    readonly inodesFree: number;
}

/** A port: tests read folders with copies of `/proc`, and turn the clocks. */
export interface Machine {
    /** What a file of the kernel says; null where it is not there, or may not be read. The kernel answers from memory, so this does not wait. */
    read(path: string): string | null;
    /** What a file on a disk says; null where it is not there. */
    load(path: string): Promise<string | null>;
    /** Names in a folder; none where it is not there. */
    list(path: string): readonly string[];
    /** Names of the folders in a folder. */
    folders(path: string): readonly string[];
    /** The account that owns something; null where it is gone. */
    owner(path: string): number | null;
    /** May hang as long as the file system does. */
    space(mount: string): Promise<Space>;
    /** Milliseconds since 1970 by the clock on the wall, which may jump. */
    now(): number;
    /** Milliseconds by a clock that never jumps. */
    monotonic(): number;
    /** @throws AbortError */
    wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** This machine; `root` is where its `/proc` and `/sys` are looked for. */
export function createMachine(root = '/'): Machine {
    const at = (path: string): string => (root === '/' ? path : join(root, path));
    const orNull = <T>(work: () => T): T | null => {
        try {
            return work();
        } catch {
            return null;
        }
    };
    return {
        read: (path) => orNull(() => readFileSync(at(path), 'utf8')),
        load: (path) => readFile(at(path), 'utf8').catch(() => null),
        list: (path) => orNull(() => readdirSync(at(path))) ?? [],
        folders: (path) =>
            orNull(() =>
                readdirSync(at(path), { withFileTypes: true })
                    .filter((entry) => entry.isDirectory())
                    .map(({ name }) => name)
            ) ?? [],
        owner: (path) => orNull(() => statSync(at(path)).uid),
        async space(mount) {
            const { bsize, blocks, bfree, bavail, files, ffree } = await statfs(at(mount));
            return {
                total: blocks * bsize,
                free: bfree * bsize,
                available: bavail * bsize,
                inodes: files,
                inodesFree: ffree
            };
        },
        now: () => Date.now(),
        monotonic: () => performance.now(),
        wait: (milliseconds, signal) => wait(milliseconds, undefined, { signal, ref: false })
    };
}
