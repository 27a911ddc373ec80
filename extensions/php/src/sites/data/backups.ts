/** Sites in backups: one item for each, which is its folder. What the site is made of lies sealed in it, so that it can be made again. */
import { dirname, relative } from 'node:path/posix';

import type { BackupEntry, BackupItem, FileEntry, Files } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import type { Site } from '../site.ts';
import { documentOf, readDocument, restoreSite } from './document.ts';

const documentPath = 'private/portico-site.sealed';
const mostDocumentBytes = 1_048_576;
const copyBytes = 1_048_576;
/** What is made anew all the time. */
const passing = ['private/tmp', 'private/uploads'];

/** The folder of a site, absolute, and the files in it. */
interface Target {
    readonly folder: string;
    readonly files: Files;
}

/** Gives sites to backups, and takes them back. */
export class SiteBackups {
    readonly #ctx: Ctx;
    readonly #services: Services;

    constructor(ctx: Ctx, services: Services) {
        this.#ctx = ctx;
        this.#services = services;
    }

    /** What could be given. */
    async list(): Promise<BackupEntry[]> {
        return (await this.#ready()).map(entryOf);
    }

    /** Gives the sites with these names, or all. */
    async collect(only: readonly string[] | undefined): Promise<BackupItem[]> {
        const items: BackupItem[] = [];
        for (const site of await this.#ready()) {
            if (only === undefined || only.includes(site.name)) {
                const document = JSON.stringify(await documentOf(this.#services, site));
                await write(
                    this.#ctx.files(site.folder),
                    documentPath,
                    Buffer.from(await this.#ctx.secrets.seal(document)),
                    0o600
                );
                items.push({ ...entryOf(site), path: site.folder });
            }
        }
        return items;
    }

    /** Takes back one site: makes it again where it is gone, and writes its files over those that are there. */
    async restore(folder: string, { name, path }: BackupItem, signal: AbortSignal): Promise<void> {
        const inner = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
        const source = this.#ctx.files(`${folder}/${inner}`);
        const site = await this.#siteOf(source, name, signal);
        const target = { files: this.#ctx.files(site.folder), folder: site.folder };
        await this.#copy(source, target, '', signal);
        await this.#services.owners.repair(site, signal, (line) => this.#ctx.log.warn(line, { site: name }));
    }

    async #siteOf(source: Files, name: string, signal: AbortSignal): Promise<Site> {
        const sealed = await readText(source, documentPath);
        const document = readDocument(JSON.parse(await this.#ctx.secrets.open(sealed)));
        if (document.name !== name) {
            throw new TypeError(`The item ${name} holds the site ${document.name}`);
        }
        return restoreSite(this.#services, document, signal);
    }

    async #copy(source: Files, target: Target, path: string, signal: AbortSignal): Promise<void> {
        for (const entry of await source.list(path)) {
            signal.throwIfAborted();
            const at = path === '' ? entry.name : `${path}/${entry.name}`;
            if (!passing.includes(at) && at !== documentPath) {
                await this.#copyEntry(source, target, at, entry, signal);
            }
        }
    }

    async #copyEntry(
        source: Files,
        target: Target,
        at: string,
        entry: FileEntry,
        signal: AbortSignal
    ): Promise<void> {
        const { files, folder } = target;
        const there = await files.stat(at).catch(() => null);
        if (entry.type === 'folder') {
            if (there !== null && there.type !== 'folder') {
                await files.remove(at);
            }
            if (there?.type !== 'folder') {
                await files.createFolder(at, { mode: 0o700 });
            }
            await this.#copy(source, target, at, signal);
            await files.chmod(at, entry.mode);
        } else if (entry.type === 'file') {
            if (there !== null) {
                await files.remove(at, { recursive: true });
            }
            await copyFile(source, files, at, entry.mode);
        } else if (entry.type === 'link') {
            const to = linkWithin(folder, at, await source.readLink(at));
            if (there === null && to !== null) {
                await files.link(at, to, 'symbolic');
            }
        }
    }

    async #ready(): Promise<readonly Site[]> {
        return (await this.#services.store.all()).filter(({ phase }) => phase === 'ready');
    }
}

function entryOf({ name, domain }: Site): BackupEntry {
    return { name, title: `${name} (${domain})` };
}

/** Where a link leads: as it is, or from its own place where it named the folder of the site, as Laravel's to its uploads does. Null for other absolute ones. */
function linkWithin(folder: string, at: string, to: string): string | null {
    return to.startsWith(`${folder}/`)
        ? relative(dirname(`${folder}/${at}`), to)
        : to.startsWith('/')
          ? null
          : to;
}

async function readText(files: Files, path: string): Promise<string> {
    const handle = await files.open(path);
    try {
        const { size } = await handle.stat();
        if (size > mostDocumentBytes) {
            throw new RangeError('The description of the site is too large');
        }
        return await handle.readFile('utf8');
    } finally {
        await handle.close();
    }
}

async function write(files: Files, path: string, bytes: Uint8Array, mode: number): Promise<void> {
    await files.remove(path, { recursive: true }).catch(() => undefined);
    const handle = await files.open(path, 'wx', mode);
    try {
        await handle.writeFile(bytes);
    } finally {
        await handle.close();
    }
}

async function copyFile(source: Files, target: Files, path: string, mode: number): Promise<void> {
    const [from, to] = [await source.open(path), await target.open(path, 'wx', 0o600)];
    try {
        const buffer = Buffer.alloc(copyBytes);
        for (;;) {
            const { bytesRead } = await from.read(buffer, 0, copyBytes);
            if (bytesRead === 0) {
                break;
            }
            await to.writeFile(buffer.subarray(0, bytesRead));
        }
        // Never with the rights of its owner for others.
        await to.chmod(mode & 0o777);
    } finally {
        await from.close();
        await to.close();
    }
}
