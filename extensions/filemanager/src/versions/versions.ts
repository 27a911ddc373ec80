/**
 * Versions: what a file contained before the panel replaced it. The bytes lie in the private folder of the root under their checksum, so the
 * same content is kept once, however many files and versions have it.
 */
import { createHash, randomUUID } from 'node:crypto';

import { type Actor, type Download, errors, joi, KeyedMutex, type Value } from '@portico/sdk';

import { VersionEntity, type VersionRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { bytesOf, writeFrom } from '../files/content/bytes.ts';
import { download, openFile } from '../files/content/content.ts';
import { hashed } from '../files/content/hashing.ts';
import { allowMissing, filesystem, isMissing } from '../files/filesystem.ts';
import { isWithin, nameOf } from '../roots/path.ts';
import { ensurePrivate, privatePath } from '../roots/private-folder.ts';
import type { Quotas } from '../roots/quotas.ts';
import type { Root, Roots } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';

/** The schema of a version. */
export const versionSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    size: joi
        .number()
        .integer()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 2 } }),
    at: joi
        .string()
        .isoDate()
        .required()
        .label('Replaced')
        .description('When a newer content took its place')
        .meta({ ui: { column: 1 } }),
    by: joi
        .string()
        .allow('')
        .required()
        .label('Replaced by')
        .meta({ ui: { column: 3 } }),
    checksum: joi
        .string()
        .required()
        .label('SHA-256')
        .meta({ ui: { column: 4 } })
});
/** A version as the API answers it. */
export type VersionView = Value<typeof versionSchema>;

/** A version and its root. */
export interface Version {
    readonly root: Root;
    readonly row: VersionRow;
}

/** The versions of all roots. */
export class Versions {
    readonly #ctx: Ctx;
    readonly #roots: Roots;
    readonly #quotas: Quotas;
    /** One change at a time for each root, so that no content is removed that another file is about to name. */
    readonly #mutex = new KeyedMutex();

    constructor(ctx: Ctx, roots: Roots, quotas: Quotas) {
        this.#ctx = ctx;
        this.#roots = roots;
        this.#quotas = quotas;
    }

    /**
     * Keeps what a file contains now, right before it is replaced. Does nothing where the root keeps no versions, and for what is no file.
     *
     * @throws CHANGED_MEANWHILE 40954 when the file is written to at the same time; STORAGE_FULL 50700
     */
    async keep(root: Root, path: string, actor: Actor): Promise<void> {
        if (root.versions === 0) {
            return;
        }
        const { type } = await filesystem(() => root.files.stat(path));
        if (type === 'file') {
            await this.#mutex.run(root.folder, () => this.#store(root, path, actor));
        }
    }

    /** The versions of a path that come before an id, newest first; one more than `limit` where there are as many. */
    async list(
        { folder }: Root,
        path: string,
        limit: number,
        before: number | null
    ): Promise<readonly VersionRow[]> {
        return this.#ctx.db.read((em) =>
            em.find(
                VersionEntity,
                { folder, path, ...(before === null ? {} : { id: { $lt: before } }) },
                { orderBy: { id: 'desc' }, limit: limit + 1 }
            )
        );
    }

    /** The answer for a version. */
    view({ id, size, at, actor, checksum }: VersionRow): VersionView {
        return { id, size, at: new Date(at).toISOString(), by: actor, checksum };
    }

    /** The version of an id in a root that the actor reaches. @throws NOT_FOUND 40400 */
    async one(actor: Actor, id: number): Promise<Version> {
        const row = await this.#ctx.db.read((em) => em.findOne(VersionEntity, { id }));
        const root = this.#roots.visible(actor).find(({ folder }) => folder === row?.folder);
        if (row === null || root === undefined) {
            throw errors.notFound();
        }
        return { root, row };
    }

    /** Opens what a version contains, under the name of its file. @throws NOT_FOUND 40400 */
    async open({ root, row }: Version): Promise<Download> {
        const opened = await download(root.files, privatePath('versions', row.checksum), false);
        return { ...opened, name: nameOf(row.path), version: row.checksum, type: 'application/octet-stream' };
    }

    /** Lets versions follow a file, or all files of a folder, to another path of the same root. */
    async moved({ folder }: Root, from: string, to: string): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            const rows = await em.find(VersionEntity, { folder, ...below(from) });
            for (const { id, path } of rows.filter((row) => isWithin(row.path, from))) {
                await em.nativeUpdate(VersionEntity, { id }, { path: `${to}${path.slice(from.length)}` });
            }
        });
    }

    /** Removes the versions of what was removed for good. */
    async forget(root: Root, path: string): Promise<void> {
        await this.#mutex.run(root.folder, async () => {
            const rows = await this.#ctx.db.read((em) =>
                em.find(VersionEntity, { folder: root.folder, ...below(path) })
            );
            await this.#remove(
                root,
                rows.filter((row) => isWithin(row.path, path))
            );
        });
    }

    async #store(root: Root, path: string, actor: Actor): Promise<void> {
        const { files } = root;
        await ensurePrivate(files, 'versions');
        const { handle, entry } = await openFile(files, path);
        await using closing = new AsyncDisposableStack();
        closing.defer(() => handle.close());
        const hash = createHash('sha256');
        const temporary = privatePath('versions', `new-${randomUUID()}`);
        try {
            const size = await filesystem(async () => {
                const target = await files.open(temporary, 'wx', 0o600);
                try {
                    const bytes = await writeFrom(target, hashed(bytesOf(handle, 0, entry.size), hash));
                    await target.sync();
                    return bytes;
                } finally {
                    await target.close();
                }
            });
            if (size !== entry.size || (await filesystem(() => files.stat(path))).version !== entry.version) {
                throw fail.CHANGED_MEANWHILE({ path });
            }
            const checksum = hash.digest('hex');
            const blob = privatePath('versions', checksum);
            // The quota is not asked: the file gives up the bytes that the version takes.
            if (!(await exists(root, blob))) {
                await filesystem(() => files.move(temporary, blob));
            }
            await this.#ctx.db.write((em) =>
                em.insert(VersionEntity, {
                    folder: root.folder,
                    path,
                    checksum,
                    size,
                    at: Date.now(),
                    actor: actor.username ?? ''
                })
            );
        } finally {
            await files.remove(temporary).catch(allowMissing);
        }
        await this.#prune(root, path);
    }

    async #prune(root: Root, path: string): Promise<void> {
        const rows = await this.#ctx.db.read((em) =>
            em.find(VersionEntity, { folder: root.folder, path }, { orderBy: { id: 'desc' } })
        );
        await this.#remove(root, rows.slice(root.versions));
    }

    /** Removes rows, and the contents that no other row names. */
    async #remove(root: Root, rows: readonly VersionRow[]): Promise<void> {
        if (rows.length === 0) {
            return;
        }
        const { folder, files } = root;
        await this.#ctx.db.write((em) =>
            em.nativeDelete(VersionEntity, { id: { $in: rows.map(({ id }) => id) } })
        );
        for (const checksum of new Set(rows.map((row) => row.checksum))) {
            const left = await this.#ctx.db.read((em) => em.count(VersionEntity, { folder, checksum }));
            if (left === 0) {
                await filesystem(() => files.remove(privatePath('versions', checksum))).catch(allowMissing);
                this.#quotas.freed(root);
            }
        }
    }

    /** Removes contents that a crash left without a row. */
    async findRemains(): Promise<(signal: AbortSignal) => Promise<void>> {
        return async (signal) => {
            for (const root of this.#roots.all().filter(({ readOnly }) => !readOnly)) {
                signal.throwIfAborted();
                await this.#mutex
                    .run(root.folder, () => this.#sweep(root))
                    .catch((error: unknown) =>
                        this.#ctx.log.warn('The versions of a root cannot be read', {
                            folder: root.folder,
                            error: String(error)
                        })
                    );
            }
        };
    }

    async #sweep({ files, folder }: Root): Promise<void> {
        const stored = await files.list('.portico/versions').catch((error: unknown) => {
            if (!isMissing(error)) {
                throw error;
            }
            return [];
        });
        const rows = await this.#ctx.db.read((em) =>
            em.find(VersionEntity, { folder }, { fields: ['checksum'] })
        );
        const named = new Set(rows.map(({ checksum }) => checksum));
        for (const { name } of stored.filter((entry) => !named.has(entry.name))) {
            await files.remove(privatePath('versions', name));
        }
    }
}

/** A path itself and what may lie below it; `_` and `%` in it match more, which the caller leaves out. */
function below(
    path: string
): { readonly path: { readonly $like: string } } | Readonly<Record<string, never>> {
    return path === '' ? {} : { path: { $like: `${path}%` } };
}

async function exists({ files }: Root, path: string): Promise<boolean> {
    return files.stat(path).then(
        () => true,
        (error: unknown) => {
            if (isMissing(error)) {
                return false;
            }
            throw error;
        }
    );
}
