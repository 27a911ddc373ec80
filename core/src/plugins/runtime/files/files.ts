/** The files of one granted folder, as plugins use them. How a path is followed is in `granted-root.ts`. */
import type { EventEmitter } from 'node:events';
import { constants } from 'node:fs';
import {
    type FileHandle,
    lchown,
    link,
    lstat,
    mkdir,
    readdir,
    readlink,
    rename,
    rmdir,
    statfs,
    symlink,
    unlink
} from 'node:fs/promises';

import { errors, type Files } from '@portico/sdk';
import type { Scope } from '@portico/sdk/host';

import { emptyFolder } from './empty-folder.ts';
import { codeOf } from './failure.ts';
import { nameOf, pathOf } from './file-name.ts';
import { type FilesOptions, GrantedRoot } from './granted-root.ts';
import type { LentFolders } from './lent-folders.ts';
import { makeFolder, openFile } from './make.ts';
import { linkTarget, stepsOf } from './path.ts';
import { renameFile } from './rename-file.ts';
import { entryOf } from './thread/entry.ts';
import type { FilesThread } from './thread/files-thread.ts';
import { SmallFiles } from './thread/small-files.ts';

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = constants;
const openFlags = {
    r: O_RDONLY,
    'r+': O_RDWR,
    w: O_WRONLY | O_CREAT | O_TRUNC,
    wx: O_WRONLY | O_CREAT | O_EXCL,
    a: O_WRONLY | O_CREAT | O_APPEND
} as const;
const newFile = 0o640;
const newFolder = 0o750;
/** Bytes of one file that are read or copied in one call. */
const mostSmall = 2 ** 20;

/** Files below a folder of the machine. @throws CAPABILITY_MISSING 50305 at the first use of a folder that is not granted */
export function createFiles(root: string, options: FilesOptions, thread: FilesThread): Files {
    const granted = (folder: string): GrantedRoot => new GrantedRoot(folder, options);
    const own = granted(root);
    return new RootedFiles(own, new SmallFiles(own, thread, granted), options);
}

class RootedFiles implements Files {
    readonly #root: GrantedRoot;
    readonly #small: SmallFiles;
    readonly #scope: Scope;
    readonly #lent: LentFolders;

    constructor(root: GrantedRoot, small: SmallFiles, { scope, lent }: Pick<FilesOptions, 'scope' | 'lent'>) {
        this.#root = root;
        this.#small = small;
        this.#scope = scope;
        this.#lent = lent;
    }

    open: Files['open'] = async (path, flags = 'r', mode = newFile) => {
        const bits = openFlags[flags];
        if (bits === undefined) {
            throw new TypeError(`There is no mode ${String(flags)} to open a file in`);
        }
        return this.#root.entry(path, async (at, name) => {
            const handle = await openFile(pathOf(at, name), bits | O_NOFOLLOW | O_NONBLOCK, mode);
            const stat = await handle.stat().catch(() => null);
            if (stat === null || !stat.isFile()) {
                await handle.close();
                throw errors.notFound(`${path === '' ? 'The root' : path} is not a file`);
            }
            const owned = this.#scope.own('file', path, () => handle.close());
            (handle as FileHandle & EventEmitter).once('close', () => owned.drop());
            this.#lent.bind(await readlink(`/proc/self/fd/${handle.fd}`), handle);
            return handle;
        });
    };

    names: Files['names'] = async (path) => {
        const { names } = await this.#small.perform({ kind: 'names', folder: stepsOf(path), most: 0 }, path);
        return names;
    };

    read: Files['read'] = async (path, most) => {
        const { entry, start, end, bytes } = await this.#small.perform(
            { kind: 'read', ...placeOf(path), most: smallSize(most) },
            path
        );
        return { entry, bytes: bytes.subarray(start, end) };
    };

    copyFile: Files['copyFile'] = async (path, from, { most, owner }) => {
        const { entry, copied } = await this.#small.perform(
            {
                kind: 'copy',
                from: placeOf(from.path),
                to: placeOf(path),
                most: smallSize(most),
                owner: owner ?? null
            },
            path,
            from.root
        );
        return { entry, copied };
    };

    list: Files['list'] = async (path) =>
        this.#root.folder(path, async (at) => {
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
        stepsOf(path).length === 0
            ? this.#root.handle(path, async (handle) => entryOf('', await handle.stat({ bigint: true })))
            : this.#root.below(path, async (at, name) =>
                  entryOf(name, await lstat(pathOf(at, name), { bigint: true }))
              );

    readLink: Files['readLink'] = async (path) =>
        this.#root.below(path, async (at, name) =>
            nameOf(await readlink(pathOf(at, name), { encoding: 'buffer' }))
        );

    link: Files['link'] = async (path, target, kind) => {
        if (kind === 'symbolic') {
            const text = linkTarget(path, target);
            return this.#root.below(path, async (at, name) => {
                await this.#root.refuseAround(at, name);
                await symlink(text, pathOf(at, name));
            });
        }
        if (kind !== 'hard') {
            throw new TypeError('A link is symbolic or hard');
        }
        return this.#root.below(target, (source, oldName) =>
            this.#root.below(path, async (at, name) => {
                await this.#root.refuseAround(source, oldName);
                await this.#root.refuseAround(at, name);
                if (!(await lstat(pathOf(source, oldName))).isFile()) {
                    throw errors.notFound(`${target} is no file`);
                }
                await link(pathOf(source, oldName), pathOf(at, name));
            })
        );
    };

    space: Files['space'] = () =>
        this.#root.folder('', async (at) => {
            const { blocks, bavail, bsize } = await statfs(at, { bigint: true });
            return { total: Number(blocks * bsize), available: Number(bavail * bsize) };
        });

    createFolder: Files['createFolder'] = async (path, { mode = newFolder, parents = false } = {}) =>
        path === '' && parents ? this.#root.make(mode) : this.#createBelow(path, mode, parents);

    #createBelow(path: string, mode: number, parents: boolean): Promise<void> {
        return this.#root.below(
            path,
            async (at, name) =>
                makeFolder(pathOf(at, name), mode).catch(async (error: unknown) => {
                    const isThere = parents && codeOf(error) === 'EEXIST';
                    if (!isThere || !(await lstat(pathOf(at, name))).isDirectory()) {
                        throw error;
                    }
                }),
            parents ? mode : null
        );
    }

    move: Files['move'] = async (from, to, { replace = false } = {}) =>
        this.#root.below(from, (source, name) =>
            this.#root.below(to, async (target, newName) => {
                await Promise.all([
                    this.#root.refuseAround(source, name),
                    this.#root.refuseAround(target, newName)
                ]);
                const [old, wanted] = [pathOf(source, name), pathOf(target, newName)];
                const stat = await lstat(old);
                if (replace) {
                    await rename(old, wanted);
                } else if (stat.isDirectory()) {
                    // rename would replace an empty folder; mkdir fails when the name is taken.
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
        this.#root.below(path, async (at, name) => {
            await this.#root.refuseAround(at, name);
            const stat = await lstat(pathOf(at, name));
            if (!stat.isDirectory()) {
                await unlink(pathOf(at, name));
                return;
            }
            if (recursive) {
                const limits = await this.#root.limits();
                await emptyFolder(pathOf(at, name), (handle) => this.#root.refuse(handle, limits));
            }
            await rmdir(pathOf(at, name));
        });

    chmod: Files['chmod'] = async (path, mode) =>
        this.#root.handle(path, (handle) => handle.chmod(mode & 0o7777));

    chown: Files['chown'] = async (path, uid, gid) =>
        this.#root.entry(path, async (at, name) => {
            await this.#root.refuseAround(at, name);
            await lchown(pathOf(at, name), uid, gid);
        });
}

/** The folder and the name of an entry. @throws NOT_FOUND 40400 for the root itself, and for a path that no entry can have */
function placeOf(path: string): { readonly folder: readonly string[]; readonly name: string } {
    const folder = stepsOf(path);
    const name = folder.pop();
    if (name === undefined) {
        throw errors.notFound('The root is not a file');
    }
    return { folder, name };
}

/** @throws TypeError for a size that one call may not have */
function smallSize(bytes: number): number {
    if (!Number.isInteger(bytes) || bytes < 0 || bytes > mostSmall) {
        throw new TypeError(`most is a whole number of bytes up to ${mostSmall}`);
    }
    return bytes;
}
