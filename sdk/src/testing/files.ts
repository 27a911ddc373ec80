/** Files below granted folders, which in a test lie in a folder of its own: `/var/www` is `<files>/var/www`. */
import type { EventEmitter } from 'node:events';
import type { BigIntStats } from 'node:fs';
import {
    chmod,
    type FileHandle,
    lchown,
    lstat,
    mkdir,
    open,
    readdir,
    readlink,
    rename,
    rm,
    rmdir,
    unlink
} from 'node:fs/promises';
import { join } from 'node:path';

import type { Grants } from '../boundary/grants.ts';
import type { Scope } from '../boundary/scope.ts';
import type { FileEntry, Files } from '../context.ts';
import { errors } from '../plugin-errors.ts';

export interface TestFilesOptions {
    readonly grants: Grants;
    readonly scope: Scope;
    /** Where the test keeps what the plugin thinks is the machine. */
    readonly base: string;
    /** The plugin's own folder, which needs no grant and is where it is. */
    readonly own: string;
}

/** Never follows a link, as the panel's; it does not hold against whoever changes the tree meanwhile, as the panel's does. */
export function createTestFiles(root: string, { grants, scope, base, own }: TestFilesOptions): Files {
    if (typeof root !== 'string' || !root.startsWith('/')) {
        throw new TypeError('The root of files is an absolute path');
    }
    const isOwn = root === own || root.startsWith(`${own}/`);
    const real = isOwn ? root : join(base, root);

    /** The real path of something, after a look at each step to it. */
    const place = async (path: string): Promise<string> => {
        const isGranted =
            isOwn ||
            grants
                .list('files')
                .some(
                    (folder) =>
                        folder === '*' || root === folder || root.startsWith(`${folder.replace(/\/$/, '')}/`)
                );
        if (!isGranted) {
            throw grants.missing(`files: ${root}`);
        }
        const names = path.split('/').filter((name) => name !== '');
        if (
            names.some((name) => name === '.' || name === '..' || name.includes('\0')) ||
            path.startsWith('/')
        ) {
            throw errors.notFound(`${path} is not below ${root}`);
        }
        let at = real;
        for (const name of ['', ...names.slice(0, -1)]) {
            at = join(at, name);
            if (!(await lstat(at)).isDirectory()) {
                throw errors.notFound();
            }
        }
        return join(real, ...names);
    };
    const door =
        <T extends readonly unknown[], R>(work: (...input: T) => Promise<R>) =>
        async (...input: T): Promise<R> => {
            try {
                return await work(...input);
            } catch (error) {
                switch ((error as NodeJS.ErrnoException).code) {
                    case 'ENOENT':
                    case 'ENOTDIR':
                    case 'ELOOP':
                        throw errors.notFound(`There is nothing at ${String(input[0])}`);
                    case 'EEXIST':
                    case 'ENOTEMPTY':
                        throw errors.conflict('path');
                    case 'EACCES':
                    case 'EPERM':
                        throw errors.forbidden('file');
                    default:
                        throw error;
                }
            }
        };

    return {
        open: door(async (path, flags = 'r', mode = 0o640) => {
            const at = await place(path);
            const found = await lstat(at).catch(() => null);
            if (found !== null && !found.isFile()) {
                throw errors.notFound(`${path} is not a file`);
            }
            const handle = await open(at, flags, mode);
            const owned = scope.own('file', path, () => handle.close());
            (handle as FileHandle & EventEmitter).once('close', () => owned.drop());
            return handle;
        }),
        list: door(async (path) => {
            const at = await place(path);
            if (!(await lstat(at)).isDirectory()) {
                throw errors.notFound(`${path} is not a folder`);
            }
            return Promise.all(
                (await readdir(at)).map(async (name) =>
                    entryOf(name, await lstat(join(at, name), { bigint: true }))
                )
            );
        }),
        stat: door(async (path) =>
            entryOf(path.split('/').at(-1) ?? '', await lstat(await place(path), { bigint: true }))
        ),
        readLink: door(async (path) => readlink(await place(path))),
        createFolder: door(async (path, { mode = 0o750, parents = false } = {}) => {
            const names = path.split('/');
            for (let length = parents ? 1 : names.length; length < names.length; length += 1) {
                await mkdir(await place(names.slice(0, length).join('/')), { mode }).catch(
                    (error: NodeJS.ErrnoException) => {
                        if (error.code !== 'EEXIST') {
                            throw error;
                        }
                    }
                );
            }
            await mkdir(await place(path), { mode });
        }),
        move: door(async (from, to, { replace = false } = {}) => {
            const [source, target] = [await place(from), await place(to)];
            if (
                !replace &&
                (await lstat(target).then(
                    () => true,
                    () => false
                ))
            ) {
                throw errors.conflict('path');
            }
            await rename(source, target);
        }),
        remove: door(async (path, { recursive = false } = {}) => {
            const at = await place(path);
            if (!(await lstat(at)).isDirectory()) {
                return unlink(at);
            }
            return recursive ? rm(at, { recursive: true }) : rmdir(at);
        }),
        chmod: door(async (path, mode) => chmod(await place(path), mode & 0o7777)),
        chown: door(async (path, uid, gid) => lchown(await place(path), uid, gid))
    };
}

function entryOf(name: string, stat: BigIntStats): FileEntry {
    return {
        name,
        type: stat.isFile()
            ? 'file'
            : stat.isDirectory()
              ? 'folder'
              : stat.isSymbolicLink()
                ? 'link'
                : 'other',
        size: Number(stat.size),
        mode: Number(stat.mode) & 0o7777,
        uid: Number(stat.uid),
        gid: Number(stat.gid),
        modifiedAt: new Date(Number(stat.mtimeMs)),
        version: `${stat.ino.toString(36)}-${stat.ctimeNs.toString(36)}-${stat.size.toString(36)}`
    };
}
