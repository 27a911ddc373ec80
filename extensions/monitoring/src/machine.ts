/** The machine as this plugin reads it: files of the kernel, the space of file systems, and two clocks. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';

/** Space of one file system, in bytes and inodes. `available` is the space that is left for users other than root. */
export interface Space {
    readonly total: number;
    readonly free: number;
    readonly available: number;
    readonly inodes: number;
    readonly inodesFree: number;
}

/** A port: tests use folders with copies of `/proc`, and set the clocks. */
export interface Machine {
    /** Reads a file of the kernel; null where it does not exist or may not be read. Synchronous, since the kernel answers from memory. */
    read(path: string): string | null;
    /** Reads a file on a disk; null where it does not exist. */
    load(path: string): Promise<string | null>;
    /** Lists the names in a folder; none where it does not exist. */
    list(path: string): readonly string[];
    /** Lists the names of the folders in a folder. */
    folders(path: string): readonly string[];
    /** Where a link of the kernel points to, as text; null where it does not exist or may not be read. */
    link(path: string): string | null;
    /** The number of the account that owns a file; null where it does not exist. */
    owner(path: string): number | null;
    /** Asks a file system for its space. Does not answer as long as the file system hangs. */
    space(mount: string): Promise<Space>;
    /** Milliseconds since 1970, by a clock that may be set. */
    now(): number;
    /** Milliseconds by a clock that never jumps. */
    monotonic(): number;
    /** Waits. @throws AbortError */
    wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** Creates the port to this machine; `root` is the folder that its `/proc` and `/sys` lie in. */
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
        link: (path) => orNull(() => readlinkSync(at(path))),
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
