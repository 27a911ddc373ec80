/**
 * Puts restored files in the place of those that are there. Each file is written beside its place and renamed, and what it replaces keeps a
 * second name until all is done: a failure, or a panel that is killed, leaves the old files.
 */
import { randomBytes } from 'node:crypto';

import { errors, type FileEntry, type Files } from '@portico/sdk';

import type { Ctx } from '../settings.ts';

/** What becomes of files that are there already. */
export type Conflict = 'refuse' | 'skip' | 'overwrite';

interface Placed {
    /** Relative to the root of the machine. */
    readonly path: string;
    readonly hasOld: boolean;
}

interface Tree {
    readonly path: string;
    readonly entry: FileEntry;
}

interface Journal {
    readonly id: string;
    /** Each path that may have a new or an old file beside it; the index is part of their names. */
    readonly paths: readonly string[];
}

const journalName = 'in-place.json';
const chunkBytes = 1024 * 1024;

/** Puts restored trees where the original ones are. */
export class InPlace {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /**
     * Copies a file or folder to a place of the machine; what is there and not in the copy stays.
     *
     * @param from - the folder that has the copy
     * @param path - absolute: where it belongs, and where it lies below `from`
     * @returns how many files were written
     * @throws CONFLICT 40900 when a file is there and `conflict` is `refuse`: then nothing was changed
     */
    async place(from: string, path: string, conflict: Conflict, signal: AbortSignal): Promise<number> {
        const [source, root] = [this.#ctx.files(from), this.#ctx.files('/')];
        const trees = await this.#walk(source, path.slice(1), signal);
        const present = new Map<string, FileEntry>();
        for (const { path: at, entry } of trees) {
            const found = await root.stat(at).catch(() => null);
            if (found === null) {
                continue;
            }
            present.set(at, found);
            if ((found.type === 'folder') !== (entry.type === 'folder')) {
                throw errors.conflict(`/${at}`);
            }
            if (conflict === 'refuse' && entry.type !== 'folder') {
                throw errors.conflict(`/${at}`);
            }
        }
        const wanted = trees.filter(
            ({ path: at, entry }) => entry.type === 'folder' || conflict === 'overwrite' || !present.has(at)
        );
        return this.#write(source, root, wanted, present, signal);
    }

    /** Brings back what a restore that was killed had replaced. */
    async recover(): Promise<void> {
        const own = this.#ctx.files(this.#ctx.dataDir);
        await using file = await own.open(journalName, 'r').catch(() => null);
        if (file === null) {
            return;
        }
        const { id, paths } = JSON.parse(await file.readFile('utf8')) as Journal;
        const root = this.#ctx.files('/');
        for (const [index, path] of paths.entries()) {
            await root.move(besides(path, id, index, 'old'), path, { replace: true }).catch(() => undefined);
            await root.remove(besides(path, id, index, 'new')).catch(() => undefined);
        }
        await own.remove(journalName);
    }

    async #walk(files: Files, path: string, signal: AbortSignal): Promise<readonly Tree[]> {
        signal.throwIfAborted();
        const entry = await files.stat(path);
        const below: Tree[] = [];
        for (const { name, type } of entry.type === 'folder' ? await files.list(path) : []) {
            if (type !== 'other') {
                below.push(...(await this.#walk(files, `${path}/${name}`, signal)));
            }
        }
        return [{ path, entry }, ...below];
    }

    async #write(
        source: Files,
        root: Files,
        trees: readonly Tree[],
        present: ReadonlyMap<string, FileEntry>,
        signal: AbortSignal
    ): Promise<number> {
        const id = randomBytes(6).toString('hex');
        const files = trees.filter(({ entry }) => entry.type !== 'folder');
        await this.#writeJournal({ id, paths: files.map(({ path }) => path) });
        const placed: Placed[] = [];
        const made: string[] = [];
        try {
            await makeParents(root, trees[0]?.path ?? '', made);
            for (const { path, entry } of trees.filter((each) => each.entry.type === 'folder')) {
                if (!present.has(path)) {
                    await root.createFolder(path, { mode: entry.mode });
                    made.push(path);
                    await root.chown(path, entry.uid, entry.gid);
                }
            }
            for (const [index, { path, entry }] of files.entries()) {
                signal.throwIfAborted();
                const temporary = besides(path, id, index, 'new');
                await copyEntry(source, root, path, temporary, entry);
                const hasOld = present.has(path);
                if (hasOld) {
                    const old = besides(path, id, index, 'old');
                    await root.link(old, path, 'hard').catch(() => root.move(path, old));
                }
                placed.push({ path, hasOld });
                await root.move(temporary, path, { replace: true });
            }
        } catch (error) {
            await undo(root, id, files, placed, made);
            await this.#removeJournal();
            throw error;
        }
        for (const [index, { path, hasOld }] of placed.entries()) {
            await (hasOld ? root.remove(besides(path, id, index, 'old')) : null);
        }
        await this.#removeJournal();
        return files.length;
    }

    async #writeJournal(journal: Journal): Promise<void> {
        const own = this.#ctx.files(this.#ctx.dataDir);
        await using file = await own.open(journalName, 'wx', 0o600).catch(() => {
            throw errors.inUse('another restore in place');
        });
        await file.writeFile(JSON.stringify(journal));
        await file.sync();
    }

    async #removeJournal(): Promise<void> {
        await this.#ctx.files(this.#ctx.dataDir).remove(journalName);
    }
}

/** A name in the same folder that no one else uses. */
function besides(path: string, id: string, index: number, which: 'new' | 'old'): string {
    return `${path.slice(0, path.lastIndexOf('/') + 1)}.portico-restore-${id}-${index}.${which}`;
}

async function makeParents(root: Files, path: string, made: string[]): Promise<void> {
    const steps = path.split('/').slice(0, -1);
    for (const index of steps.keys()) {
        const folder = steps.slice(0, index + 1).join('/');
        if ((await root.stat(folder).catch(() => null)) === null) {
            await root.createFolder(folder, { mode: 0o755 });
            made.push(folder);
        }
    }
}

async function undo(
    root: Files,
    id: string,
    files: readonly Tree[],
    placed: readonly Placed[],
    made: readonly string[]
): Promise<void> {
    for (const [index, { path }] of files.slice(0, placed.length + 1).entries()) {
        const hasOld = placed[index]?.hasOld;
        if (hasOld === true) {
            await root.move(besides(path, id, index, 'old'), path, { replace: true });
        } else if (hasOld === false) {
            await root.remove(path).catch(() => undefined);
        }
        await root.remove(besides(path, id, index, 'new')).catch(() => undefined);
    }
    for (const folder of made.toReversed()) {
        await root.remove(folder).catch(() => undefined);
    }
}

async function copyEntry(
    source: Files,
    root: Files,
    from: string,
    to: string,
    entry: FileEntry
): Promise<void> {
    if (entry.type === 'link') {
        await root.link(to, relativeTarget(from, await source.readLink(from)), 'symbolic');
        return;
    }
    await using input = await source.open(from, 'r');
    await using output = await root.open(to, 'wx', 0o600);
    const buffer = Buffer.allocUnsafe(chunkBytes);
    for (;;) {
        const { bytesRead } = await input.read(buffer, 0, chunkBytes);
        if (bytesRead === 0) {
            break;
        }
        await output.writeFile(buffer.subarray(0, bytesRead));
    }
    await output.utimes(entry.modifiedAt, entry.modifiedAt);
    await output.sync();
    await root.chown(to, entry.uid, entry.gid);
    await root.chmod(to, entry.mode);
}

/** A link to an absolute path as one that climbs to the root of the machine: it leads to the same place. */
function relativeTarget(path: string, target: string): string {
    return target.startsWith('/') ? `${'../'.repeat(path.split('/').length - 1)}${target.slice(1)}` : target;
}
