/**
 * A granted folder and the way to what lies below it. Every step of a path is opened below the descriptor of the step before
 * (`/proc/self/fd/N/name`, with O_NOFOLLOW), so the entry that was checked is the entry that is used: no link, no `..` and no rename in
 * between leads out of the folder.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import { errors } from '@portico/sdk';
import type { Grants, Scope } from '@portico/sdk/host';

import { codeOf, failureOf } from './failure.ts';
import { pathOf, within } from './file-name.ts';
import type { LentFolders } from './lent-folders.ts';
import { makeFolder } from './make.ts';
import { stepsOf } from './path.ts';
import type { HeldRoot } from './thread/operations.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** What the files of one plugin need. */
export interface FilesOptions {
    readonly grants: Grants;
    readonly scope: Scope;
    /** The plugin's own folder, which needs no grant. */
    readonly own: string;
    /** Folders that need no grant while they are lent. */
    readonly lent: LentFolders;
    /** Folder that stands for the root of the machine; empty for the machine itself. */
    readonly machine: string;
    /** Folders that no grant opens. */
    forbidden(): readonly string[];
}

/** The real paths of the folders that need no grant, and of those that no grant opens. */
interface Limits {
    readonly own: readonly string[];
    readonly forbidden: readonly string[];
}

/** A folder that is open for several uses at once; the last one closes it. */
interface SharedFolder {
    users: number;
    readonly opened: Promise<FileHandle>;
}

/** A folder, or a single file, that a plugin asked for. Its grant is checked at each use. */
export class GrantedRoot {
    readonly #root: string;
    readonly #options: Omit<FilesOptions, 'scope'>;
    /** Folders that were asked for in this turn, by how they are opened. */
    readonly #asked = new Map<string, SharedFolder>();

    /** @throws TypeError when the root is no absolute path */
    constructor(root: string, options: Omit<FilesOptions, 'scope'>) {
        if (typeof root !== 'string' || !root.startsWith('/')) {
            throw new TypeError('The root of files is an absolute path');
        }
        this.#root = root;
        this.#options = options;
    }

    /** Opens the file or folder at the end of the path and runs work on it. */
    async handle<T>(path: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
        if (stepsOf(path).length === 0 && !(await this.#isFile())) {
            return this.folder(path, (_at, handle) => work(handle));
        }
        return this.entry(path, async (at, name) => {
            await this.refuseAround(at, name);
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

    /** Runs work in the folder that holds the last step of the path. With a mode, missing folders on the way are made with it. */
    async below<T>(
        path: string,
        work: (at: string, name: string) => Promise<T>,
        modeOfMissing: number | null = null
    ): Promise<T> {
        const names = stepsOf(path);
        const last = names.pop();
        if (last === undefined) {
            throw errors.notFound('The root itself stays where it is');
        }
        return this.folder(names.join('/'), (at) => work(at, last), modeOfMissing);
    }

    /** As `below`; the empty path is the root itself where the root is a file, since a grant may name a single one. */
    async entry<T>(path: string, work: (at: string, name: string) => Promise<T>): Promise<T> {
        if (stepsOf(path).length > 0 || !(await this.#isFile())) {
            return this.below(path, work);
        }
        const real = await this.real();
        const handle = await this.#openFolder(dirname(real));
        try {
            return await work(`/proc/self/fd/${handle.fd}`, basename(real));
        } catch (error) {
            throw failureOf(error, path);
        } finally {
            await handle.close();
        }
    }

    /** Runs work in a folder. With a mode, missing folders on the way are made with it. */
    async folder<T>(
        path: string,
        work: (at: string, handle: FileHandle) => Promise<T>,
        modeOfMissing: number | null = null
    ): Promise<T> {
        const shared = this.#share(path, modeOfMissing);
        try {
            const handle = await shared.opened;
            return await work(`/proc/self/fd/${handle.fd}`, handle);
        } catch (error) {
            throw failureOf(error, path);
        } finally {
            shared.users -= 1;
            if (shared.users === 0) {
                await shared.opened.then(
                    (handle) => handle.close(),
                    () => undefined
                );
            }
        }
    }

    /** Runs work with the open root, for the thread that looks at what is below it. The root must be a folder. */
    async held<T>(work: (root: HeldRoot) => Promise<T>): Promise<T> {
        const limits = await this.limits();
        const handle = await this.#openFolder(await this.#realWithin(limits));
        try {
            return await work({ fd: handle.fd, ...limits });
        } finally {
            await handle.close();
        }
    }

    /** All who ask for a folder before the look at it begins share the look and the descriptor: many files of one folder are opened at once. */
    #share(path: string, modeOfMissing: number | null): SharedFolder {
        const key = `${modeOfMissing} ${path}`;
        let shared = this.#asked.get(key);
        if (shared === undefined) {
            const opened = Promise.resolve().then(() => {
                this.#asked.delete(key);
                return this.#walk(path, modeOfMissing);
            });
            shared = { users: 0, opened };
            this.#asked.set(key, shared);
        }
        shared.users += 1;
        return shared;
    }

    /** Opens a folder step by step, holding one descriptor at a time. */
    async #walk(path: string, modeOfMissing: number | null): Promise<FileHandle> {
        const limits = await this.limits();
        let handle = await this.#openFolder(await this.#realWithin(limits));
        try {
            for (const name of stepsOf(path)) {
                const step = pathOf(`/proc/self/fd/${handle.fd}`, name);
                const next = await open(step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(
                    async (error: unknown) => {
                        if (modeOfMissing === null || codeOf(error) !== 'ENOENT') {
                            throw error;
                        }
                        await makeFolder(step, modeOfMissing).catch((failure: unknown) => {
                            if (codeOf(failure) !== 'EEXIST') {
                                throw failure;
                            }
                        });
                        return open(step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
                    }
                );
                await handle.close();
                handle = next;
                await this.refuse(handle, limits);
            }
            return handle;
        } catch (error) {
            await handle.close();
            throw error;
        }
    }

    async #isFile(): Promise<boolean> {
        return (await lstat(await this.real())).isFile();
    }

    /** Opens a folder by its real path. */
    async #openFolder(real: string): Promise<FileHandle> {
        const handle = await open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch((error: unknown) => {
            throw failureOf(error, '');
        });
        // Opening looked the path up again, so what is open must be compared with what was checked.
        if ((await realpath(`/proc/self/fd/${handle.fd}`)) !== real) {
            await handle.close();
            throw errors.notFound(`${this.#root} moved meanwhile`);
        }
        return handle;
    }

    /** Where the root is now, without links. @throws NOT_FOUND 40400; CAPABILITY_MISSING 50305 when the plugin may not open it */
    async real(): Promise<string> {
        return this.#realWithin(await this.limits());
    }

    /** As `real`. One look at the limits serves a whole use of the root: each is a look-up of several paths. */
    async #realWithin(limits: Limits): Promise<string> {
        const { grants, own, lent, machine } = this.#options;
        const ungranted = [own, ...lent.paths()];
        const isUngranted = ungranted.some((folder) => within(this.#root, folder));
        const real = await realpath(isUngranted ? this.#root : machine + this.#root).catch(
            (error: unknown) => {
                throw failureOf(error, this.#root);
            }
        );
        if (!limits.own.some((folder) => within(real, folder)) && !(await this.#granted(real, limits))) {
            throw grants.missing(`files: ${this.#root}`);
        }
        return real;
    }

    async #granted(real: string, { forbidden }: Limits): Promise<boolean> {
        const { grants, machine } = this.#options;
        for (const folder of grants.list('files')) {
            const place = machine + folder;
            if (folder === '*' || within(real, await realpath(place).catch(() => place))) {
                return !forbidden.some((each) => within(real, each));
            }
        }
        return false;
    }

    /** Where the folders are now that need no grant, and the forbidden ones. */
    async limits(): Promise<Limits> {
        const [own = '', ...forbidden] = await Promise.all(
            [this.#options.own, ...this.#options.forbidden()].map((path) => realpath(path).catch(() => path))
        );
        return { own: [own, ...this.#options.lent.paths()], forbidden };
    }

    /** Makes the root itself where it is missing; the folder that it lies in must be there. @throws CAPABILITY_MISSING 50305 */
    async make(mode: number): Promise<void> {
        const place = this.#options.machine + this.#root;
        const parent = await realpath(dirname(place)).catch((error: unknown) => {
            throw failureOf(error, dirname(this.#root));
        });
        const name = basename(place);
        if (!(await this.#granted(join(parent, name), await this.limits()))) {
            throw this.#options.grants.missing(`files: ${this.#root}`);
        }
        const handle = await this.#openFolder(parent);
        try {
            const target = `/proc/self/fd/${handle.fd}/${name}`;
            await makeFolder(target, mode).catch(async (error: unknown) => {
                if (codeOf(error) !== 'EEXIST' || !(await lstat(target)).isDirectory()) {
                    throw failureOf(error, this.#root);
                }
            });
        } finally {
            await handle.close();
        }
    }

    /** Refuses an open folder that no grant opens. @throws NOT_FOUND 40400 */
    async refuse(handle: FileHandle, { own, forbidden }: Limits): Promise<void> {
        // The kernel says where the open folder is now, whatever its path was.
        const real = await readlink(`/proc/self/fd/${handle.fd}`);
        if (!own.some((each) => within(real, each)) && forbidden.some((each) => within(real, each))) {
            throw errors.notFound();
        }
    }

    /** Refuses a change of an entry that no grant opens, or that holds such a folder: moved elsewhere, a grant would open it. @throws NOT_FOUND 40400 */
    async refuseAround(at: string, name: string): Promise<void> {
        const target = join(await realpath(at), name);
        const { own, forbidden } = await this.limits();
        if (
            !own.some((each) => within(target, each)) &&
            forbidden.some((each) => within(target, each) || within(each, target))
        ) {
            throw errors.notFound();
        }
    }
}
