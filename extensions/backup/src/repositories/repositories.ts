/** Repositories: made or opened, changed, checked, and forgotten without losing what is in them. */
import { randomBytes } from 'node:crypto';

import { errors, KeyedMutex } from '@portico/sdk';

import { PlanEntity, RepositoryEntity, type RepositoryRow } from '../entities.ts';
import { pluginErrors } from '../errors.ts';
import { checkVersion, findRepositories } from '../queries.ts';
import type { Restic, Target } from '../restic/restic.ts';
import type { Ctx } from '../settings.ts';

/** What a caller gives for a new repository. */
export interface RepositoryInput {
    readonly name: string;
    readonly path: string;
    readonly mode: 'create' | 'open';
    readonly password?: string | undefined;
    readonly appendOnly: boolean;
}

/** How a check ended. */
export interface CheckResult {
    readonly at: string;
    readonly ok: boolean;
    readonly message: string | null;
}

/** Folders that are never a repository or a target: they are the kernel's. */
const kernel = ['/proc', '/sys', '/dev'];
const initSeconds = 120;

/** All repositories. What writes to one runs alone; reads go on. */
export class Repositories {
    readonly #ctx: Ctx;
    readonly #restic: Restic;
    readonly #writers = new KeyedMutex();
    readonly #busy = new Set<number>();

    constructor(ctx: Ctx, restic: Restic) {
        this.#ctx = ctx;
        this.#restic = restic;
    }

    list(): Promise<readonly RepositoryRow[]> {
        return this.#ctx.db.read((em) => findRepositories(em, {}));
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<RepositoryRow> {
        const [row] = await this.#ctx.db.read((em) => findRepositories(em, { id }));
        if (row === undefined) {
            throw errors.notFound('There is no repository of that id');
        }
        return row;
    }

    /** What restic needs to open it. */
    async target({ path, password }: RepositoryRow): Promise<Target> {
        return { path, password: await this.#ctx.secrets.open(password) };
    }

    /** Makes a new repository, or opens an existing one, and stores how. @throws the plugin's errors; CONFLICT 40900 */
    async create(input: RepositoryInput, signal: AbortSignal): Promise<RepositoryRow> {
        const { name, path, mode, appendOnly } = input;
        checkPlace(path, 'path');
        if ((await this.list()).some((row) => row.path === path)) {
            throw errors.conflict('path');
        }
        const password = input.password ?? randomBytes(24).toString('base64url');
        const options = { signal, timeoutSeconds: initSeconds };
        if (mode === 'create') {
            await this.#requireEmpty(path);
            await this.#restic.run({ path, password }, ['init'], options);
        } else {
            await this.#requireFolder(path);
            await this.#restic.run({ path, password }, ['cat', 'config', '--no-lock'], options);
        }
        const sealed = await this.#ctx.secrets.seal(password);
        const id = await this.#ctx.db.write((em) =>
            em.insert(RepositoryEntity, {
                version: 1,
                name,
                path,
                appendOnly,
                password: sealed,
                lastCheck: null,
                createdAt: Date.now()
            })
        );
        return this.get(id);
    }

    /** Changes name and mode; the place stays. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async update(
        id: number,
        change: { readonly name?: string | undefined; readonly appendOnly?: boolean | undefined },
        version: string | null
    ): Promise<RepositoryRow> {
        await this.#ctx.db.write(async (em) => {
            const [row] = await findRepositories(em, { id });
            if (row === undefined) {
                throw errors.notFound('There is no repository of that id');
            }
            checkVersion(row, version);
            row.name = change.name ?? row.name;
            row.appendOnly = change.appendOnly ?? row.appendOnly;
            row.version += 1;
        });
        return this.get(id);
    }

    /** Forgets it; its files stay. @throws IN_USE 40901 while a plan names it */
    async remove(id: number): Promise<void> {
        await this.get(id);
        await this.#ctx.db.write(async (em) => {
            const plans = await em.find(PlanEntity, { repositoryId: id });
            if (plans.length > 0) {
                throw errors.inUse(plans.map(({ name }) => name));
            }
            await em.nativeDelete(RepositoryEntity, { id });
        });
    }

    /** Runs work that writes to the repository, after all earlier such work. */
    writing<T>(id: number, work: () => Promise<T>): Promise<T> {
        return this.#writers.run(String(id), async () => {
            this.#busy.add(id);
            try {
                return await work();
            } finally {
                this.#busy.delete(id);
            }
        });
    }

    /** @throws IN_USE 40901 while other work writes to it */
    requireFree(id: number): void {
        if (this.#busy.has(id)) {
            throw errors.inUse('a run, a check or a clean-up of this repository');
        }
    }

    /** @throws APPEND_ONLY 40950 */
    requireRemovable({ appendOnly }: RepositoryRow): void {
        if (appendOnly) {
            throw pluginErrors.APPEND_ONLY();
        }
    }

    /** Checks the structure, and reads so many per cent of the data. The result is stored. */
    async check(row: RepositoryRow, readPercent: number, signal: AbortSignal): Promise<CheckResult> {
        const target = await this.target(row);
        const args = readPercent === 0 ? ['check'] : ['check', `--read-data-subset=${readPercent}%`];
        const at = new Date().toISOString();
        const result = await this.#restic.run(target, args, { signal }).then(
            (): CheckResult => ({ at, ok: true, message: null }),
            (error: unknown): CheckResult => {
                signal.throwIfAborted();
                return { at, ok: false, message: (error as Error).message };
            }
        );
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(RepositoryEntity, { id: row.id }, { lastCheck: JSON.stringify(result) })
        );
        return result;
    }

    /** The files of the panel let no plugin reach its own folders, so asking them refuses those. */
    async #requireEmpty(path: string): Promise<void> {
        const root = this.#ctx.files('/');
        const refuse = (message: string): Error => errors.invalid([{ path: 'path', message }]);
        const found = await root.stat(path.slice(1)).catch(() => null);
        if (found === null) {
            await root
                .createFolder(path.slice(1), { mode: 0o700 })
                .catch(() =>
                    Promise.reject(
                        refuse('path cannot be made: its folder must be there, and open to plugins')
                    )
                );
        } else if (found.type !== 'folder' || (await root.list(path.slice(1))).length > 0) {
            throw refuse('path has files in it: name an empty folder, or open what is there');
        }
    }

    async #requireFolder(path: string): Promise<void> {
        const found = await this.#ctx
            .files('/')
            .stat(path.slice(1))
            .catch(() => null);
        if (found?.type !== 'folder') {
            throw pluginErrors.NOT_A_REPOSITORY();
        }
    }
}

/** A plain absolute path that is not the kernel's. @throws VALIDATION_FAILED 40001 */
export function checkPlace(path: string, field: string): void {
    if (
        path === '/' ||
        path.split('/').some((part, index) => (part === '' && index > 0) || part === '.' || part === '..') ||
        kernel.some((folder) => path === folder || path.startsWith(`${folder}/`))
    ) {
        throw errors.invalid([
            {
                path: field,
                message: `${field} is the absolute path of a folder, without . and .., and not one of the kernel's`
            }
        ]);
    }
}
