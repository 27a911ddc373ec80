/** Copies trees, also from one root to another. Links are never followed. */
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

import { errors, type FileEntry, type Files } from '@portico/sdk';

import { fail } from '../errors.ts';
import { changeFileOwner, changeFolderOwner, type Owner } from '../files/attributes/owner.ts';
import { bytesOf, writeFrom } from '../files/content/bytes.ts';
import { openFile } from '../files/content/content.ts';
import { checksumOf, hashed } from '../files/content/hashing.ts';
import { filesystem } from '../files/filesystem.ts';
import { type TreeEntry, type TreeName, untilAborted, walkNames } from '../files/tree.ts';
import { nameOf, parentOf } from '../roots/path.ts';

/** Small files that are copied together, and the bytes of one. */
const [copyTogether, smallBytes] = [64, 256 * 1024];
/** Other files that are copied at the same time. */
const atOnce = 8;

/** A path with the files that it lies in. */
interface End {
    readonly files: Files;
    readonly path: string;
}

/** Where a copy comes from. */
export interface Source extends End {
    /** Absolute path of the root. */
    readonly folder: string;
}

/** How a tree is copied. */
export interface CopyOptions {
    /** Owner of all copies. */
    readonly owner: Owner;
    readonly signal: AbortSignal;
    /**
     * The source is removed afterwards. So each copy is made durable, read again and compared, links are made again, and what cannot be
     * copied ends the work.
     */
    readonly moves: boolean;
    /** Called after each entry. */
    step(found: TreeEntry): void;
}

/** What a copy or a move of a tree did. */
export interface Copied {
    /** Links and special files that were left out. */
    readonly skipped: number;
    /** Of a move: everything that was copied, parents first. */
    readonly entries: readonly TreeEntry[];
}

/**
 * Copies a file or a folder to a free name.
 *
 * @throws NOT_FOUND 40400, CHECKSUM_MISMATCH 42253; of a move also LINK_OUTSIDE 40956, WRONG_TYPE 40950
 */
export async function copyTree(from: Source, to: End, options: CopyOptions): Promise<Copied> {
    const top = await filesystem(() => from.files.stat(from.path));
    const copy = new TreeCopy(from, to, options);
    await copy.add({ path: from.path, entry: top });
    if (top.type === 'folder') {
        for await (const found of walkNames(from.files, from.path, options.signal)) {
            await copy.add(found);
        }
    }
    await copy.finishFiles();
    await copy.finishFolders();
    return copy.result;
}

class TreeCopy {
    readonly #from: Source;
    readonly #to: End;
    readonly #options: CopyOptions;
    readonly #folders: { readonly path: string; readonly mode: number }[] = [];
    readonly #entries: TreeEntry[] = [];
    /** Files that wait for others to be copied with. */
    #waiting: string[] = [];
    #skipped = 0;

    constructor(from: Source, to: End, options: CopyOptions) {
        this.#from = from;
        this.#to = to;
        this.#options = options;
    }

    get result(): Copied {
        return { skipped: this.#skipped, entries: this.#entries };
    }

    /** Copies an entry; a file waits until there are some to copy together. */
    async add({ path, entry: { type } }: TreeName): Promise<void> {
        if (type === 'file') {
            this.#waiting.push(path);
            if (this.#waiting.length === copyTogether) {
                await this.finishFiles();
            }
        } else if (type === 'folder') {
            await this.#addFolder(path);
        } else if (!this.#options.moves) {
            this.#skipped += 1;
        } else if (type === 'link') {
            await this.#addLink(path);
        } else {
            throw fail.WRONG_TYPE({ path, type, wanted: 'file, folder or link' });
        }
    }

    /** Copies the files that wait. None is under way any more when it rejects. */
    async finishFiles(): Promise<void> {
        const files = this.#waiting;
        this.#waiting = [];
        const others = this.#options.moves ? files : await this.#copySmall(files);
        for (let at = 0; at < others.length; at += atOnce) {
            await waitForAll(others.slice(at, at + atOnce).map((path) => this.#addFile(path)));
        }
    }

    /** Copies small files together. Resolves with the others. */
    async #copySmall(files: readonly string[]): Promise<readonly string[]> {
        const { owner, signal, step } = this.#options;
        const root = this.#from.folder;
        signal.throwIfAborted();
        const others: string[] = [];
        await waitForAll(
            files.map(async (path) => {
                const { entry, copied } = await filesystem(() =>
                    this.#to.files.copyFile(this.#target(path), { root, path }, { most: smallBytes, owner })
                );
                if (copied) {
                    step({ path, entry });
                } else {
                    others.push(path);
                }
            })
        );
        return others;
    }

    async #addFile(path: string): Promise<void> {
        const { owner, signal, moves } = this.#options;
        const source = { files: this.#from.files, path };
        const target = { files: this.#to.files, path: this.#target(path) };
        this.#keep({ path, entry: await copyFile(source, target, { owner, signal, moves }) });
    }

    async #addFolder(path: string): Promise<void> {
        const entry = await filesystem(() => this.#from.files.stat(path));
        if (entry.type !== 'folder') {
            throw errors.notFound();
        }
        const target = this.#target(path);
        await filesystem(() => this.#to.files.createFolder(target, { mode: 0o700 }));
        this.#folders.push({ path: target, mode: entry.mode & 0o1777 });
        this.#keep({ path, entry });
    }

    #keep(found: TreeEntry): void {
        if (this.#options.moves) {
            this.#entries.push(found);
        }
        this.#options.step(found);
    }

    /** Last, because a read-only folder could not be filled. */
    async finishFolders(): Promise<void> {
        const { files } = this.#to;
        for (const { path, mode } of this.#folders.reverse()) {
            await filesystem(async () => {
                await changeFolderOwner(files, path, this.#options.owner);
                await files.chmod(path, mode);
            });
        }
    }

    /** Makes a link again that leads to something within the tree. @throws LINK_OUTSIDE 40956 for every other one */
    async #addLink(path: string): Promise<void> {
        const entry = await filesystem(() => this.#from.files.stat(path));
        const text = await filesystem(() => this.#from.files.readLink(path));
        const inner = path === this.#from.path ? '' : path.slice(this.#from.path.length + 1);
        if (inner === '' || !staysWithin(parentOf(inner), text)) {
            throw fail.LINK_OUTSIDE({ target: text, path });
        }
        await filesystem(() => this.#to.files.link(this.#target(path), text, 'symbolic'));
        this.#keep({ path, entry });
    }

    #target(path: string): string {
        return `${this.#to.path}${path.slice(this.#from.path.length)}`;
    }
}

/** Tells whether the text of a link, read from a folder, names something below the top that the folder lies in. */
function staysWithin(folder: string, text: string): boolean {
    if (text.startsWith('/') || text.includes('\0')) {
        return false;
    }
    let depth = folder === '' ? 0 : folder.split('/').length;
    for (const segment of text.split('/').filter((each) => each !== '' && each !== '.')) {
        depth += segment === '..' ? -1 : 1;
        if (depth < 0) {
            return false;
        }
    }
    return true;
}

/** Waits for all of it, then throws the first failure. */
async function waitForAll(work: readonly Promise<void>[]): Promise<void> {
    const failed = (await Promise.allSettled(work)).find(({ status }) => status === 'rejected');
    if (failed !== undefined) {
        throw (failed as PromiseRejectedResult).reason;
    }
}

interface FileCopyOptions {
    readonly owner: Owner;
    readonly signal: AbortSignal;
    readonly moves: boolean;
}

/** Copies one file, and resolves with the entry whose bytes were copied. */
async function copyFile(from: End, to: End, { owner, signal, moves }: FileCopyOptions): Promise<FileEntry> {
    await using closing = new AsyncDisposableStack();
    const { handle: source, entry } = await openFile(from.files, from.path);
    closing.defer(() => source.close());
    await filesystem(async () => {
        const target = closing.adopt(await to.files.open(to.path, 'wx', 0o600), (one) => one.close());
        const chunks = untilAborted(bytesOf(source, 0, entry.size), signal);
        if (moves) {
            const hash = createHash('sha256');
            await writeFrom(target, hashed(chunks, hash));
            await target.sync();
            await compare(to, entry.size, hash, signal);
        } else {
            await writeFrom(target, chunks);
        }
        await changeFileOwner(target, owner);
        await target.chmod(entry.mode & 0o777);
    });
    return entry;
}

/** Reads a copy again. @throws CHECKSUM_MISMATCH 42253 */
async function compare({ files, path }: End, size: number, hash: Hash, signal: AbortSignal): Promise<void> {
    const handle: FileHandle = await files.open(path, 'r');
    try {
        const sum = await checksumOf(handle, 'sha256', signal);
        if ((await handle.stat()).size !== size || sum !== hash.digest('hex')) {
            throw fail.CHECKSUM_MISMATCH({ path: nameOf(path) });
        }
    } finally {
        await handle.close();
    }
}
