/** `plugins.lock.json`: which installed version of each plugin counts, signed under a key of the data folder. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { Mutex } from '@portico/sdk';

import type { StageFailure } from '../failure.ts';
import type { Lock, LockEntry, RegistryLog } from '../ports.ts';
import { hashTree, syncFolder, TreeError } from './tree.ts';

/** Name of the file in the data folder. */
export const lockName = 'plugins.lock.json';
/** Name of the folder with the installed packages in the data folder. */
export const pluginsFolder = 'plugins';
const format = 1;
const keptVersions = 1;
const entryFolder = /^[a-z][a-z0-9-]{1,39}\/[^/\0]{1,200}$/;

interface Content {
    readonly serial: number;
    readonly plugins: Readonly<
        Record<string, { readonly current: LockEntry; readonly kept: readonly LockEntry[] }>
    >;
}

const empty: Content = { serial: 0, plugins: {} };

/** The file, its content in memory, and the changes that only the registry itself makes. */
export class LockFile implements Lock {
    readonly #path: string;
    readonly #root: string;
    readonly #key: Uint8Array;
    readonly #mutex = new Mutex();
    #content: Content;
    #trusted: boolean;

    private constructor(path: string, root: string, key: Uint8Array, read: Content | 'untrusted') {
        this.#path = path;
        this.#root = root;
        this.#key = key;
        this.#content = read === 'untrusted' ? empty : read;
        this.#trusted = read !== 'untrusted';
    }

    /**
     * Reads the file; a missing one counts as empty.
     *
     * @param root - the folder that holds the entries' folders
     */
    static async open(dataDir: string, root: string, key: Uint8Array, log: RegistryLog): Promise<LockFile> {
        const path = join(dataDir, lockName);
        const lock = new LockFile(path, root, key, await readLock(path, key));
        if (!lock.trusted) {
            log.warn(
                { path },
                'Another program changed the lock file of the plugins, or it belongs to another data folder; no plugin that it names is loaded'
            );
        }
        return lock;
    }

    get trusted(): boolean {
        return this.#trusted;
    }

    current(): readonly LockEntry[] {
        return Object.values(this.#content.plugins).map(({ current }) => current);
    }

    kept(name: string): readonly LockEntry[] {
        return this.#content.plugins[name]?.kept ?? [];
    }

    /** Every folder that the lock names. */
    folders(): readonly string[] {
        return Object.values(this.#content.plugins)
            .flatMap(({ current, kept }) => [current, ...kept])
            .map(({ folder }) => folder);
    }

    async activate(entry: LockEntry): Promise<void> {
        await this.#change(({ serial, plugins }) => {
            const before = plugins[entry.name];
            const kept = [before?.current, ...(before?.kept ?? [])]
                .filter((each) => each !== undefined)
                .filter((each) => each.folder !== entry.folder)
                .slice(0, keptVersions);
            return { serial, plugins: { ...plugins, [entry.name]: { current: plain(entry), kept } } };
        });
    }

    async drop(name: string): Promise<void> {
        if (Object.hasOwn(this.#content.plugins, name)) {
            await this.#change(({ serial, plugins: { [name]: _gone, ...plugins } }) => ({ serial, plugins }));
        }
    }

    verify(entry: LockEntry): Promise<StageFailure | null> {
        return verify(join(this.#root, entry.folder), entry);
    }

    /** A number that no folder of this data folder ever had; it is durable before it is answered. */
    async serial(): Promise<number> {
        return (await this.#change(({ serial, plugins }) => ({ serial: serial + 1, plugins }))).serial;
    }

    #change(edit: (content: Content) => Content): Promise<Content> {
        return this.#mutex.run(async () => {
            const next = edit(this.#content);
            if (!this.#trusted) {
                // An admin may want to know what happened, so the file is kept under another name.
                await rename(this.#path, `${this.#path}.untrusted`);
            }
            await writeLock(this.#path, next, this.#key);
            this.#content = next;
            this.#trusted = true;
            return next;
        });
    }
}

/** What is wrong with the installed plugins of a data folder, a sentence for each; changes nothing. */
export async function checkInstalled(dataDir: string, key: Uint8Array): Promise<readonly string[]> {
    const content = await readLock(join(dataDir, lockName), key);
    if (content === 'untrusted') {
        return [`${lockName} was changed by another program, or belongs to another data folder`];
    }
    const found = await Promise.all(
        Object.values(content.plugins).map(({ current }) =>
            verify(join(dataDir, pluginsFolder, current.folder), current)
        )
    );
    return found.flatMap((failure) => failure?.message ?? []);
}

async function verify(folder: string, entry: LockEntry): Promise<StageFailure | null> {
    const label = `${entry.package} ${entry.version}`;
    try {
        return (await hashTree(folder)) === entry.tree
            ? null
            : {
                  stage: 'discovered',
                  code: 'TREE_CHANGED',
                  message: `The files of ${label} are not those that were installed`
              };
    } catch (error) {
        if (error instanceof TreeError) {
            return {
                stage: 'discovered',
                code: 'TREE_CHANGED',
                message: `The files of ${label} are not those that were installed: ${error.message}`
            };
        }
        return (error as NodeJS.ErrnoException).code === 'ENOENT'
            ? {
                  stage: 'discovered',
                  code: 'TREE_MISSING',
                  message: `The folder of ${label} is gone; install it again`
              }
            : {
                  stage: 'discovered',
                  code: 'TREE_CHANGED',
                  message: `The files of ${label} cannot be read: ${(error as Error).message}`
              };
    }
}

/** Only the fields of an entry: the given object may have more. */
function plain({
    name,
    package: npmName,
    version,
    integrity,
    tree,
    folder,
    signature,
    installedAt
}: LockEntry): LockEntry {
    return { name, package: npmName, version, integrity, tree, folder, signature, installedAt };
}

async function readLock(path: string, key: Uint8Array): Promise<Content | 'untrusted'> {
    let text: string;
    try {
        text = await readFile(path, 'utf8');
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
            return empty;
        }
        throw error;
    }
    try {
        const { hmac, ...body } = JSON.parse(text) as Content & { format: number; hmac: string };
        const [wanted, given] = [sign(body, key), Buffer.from(String(hmac), 'base64')];
        if (given.length !== wanted.length || !timingSafeEqual(given, wanted) || body.format !== format) {
            return 'untrusted';
        }
        const folders = Object.values(body.plugins)
            .flatMap(({ current, kept }) => [current, ...kept])
            .map(({ folder }) => folder);
        return folders.every((folder) => entryFolder.test(folder) && !folder.includes('..'))
            ? { serial: body.serial, plugins: body.plugins }
            : 'untrusted';
    } catch {
        return 'untrusted';
    }
}

/** Replaces the file in one step: a crash leaves either the old file or the new one. */
async function writeLock(path: string, content: Content, key: Uint8Array): Promise<void> {
    const body = { format, ...content };
    const next = `${path}.next`;
    const file = await open(next, 'w', 0o600);
    try {
        await file.writeFile(
            `${JSON.stringify({ ...body, hmac: sign(body, key).toString('base64') }, null, 2)}\n`
        );
        await file.sync();
    } finally {
        await file.close();
    }
    await rename(next, path);
    await syncFolder(dirname(path));
}

function sign(body: object, key: Uint8Array): Buffer {
    return createHmac('sha256', key)
        .update('portico plugins.lock.json\n')
        .update(JSON.stringify(sorted(body)))
        .digest();
}

/** Sorts the keys, so that a file that was only formatted again keeps its signature. */
function sorted(value: unknown): unknown {
    if (Array.isArray(value)) {
        return value.map(sorted);
    }
    if (typeof value === 'object' && value !== null) {
        return Object.fromEntries(
            Object.entries(value)
                .sort(([one], [two]) => (one < two ? -1 : 1))
                .map(([key, inner]) => [key, sorted(inner)])
        );
    }
    return value;
}
