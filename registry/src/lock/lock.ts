/** `plugins.lock.json`: which installed version of each plugin counts, signed under a key of the data folder. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { StageFailure } from '../failure.ts';
import type { Lock, LockEntry, RegistryLog } from '../ports.ts';
import { hashTree, syncFolder, TreeError } from './tree.ts';

const lockName = 'plugins.lock.json';
const format = 1;
const keptVersions = 1;
const entryFolder = /^[a-z][a-z0-9-]{1,39}\/[^/\0]{1,200}$/;

/** The lock, with what only the registry itself does to it. */
export interface OwnLock extends Lock {
    /** A number that no folder of this data folder ever had; durable before it is answered. */
    serial(): Promise<number>;
    /** Every folder that it names. */
    folders(): readonly string[];
}

interface Content {
    readonly serial: number;
    readonly plugins: Readonly<
        Record<string, { readonly current: LockEntry; readonly kept: readonly LockEntry[] }>
    >;
}

/** @param root - the folder that the entries' folders lie in */
export async function openLock(
    dataDir: string,
    root: string,
    key: Uint8Array,
    log: RegistryLog
): Promise<OwnLock> {
    const path = join(dataDir, lockName);
    const read = await readLock(path, key);
    let content: Content = read === 'untrusted' ? { serial: 0, plugins: {} } : read;
    let trusted = read !== 'untrusted';
    let queue: Promise<unknown> = Promise.resolve();
    if (!trusted) {
        log.warn(
            { path },
            'The lock file of the plugins was changed by somebody else, or belongs to another data folder; no plugin that it names is loaded'
        );
    }
    const change = (edit: (content: Content) => Content): Promise<Content> => {
        const done = queue.then(async () => {
            const next = edit(content);
            if (!trusted) {
                // Kept for whoever wants to know what happened; what counts begins anew.
                await rename(path, `${path}.untrusted`);
            }
            await writeLock(path, next, key);
            content = next;
            trusted = true;
            return next;
        });
        queue = done.catch(() => undefined);
        return done;
    };
    return {
        get trusted() {
            return trusted;
        },
        current: () => Object.values(content.plugins).map(({ current }) => current),
        kept: (name) => content.plugins[name]?.kept ?? [],
        folders: () =>
            Object.values(content.plugins)
                .flatMap(({ current, kept }) => [current, ...kept])
                .map(({ folder }) => folder),
        async activate(entry) {
            await change(({ serial, plugins }) => {
                const before = plugins[entry.name];
                const kept = [before?.current, ...(before?.kept ?? [])]
                    .filter((each) => each !== undefined && each.folder !== entry.folder)
                    .slice(0, keptVersions) as readonly LockEntry[];
                return { serial, plugins: { ...plugins, [entry.name]: { current: plain(entry), kept } } };
            });
        },
        async drop(name) {
            if (Object.hasOwn(content.plugins, name)) {
                await change(({ serial, plugins: { [name]: _gone, ...plugins } }) => ({ serial, plugins }));
            }
        },
        verify: (entry) => verify(join(root, entry.folder), entry),
        serial: async () => (await change(({ serial, plugins }) => ({ serial: serial + 1, plugins }))).serial
    };
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

/** Only the fields of an entry: what is handed over may carry more. */
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
            return { serial: 0, plugins: {} };
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

/** Either the old file or the new one is there, whatever happens in between. */
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

/** Keys in one order, so that a file that was merely formatted anew still counts. */
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
