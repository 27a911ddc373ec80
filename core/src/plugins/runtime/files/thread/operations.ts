/**
 * Work on many small files with calls that block, for the thread of `worker.ts`. As in `granted-root.ts`, every step of a path is opened
 * below the descriptor of the step before, with O_NOFOLLOW, and the kernel says where an open folder is before anything in it is touched.
 */
import {
    closeSync,
    constants,
    fchmodSync,
    fchownSync,
    fstatSync,
    openSync,
    readdirSync,
    readlinkSync,
    readSync,
    unlinkSync,
    writeSync
} from 'node:fs';

import type { FileEntry, FileName } from '@portico/sdk';

import { nameOf, pathOf, within } from '../file-name.ts';
import { entryOf, typeOf } from './entry.ts';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const bytesAtOnce = 256 * 1024;

/** A root that the panel opened, and what may be entered below it. */
export interface HeldRoot {
    readonly fd: number;
    /** Real paths of the folders that need no grant, and of those that no grant opens. */
    readonly own: readonly string[];
    readonly forbidden: readonly string[];
}

/** A folder by its steps below the root, and the name of an entry in it. */
interface Place {
    readonly folder: readonly string[];
    readonly name: string;
}

/** One piece of work. Nothing takes longer than `most` bytes allow. */
export type Operation =
    | { readonly kind: 'names'; readonly folder: readonly string[]; readonly most: number }
    | ({ readonly kind: 'read'; readonly most: number } & Place)
    | {
          readonly kind: 'copy';
          readonly most: number;
          readonly from: Place;
          readonly to: Place;
          readonly owner: { readonly uid: number; readonly gid: number } | null;
      };

/** What the operations of each kind give. The bytes of a read lie in the reply. */
export interface Outcomes {
    readonly names: { readonly names: readonly FileName[] };
    readonly read: { readonly entry: FileEntry; readonly start: number; readonly end: number };
    readonly copy: { readonly entry: FileEntry; readonly copied: boolean };
}

/** What became of an operation; a failure is the code of a system error. */
export type Outcome = Outcomes[keyof Outcomes] | { readonly failed: string };

/** Operations that are done one after the other, and the roots that they work in. */
export interface Request {
    readonly root: HeldRoot;
    /** Where copies come from; null without copies. */
    readonly source: HeldRoot | null;
    readonly operations: readonly Operation[];
}

/** What became of each operation, and the bytes that were read. */
export interface Reply {
    readonly outcomes: readonly Outcome[];
    readonly bytes: ArrayBuffer;
}

/** Does all operations of a request. What fails for one of them does not touch the others. */
export function perform({ root, source, operations }: Request): Reply {
    using folders = new OpenFolder(root);
    using sources = new OpenFolder(source ?? root);
    const read = new ReadBytes();
    const outcomes = operations.map((operation): Outcome => {
        try {
            switch (operation.kind) {
                case 'names':
                    return { names: namesIn(folders.at(operation.folder)) };
                case 'read':
                    return readFile(folders, operation, operation.most, read);
                default:
                    return copyFile(sources, folders, operation);
            }
        } catch (error) {
            return { failed: (error as NodeJS.ErrnoException).code ?? String(error) };
        }
    });
    return { outcomes, bytes: read.take() };
}

/** The folder that was used last, so that files of one folder share the way to it. */
class OpenFolder implements Disposable {
    readonly #root: HeldRoot;
    #path: string | null = null;
    #fd = -1;

    constructor(root: HeldRoot) {
        this.#root = root;
    }

    /** The path of a folder by its descriptor; good until the next call. @throws a system error */
    at(steps: readonly string[]): string {
        const path = steps.join('/');
        if (this.#path !== path) {
            this[Symbol.dispose]();
            this.#fd = this.#open(steps);
            this.#path = path;
        }
        return `/proc/self/fd/${this.#fd}`;
    }

    [Symbol.dispose](): void {
        if (this.#path !== null) {
            this.#path = null;
            closeSync(this.#fd);
        }
    }

    #open(steps: readonly string[]): number {
        let fd = openSync(`/proc/self/fd/${this.#root.fd}`, O_RDONLY | O_DIRECTORY);
        try {
            for (const step of steps) {
                const next = openSync(
                    pathOf(`/proc/self/fd/${fd}`, step),
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW
                );
                closeSync(fd);
                fd = next;
                this.#refuse(fd);
            }
            return fd;
        } catch (error) {
            closeSync(fd);
            throw error;
        }
    }

    /** Refuses an open folder that no grant opens, as `GrantedRoot.refuse` does. */
    #refuse(fd: number): void {
        const { own, forbidden } = this.#root;
        const real = readlinkSync(`/proc/self/fd/${fd}`);
        if (!own.some((each) => within(real, each)) && forbidden.some((each) => within(real, each))) {
            throw Object.assign(new Error('No grant opens this folder'), { code: 'ENOENT' });
        }
    }
}

/** The bytes of all files of a request, one after the other. */
class ReadBytes {
    #buffer = Buffer.alloc(0);
    #used = 0;

    /** Reads from the beginning of a file. Gives where its bytes lie. */
    add(fd: number, bytes: number): { readonly start: number; readonly end: number } {
        this.#reserve(bytes);
        const start = this.#used;
        while (this.#used - start < bytes) {
            const at = this.#used - start;
            const count = readSync(fd, this.#buffer, this.#used, bytes - at, at);
            if (count === 0) {
                break;
            }
            this.#used += count;
        }
        return { start, end: this.#used };
    }

    take(): ArrayBuffer {
        return this.#buffer.buffer.slice(this.#buffer.byteOffset, this.#buffer.byteOffset + this.#used);
    }

    #reserve(bytes: number): void {
        const wanted = this.#used + bytes;
        if (wanted > this.#buffer.byteLength) {
            const larger = Buffer.allocUnsafeSlow(Math.max(wanted, 2 * this.#buffer.byteLength, bytesAtOnce));
            this.#buffer.copy(larger, 0, 0, this.#used);
            this.#buffer = larger;
        }
    }
}

function namesIn(at: string): FileName[] {
    return readdirSync(at, { withFileTypes: true, encoding: 'buffer' }).map((each) => ({
        name: nameOf(each.name),
        type: typeOf(each)
    }));
}

/** Opens a regular file, and runs work on it. */
function withFile<T>(folder: OpenFolder, place: Place, work: (fd: number, entry: FileEntry) => T): T {
    const fd = openSync(pathOf(folder.at(place.folder), place.name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
        const stat = fstatSync(fd, { bigint: true });
        if (!stat.isFile()) {
            throw Object.assign(new Error('This is no file'), { code: 'ENOENT' });
        }
        return work(fd, entryOf(place.name, stat));
    } finally {
        closeSync(fd);
    }
}

function readFile(folder: OpenFolder, place: Place, most: number, read: ReadBytes): Outcome {
    return withFile(folder, place, (fd, entry) => ({ entry, ...read.add(fd, Math.min(most, entry.size)) }));
}

function copyFile(
    source: OpenFolder,
    target: OpenFolder,
    { from, to, most, owner }: Extract<Operation, { kind: 'copy' }>
): Outcome {
    return withFile(source, from, (fd, entry) => {
        if (entry.size > most) {
            return { entry, copied: false };
        }
        const path = pathOf(target.at(to.folder), to.name);
        const copy = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
        try {
            copyBytes(fd, copy, entry.size);
            if (owner !== null) {
                giveTo(copy, owner);
            }
            fchmodSync(copy, entry.mode & 0o777);
        } catch (error) {
            unlinkSync(path);
            throw error;
        } finally {
            closeSync(copy);
        }
        return { entry, copied: true };
    });
}

const buffer = Buffer.allocUnsafeSlow(bytesAtOnce);

function copyBytes(from: number, to: number, size: number): void {
    for (let at = 0; at < size;) {
        const count = readSync(from, buffer, 0, Math.min(bytesAtOnce, size - at), at);
        if (count === 0) {
            return;
        }
        for (let done = 0; done < count;) {
            done += writeSync(to, buffer, done, count - done, at + done);
        }
        at += count;
    }
}

/** Where the panel may not give files away, the file stays its own. */
function giveTo(fd: number, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
    try {
        fchownSync(fd, uid, gid);
    } catch (error) {
        if (process.geteuid?.() === 0) {
            throw error;
        }
    }
}
