import {
    chmodSync,
    chownSync,
    closeSync,
    mkdirSync,
    openSync,
    readdirSync,
    renameSync,
    rmdirSync,
    rmSync,
    unlinkSync
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';

import type { EngineFolders } from '../home.ts';
import { isEntry } from './entry.ts';
import { folderOf, nameOfFolder } from './name.ts';

/** A change of one name's entry. `from` null: the name is new; `to` null: the name is removed. */
export interface TableMove {
    readonly name: string;
    readonly from: string | null;
    readonly to: string | null;
}

/** Moves in the order in which they are made. */
export type TablePatch = readonly TableMove[];

/** The number of file system calls in one turn of the event loop: together they take a few milliseconds. */
const batch = 128;

/**
 * The table on disk: one folder for each name, in it one empty file whose own name is the entry. One rename changes the behaviour of a name
 * without a reload. There must be only one writer.
 */
export class SiteTable {
    readonly #root: string;
    readonly #group: number | null;

    /** @param folders - `table` exists. Folders in it get the engine's group where the engine runs as another user */
    constructor({ table, owner }: Pick<EngineFolders, 'table' | 'owner'>) {
        this.#root = table;
        this.#group = owner.switched ? owner.gid : null;
    }

    /**
     * Makes the moves in their order. Each is one step of the file system: a reader sees the old entry or the new one, also after a crash.
     * An entry that is not as `from` says is corrected. May be repeated.
     * @throws Error from the file system, or when a name or entry is malformed; the moves before that one are made
     */
    async apply(patch: TablePatch): Promise<void> {
        for (const [index, { name, from, to }] of patch.entries()) {
            if (index > 0 && index % batch === 0) {
                await setImmediate();
            }

            this.#move(folderOf(name), checked(from), checked(to));
        }
    }

    /** What the engine sees: name to entry. */
    async read(): Promise<Map<string, string>> {
        const found = new Map<string, string>();
        for await (const { name, files } of this.#folders()) {
            const entry = files?.find(isEntry);
            if (name !== null && entry !== undefined) {
                found.set(name, entry);
            }
        }

        return found;
    }

    /** The moves that would make the table as wanted, sorted by name. A folder that is no name is told under its own name, with `to` null. */
    async compare(wanted: ReadonlyMap<string, string>): Promise<TablePatch> {
        const moves: TableMove[] = [];
        const seen = new Set<string>();
        for await (const { folder, name, files } of this.#folders()) {
            const to = name === null ? null : (wanted.get(name) ?? null);
            const from = files?.[0] ?? null;
            if (name !== null && files !== null) {
                seen.add(name);
            }

            if (name === null || files === null || files.length > 1 || from !== to) {
                moves.push({ name: name ?? folder, from, to });
            }
        }

        for (const [name, to] of wanted) {
            if (!seen.has(name)) {
                moves.push({ name, from: null, to });
            }
        }

        return moves.sort((a, b) => (a.name < b.name ? -1 : 1));
    }

    /** Makes the table as wanted. @returns the moves that were needed */
    async reconcile(wanted: ReadonlyMap<string, string>): Promise<TablePatch> {
        for (const [name, entry] of wanted) {
            folderOf(name);
            checked(entry);
        }

        for (const entry of readdirSync(this.#root, { withFileTypes: true })) {
            if (!entry.isDirectory() || nameOfFolder(entry.name) === null) {
                rmSync(join(this.#root, entry.name), { recursive: true, force: true });
            }
        }

        const moves = await this.compare(wanted);
        for (const [index, { name, to }] of moves.entries()) {
            if (index > 0 && index % batch === 0) {
                await setImmediate();
            }

            this.#enforce(folderOf(name), to);
        }

        return moves;
    }

    /** Each entry of the table's folder with its files in the engine's order; `files` is null when it is no folder. */
    async *#folders(): AsyncGenerator<{
        readonly folder: string;
        readonly name: string | null;
        readonly files: readonly string[] | null;
    }> {
        let count = 0;
        for (const entry of readdirSync(this.#root, { withFileTypes: true })) {
            count += 1;
            if (count % batch === 0) {
                await setImmediate();
            }

            yield {
                folder: entry.name,
                name: nameOfFolder(entry.name),
                files: entry.isDirectory() ? this.#list(entry.name) : null
            };
        }
    }

    #list(folder: string): readonly string[] {
        try {
            return readdirSync(join(this.#root, folder)).sort();
        } catch (error) {
            if (isCode(error, 'ENOENT')) {
                return [];
            }

            throw error;
        }
    }

    #move(folder: string, from: string | null, to: string | null): void {
        const path = join(this.#root, folder);
        try {
            if (from !== null && to !== null) {
                renameSync(join(path, from), join(path, to));
            } else if (to !== null) {
                this.#make(path);
                create(join(path, to));
            } else if (from !== null) {
                unlinkSync(join(path, from));
                rmdirSync(path);
            }
        } catch (error) {
            if (!isCode(error, 'ENOENT', 'EEXIST', 'ENOTEMPTY', 'ENOTDIR', 'EISDIR')) {
                throw error;
            }

            this.#enforce(folder, to);
        }
    }

    /** Makes `to` the only file of the folder, whatever it held. The new entry comes first, so the name is never without one. */
    #enforce(folder: string, to: string | null): void {
        const path = join(this.#root, folder);
        if (to === null) {
            rmSync(path, { recursive: true, force: true });
            return;
        }

        let files: readonly string[];
        try {
            files = readdirSync(path).sort();
        } catch (error) {
            if (!isCode(error, 'ENOENT', 'ENOTDIR')) {
                throw error;
            }

            rmSync(path, { recursive: true, force: true });
            this.#make(path);
            files = [];
        }

        const [first] = files;
        if (!files.includes(to)) {
            if (first !== undefined && isEntry(first)) {
                renameSync(join(path, first), join(path, to));
            } else {
                create(join(path, to));
            }
        }

        for (const other of files) {
            if (other !== to) {
                rmSync(join(path, other), { recursive: true, force: true });
            }
        }
    }

    #make(path: string): void {
        mkdirSync(path, { mode: 0o700 });
        if (this.#group !== null) {
            chownSync(path, -1, this.#group);
            chmodSync(path, 0o750);
        }
    }
}

/** Makes an empty file: only its name matters. */
const create = (path: string): void => closeSync(openSync(path, 'wx', 0o600));

const checked = (entry: string | null): string | null => {
    if (entry !== null && !isEntry(entry)) {
        throw new Error(`not an entry of the table: ${JSON.stringify(entry)}`);
    }

    return entry;
};

const isCode = (error: unknown, ...codes: readonly string[]): boolean =>
    codes.includes((error as NodeJS.ErrnoException).code ?? '');
