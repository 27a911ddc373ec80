/**
 * Files below one granted folder. Every step of a path is opened below the descriptor of the step before (`/proc/self/fd/N/name`, with
 * O_NOFOLLOW), so what was checked is what is used: no link, `..` or rename meanwhile leads out of the root.
 */
import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { type BigIntStats, constants, type PathLike } from 'node:fs';
import {
    type FileHandle,
    lchown,
    link,
    lstat,
    mkdir,
    open,
    readdir,
    readlink,
    realpath,
    rename,
    rmdir,
    unlink
} from 'node:fs/promises';
import { join } from 'node:path';

import { errors, type FileEntry, type Files } from '@portico/sdk';
import type { Grants, Scope } from '@portico/sdk/host';

import { bytesOf, nameOf } from './file-name.ts';

const {
    O_APPEND,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY
} = constants;
const openFlags = {
    r: O_RDONLY,
    'r+': O_RDWR,
    w: O_WRONLY | O_CREAT | O_TRUNC,
    wx: O_WRONLY | O_CREAT | O_EXCL,
    a: O_WRONLY | O_CREAT | O_APPEND
} as const;
const newFile = 0o640;
const newFolder = 0o750;
const longestPath = 4096;
const longestName = 255;
/** Folders within folders that are emptied at once. */
const mostLevels = 32;

export interface FilesOptions {
    readonly grants: Grants;
    readonly scope: Scope;
    /** The plugin's own folder, which needs no grant. */
    readonly own: string;
    /** Folder that stands for the root of the machine; empty for the machine itself. */
    readonly machine: string;
    /** Folders that no grant opens. */
    forbidden(): readonly string[];
}

/** @throws CAPABILITY_MISSING 50305 at the first use of a root that is not granted */
export function createFiles(root: string, options: FilesOptions): Files {
    return new Rooted(root, options);
}

/** As the machine has them, without links. */
interface Limits {
    readonly own: string;
    readonly forbidden: readonly string[];
}

class Rooted implements Files {
    readonly #root: string;
    readonly #options: FilesOptions;

    constructor(root: string, options: FilesOptions) {
        if (typeof root !== 'string' || !root.startsWith('/')) {
            throw new TypeError('The root of files is an absolute path');
        }
        this.#root = root;
        this.#options = options;
    }

    open: Files['open'] = async (path, flags = 'r', mode = newFile) => {
        const bits = openFlags[flags];
        if (bits === undefined) {
            throw new TypeError(`There is no mode ${String(flags)} to open a file in`);
        }
        return this.#below(path, async (at, name) => {
            const handle = await open(pathOf(at, name), bits | O_NOFOLLOW | O_NONBLOCK, mode);
            const stat = await handle.stat().catch(() => null);
            if (stat === null || !stat.isFile()) {
                await handle.close();
                throw errors.notFound(`${path} is not a file`);
            }
            const owned = this.#options.scope.own('file', path, () => handle.close());
            (handle as FileHandle & EventEmitter).once('close', () => owned.drop());
            return handle;
        });
    };

    list: Files['list'] = async (path) =>
        this.#folder(path, async (at) => {
            const names = await readdir(at, { encoding: 'buffer' });
            const entries = await Promise.all(
                names.map(nameOf).map(async (name) => {
                    const stat = await lstat(pathOf(at, name), { bigint: true }).catch(() => null);
                    return stat === null ? null : entryOf(name, stat);
                })
            );
            return entries.filter((entry) => entry !== null);
        });

    stat: Files['stat'] = async (path) =>
        parts(path).length === 0
            ? this.#folder(path, async (_at, handle) => entryOf('', await handle.stat({ bigint: true })))
            : this.#below(path, async (at, name) =>
                  entryOf(name, await lstat(pathOf(at, name), { bigint: true }))
              );

    readLink: Files['readLink'] = async (path) =>
        this.#below(path, async (at, name) =>
            nameOf(await readlink(pathOf(at, name), { encoding: 'buffer' }))
        );

    createFolder: Files['createFolder'] = async (path, { mode = newFolder, parents = false } = {}) =>
        this.#below(path, async (at, name) => mkdir(pathOf(at, name), { mode }), parents ? mode : null);

    move: Files['move'] = async (from, to, { replace = false } = {}) =>
        this.#below(from, (source, name) =>
            this.#below(to, async (target, newName) => {
                await Promise.all([this.#refuseAround(source, name), this.#refuseAround(target, newName)]);
                const [old, wanted] = [pathOf(source, name), pathOf(target, newName)];
                const stat = await lstat(old);
                if (replace) {
                    await rename(old, wanted);
                } else if (stat.isDirectory()) {
                    // rename would take the place of an empty folder; making one first is refused when there is anything.
                    await mkdir(wanted, { mode: 0o700 });
                    await rename(old, wanted).catch(async (error: unknown) => {
                        await rmdir(wanted).catch(() => undefined);
                        throw error;
                    });
                } else {
                    await renameFile(old, wanted);
                }
            })
        );

    remove: Files['remove'] = async (path, { recursive = false } = {}) =>
        this.#below(path, async (at, name) => {
            await this.#refuseAround(at, name);
            const stat = await lstat(pathOf(at, name));
            if (!stat.isDirectory()) {
                await unlink(pathOf(at, name));
                return;
            }
            if (recursive) {
                await this.#empty(pathOf(at, name), await this.#limits());
            }
            await rmdir(pathOf(at, name));
        });

    chmod: Files['chmod'] = async (path, mode) => this.#handle(path, (handle) => handle.chmod(mode & 0o7777));

    chown: Files['chown'] = async (path, uid, gid) =>
        this.#below(path, async (at, name) => {
            await this.#refuseAround(at, name);
            await lchown(pathOf(at, name), uid, gid);
        });

    /**
     * Opens each folder before it is emptied: one that was swapped for a link meanwhile is not entered. Each level holds a descriptor, so
     * what lies deeper is lifted up first: no depth uses up what the process has.
     */
    async #empty(
        folder: PathLike,
        limits: Limits,
        level = 1,
        lift: ((deep: PathLike) => Promise<void>) | null = null
    ): Promise<void> {
        const handle = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        try {
            await this.#refuse(handle, limits);
            const at = `/proc/self/fd/${handle.fd}`;
            let lifted = 0;
            const up =
                lift ??
                (async (deep: PathLike) => {
                    await rename(deep, `${at}/.${randomUUID()}`);
                    lifted += 1;
                });
            do {
                lifted = 0;
                for (const entry of await readdir(at, { withFileTypes: true, encoding: 'buffer' })) {
                    const path = Buffer.concat([Buffer.from(`${at}/`), entry.name]);
                    if (!entry.isDirectory()) {
                        await unlink(path);
                    } else if (level === mostLevels) {
                        await up(path);
                    } else {
                        await this.#empty(path, limits, level + 1, up);
                        await rmdir(path);
                    }
                }
            } while (lifted > 0);
        } finally {
            await handle.close();
        }
    }

    /** Works on an open file or folder at the end of the path. */
    async #handle<T>(path: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
        if (parts(path).length === 0) {
            return this.#folder(path, (_at, handle) => work(handle));
        }
        return this.#below(path, async (at, name) => {
            await this.#refuseAround(at, name);
            const stat = await lstat(pathOf(at, name));
            if (!stat.isFile() && !stat.isDirectory()) {
                throw errors.notFound(`${path} is neither a file nor a folder`);
            }
            const handle = await open(pathOf(at, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
            try {
                return await work(handle);
            } finally {
                await handle.close();
            }
        });
    }

    /** Works in the folder that holds the last name of the path. */
    async #below<T>(
        path: string,
        work: (at: string, name: string) => Promise<T>,
        making: number | null = null
    ): Promise<T> {
        const names = parts(path);
        const last = names.pop();
        if (last === undefined) {
            throw errors.notFound('The root itself stays where it is');
        }
        return this.#folder(names.join('/'), (at) => work(at, last), making);
    }

    /** Walks to a folder, holding one descriptor at a time. With a mode, folders on the way that are missing are made. */
    async #folder<T>(
        path: string,
        work: (at: string, handle: FileHandle) => Promise<T>,
        making: number | null = null
    ): Promise<T> {
        const limits = await this.#limits();
        let handle = await this.#openRoot();
        try {
            for (const name of parts(path)) {
                const step = pathOf(`/proc/self/fd/${handle.fd}`, name);
                const next = await open(step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(
                    async (error: unknown) => {
                        if (making === null || codeOf(error) !== 'ENOENT') {
                            throw error;
                        }
                        await mkdir(step, { mode: making }).catch((failure: unknown) => {
                            if (codeOf(failure) !== 'EEXIST') {
                                throw failure;
                            }
                        });
                        return open(step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
                    }
                );
                await handle.close();
                handle = next;
                await this.#refuse(handle, limits);
            }
            return await work(`/proc/self/fd/${handle.fd}`, handle);
        } catch (error) {
            throw failureOf(error, path);
        } finally {
            await handle.close();
        }
    }

    async #openRoot(): Promise<FileHandle> {
        const { grants, own, machine } = this.#options;
        const place = within(this.#root, own) ? this.#root : machine + this.#root;
        const real = await realpath(place).catch((error: unknown) => {
            throw failureOf(error, this.#root);
        });
        const isOwn = within(real, await realpath(own).catch(() => own));
        if (!isOwn && !(await this.#granted(real))) {
            throw grants.missing(`files: ${this.#root}`);
        }
        const handle = await open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        // The path was looked up once more: what was opened must be what was judged.
        if ((await realpath(`/proc/self/fd/${handle.fd}`)) !== real) {
            await handle.close();
            throw errors.notFound(`${this.#root} moved meanwhile`);
        }
        return handle;
    }

    async #granted(real: string): Promise<boolean> {
        const { grants, machine } = this.#options;
        for (const folder of grants.list('files')) {
            const place = machine + folder;
            if (folder === '*' || within(real, await realpath(place).catch(() => place))) {
                return !(await this.#limits()).forbidden.some((forbidden) => within(real, forbidden));
            }
        }
        return false;
    }

    async #limits(): Promise<Limits> {
        const [own = '', ...forbidden] = await Promise.all(
            [this.#options.own, ...this.#options.forbidden()].map((path) => realpath(path).catch(() => path))
        );
        return { own, forbidden };
    }

    /** Folders that no grant opens, reached from above. */
    async #refuse(handle: FileHandle, { own, forbidden }: Limits): Promise<void> {
        // The kernel's own word for where it is now.
        const real = await readlink(`/proc/self/fd/${handle.fd}`);
        if (!within(real, own) && forbidden.some((each) => within(real, each))) {
            throw errors.notFound();
        }
    }

    /** A folder that no grant opens, and what holds one, stays as it is: moved elsewhere it would be one that a grant opens. */
    async #refuseAround(at: string, name: string): Promise<void> {
        const target = join(await realpath(at), name);
        const { own, forbidden } = await this.#limits();
        if (!within(target, own) && forbidden.some((each) => within(target, each) || within(each, target))) {
            throw errors.notFound();
        }
    }
}

/** The steps of a relative path. @throws NOT_FOUND 40400 for one that no entry can have */
function parts(path: string): string[] {
    if (
        typeof path !== 'string' ||
        path.length > longestPath ||
        path.includes('\0') ||
        path.startsWith('/')
    ) {
        throw errors.notFound('There is nothing at that path');
    }
    const names = path.split('/').filter((name) => name !== '');
    if (
        names.some(
            (name) =>
                name === '.' || name === '..' || (bytesOf(name)?.length ?? longestName + 1) > longestName
        )
    ) {
        throw errors.notFound('There is nothing at that path');
    }
    return names;
}

/** Never takes the place of another file: the name is claimed first, by a link where the machine lets us make one. */
async function renameFile(old: PathLike, wanted: PathLike): Promise<void> {
    try {
        await link(old, wanted);
    } catch (error) {
        if (!['EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error))) {
            throw error;
        }
        await (await open(wanted, O_WRONLY | O_CREAT | O_EXCL, 0o600)).close();
        await rename(old, wanted).catch(async (failure: unknown) => {
            await unlink(wanted).catch(() => undefined);
            throw failure;
        });
        return;
    }
    await unlink(old).catch(async (error: unknown) => {
        await unlink(wanted).catch(() => undefined);
        throw error;
    });
}

/** What a folder has under a name. */
function pathOf(at: string, name: string): PathLike {
    const bytes = bytesOf(name);
    return bytes === null ? `${at}/${name}` : Buffer.concat([Buffer.from(`${at}/`), bytes]);
}

function within(path: string, folder: string): boolean {
    return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

function entryOf(name: string, stat: BigIntStats): FileEntry {
    const type = stat.isFile()
        ? 'file'
        : stat.isDirectory()
          ? 'folder'
          : stat.isSymbolicLink()
            ? 'link'
            : 'other';
    return {
        name,
        type,
        size: Number(stat.size),
        mode: Number(stat.mode & 0o7777n),
        uid: Number(stat.uid),
        gid: Number(stat.gid),
        modifiedAt: new Date(Number(stat.mtimeMs)),
        version: [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs]
            .map((part) => part.toString(36))
            .join('-')
    };
}

function codeOf(error: unknown): string {
    return (error as NodeJS.ErrnoException).code ?? '';
}

function failureOf(error: unknown, path: string): unknown {
    switch (codeOf(error)) {
        case 'ENOENT':
        case 'ENOTDIR':
        case 'ELOOP':
        case 'EINVAL':
        case 'ENAMETOOLONG':
        case 'ENXIO':
            return errors.notFound(`There is nothing at ${path === '' ? 'that path' : path}`);
        case 'EEXIST':
        case 'ENOTEMPTY':
            return errors.conflict('path');
        case 'EACCES':
        case 'EPERM':
        case 'EROFS':
            return errors.forbidden('file');
        case 'EISDIR':
            return errors.notFound(`${path} is a folder`);
        case 'ENOSPC':
        case 'EDQUOT':
            return errors.storageFull();
        default:
            return error;
    }
}
