/** Installed apps, their revisions and backups, as they are kept. */
import { errors } from '@portico/sdk';
import { findRow, findRows } from '@portico/sdk/db';

import { type AppDocument, checkAppDocument } from '../catalogue/app-document.ts';
import type { FormValues } from '../catalogue/form.ts';
import {
    BackupEntity,
    type BackupRow,
    InstalledEntity,
    type InstalledRow,
    LeftoverEntity,
    type LeftoverRow,
    RevisionEntity,
    type RevisionRow
} from '../entities.ts';
import type { Ctx } from '../settings.ts';
import type { FileStore } from '../sources/files.ts';
import type { Exposure } from './planning/exposure.ts';
import type { Layout } from './planning/layout.ts';

/** A revision as it is read: all that is needed to deploy it again. */
export interface Revision {
    readonly revision: number;
    readonly version: string;
    readonly at: number;
    readonly by: string | null;
    readonly because: string;
    readonly document: AppDocument;
    readonly documentHash: string;
    readonly values: FormValues;
    readonly layout: Layout;
    readonly digests: Readonly<Record<string, string>>;
    readonly exposure: Exposure;
}

/** A change that is under way. It is kept while it lasts, so that a start after kill -9 knows what to finish or to undo. */
export interface Operation {
    readonly kind: 'install' | 'update' | 'change' | 'rollback' | 'restore' | 'backup' | 'remove';
    /** The snapshot that the data go back to; null: there is none, or not yet. */
    readonly snapshot: string | null;
    /** The stack or its data are no longer what the revision says. */
    readonly touched: boolean;
    /** What an install that is undone must not remove, and what a removal keeps. */
    readonly keepData: boolean;
    /** It ran before. */
    readonly wasRunning: boolean;
    /** The revision of the stack in `container` when it began; null: it had none. */
    readonly stackRevision: number | null;
    /** The version that is tried. */
    readonly to: string | null;
    /** Why it is taken back; null while it is not. */
    readonly why: string | null;
}

/** Revisions of an app that are kept; older ones that a backup belongs to stay as long as that. */
const revisionsKept = 10;

/** Why there is the first revision of an app that came with an import: nothing of it runs yet. */
export const importedBecause = 'imported';

/** Keeps what is installed. */
export class InstalledStore {
    readonly #ctx: Ctx;
    readonly #files: FileStore;

    constructor(ctx: Ctx, files: FileStore) {
        this.#ctx = ctx;
        this.#files = files;
    }

    async list(): Promise<readonly InstalledRow[]> {
        return this.#ctx.db.read((em) => findRows(em, InstalledEntity, {}, { orderBy: { name: 'asc' } }));
    }

    async find(name: string): Promise<InstalledRow | null> {
        return this.#ctx.db.read((em) => findRow(em, InstalledEntity, { name }));
    }

    /** @throws NOT_FOUND 40400 */
    async get(name: string): Promise<InstalledRow> {
        const row = await this.find(name);
        if (row === null) {
            throw errors.notFound('There is no app installed by that name');
        }
        return row;
    }

    /** @throws CONFLICT 40900 for a taken name */
    async create(row: InstalledRow): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            if ((await em.count(InstalledEntity, { name: row.name })) > 0) {
                throw errors.conflict('name');
            }
            await em.insert(InstalledEntity, row);
        });
    }

    async update(name: string, change: Partial<InstalledRow>): Promise<void> {
        await this.#ctx.db.write((em) =>
            em.nativeUpdate(InstalledEntity, { name }, change).then(() => undefined)
        );
    }

    /** Keeps how far a change has come; null: it has ended. */
    operate(name: string, operation: Operation | null, more: Partial<InstalledRow> = {}): Promise<void> {
        return this.update(name, {
            operation: operation === null ? null : JSON.stringify(operation),
            ...more
        });
    }

    async remove(name: string): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.nativeDelete(BackupEntity, { name });
            await em.nativeDelete(RevisionEntity, { name });
            await em.nativeDelete(InstalledEntity, { name });
        });
        await this.#files.prune();
    }

    /** Makes a revision the one that runs, and ends the change. */
    async commit(
        name: string,
        given: Omit<Revision, 'revision' | 'document' | 'at'> & { readonly at: number },
        change: Partial<InstalledRow>
    ): Promise<number> {
        const row = {
            ...{ name, version: given.version, setAt: given.at, setBy: given.by, because: given.because },
            document: given.documentHash,
            values: await this.#ctx.secrets.seal(JSON.stringify(given.values)),
            layout: JSON.stringify(given.layout),
            digests: JSON.stringify(given.digests),
            exposure: JSON.stringify(given.exposure)
        };
        const { domain, ssl, sslMode } = given.layout;
        const revision = await this.#ctx.db.write(async (em) => {
            const [newest] = await em.find(
                RevisionEntity,
                { name },
                { orderBy: { revision: 'desc' }, limit: 1 }
            );
            const revision = (newest?.revision ?? 0) + 1;
            await em.insert(RevisionEntity, { ...row, revision });
            await em.execute(
                `delete from revisions where name = ? and revision <= ?
                and revision not in (select revision from backups where name = ?)`,
                [name, revision - revisionsKept, name]
            );
            await em.nativeUpdate(
                InstalledEntity,
                { name },
                {
                    ...{ revision, domain, ssl, sslMode, operation: null, state: 'ready', lastError: null },
                    ...change
                }
            );
            return revision;
        });
        await this.#files.prune();
        return revision;
    }

    /** Newest first. */
    async history(name: string): Promise<readonly RevisionRow[]> {
        return this.#ctx.db.read((em) =>
            findRows(em, RevisionEntity, { name }, { orderBy: { revision: 'desc' } })
        );
    }

    /** @throws NOT_FOUND 40400 */
    async revision(name: string, revision: number): Promise<Revision> {
        const row = await this.#ctx.db.read((em) => findRow(em, RevisionEntity, { name, revision }));
        const file = row === null ? null : await this.#files.find(row.document);
        if (row === null || file === null) {
            throw errors.notFound(`There is no revision ${revision}`);
        }
        return {
            ...{
                revision: row.revision,
                version: row.version,
                at: row.setAt,
                by: row.setBy,
                because: row.because
            },
            documentHash: row.document,
            document: checkAppDocument(JSON.parse(file.body)),
            values: JSON.parse(await this.#ctx.secrets.open(row.values)) as FormValues,
            layout: JSON.parse(row.layout) as Layout,
            digests: JSON.parse(row.digests) as Readonly<Record<string, string>>,
            exposure: JSON.parse(row.exposure) as Exposure
        };
    }

    /** Ports that apps have, also those that are stopped or left data behind. */
    async reservedPorts(): Promise<ReadonlySet<number>> {
        const [revisions, kept] = await this.#ctx.db.read(async (em) => [
            await em.find(RevisionEntity, {}, { fields: ['layout'] }),
            await em.find(LeftoverEntity, {}, { fields: ['port'] })
        ]);
        const layouts = revisions.map(({ layout }) => JSON.parse(layout) as Layout);
        const installing = (await this.list()).map(({ port }) => port);
        return new Set([
            ...installing,
            ...layouts.flatMap(({ port, ports }) => [port, ...Object.values(ports)]),
            ...kept.map(({ port }) => port)
        ]);
    }

    /** Newest first. */
    async backups(name: string): Promise<readonly BackupRow[]> {
        return this.#ctx.db.read((em) => findRows(em, BackupEntity, { name }, { orderBy: { id: 'desc' } }));
    }

    async addBackup(row: Omit<BackupRow, 'id'>): Promise<number> {
        return this.#ctx.db.write((em) => em.insert(BackupEntity, row));
    }

    async dropBackup(id: number): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(BackupEntity, { id }).then(() => undefined));
    }

    async keptData(): Promise<readonly LeftoverRow[]> {
        return this.#ctx.db.read((em) => findRows(em, LeftoverEntity, {}, { orderBy: { name: 'asc' } }));
    }

    async leftover(name: string): Promise<LeftoverRow | null> {
        return (await this.keptData()).find((row) => row.name === name) ?? null;
    }

    async addLeftover(row: LeftoverRow): Promise<void> {
        await this.#ctx.db.write((em) => em.upsert(LeftoverEntity, row).then(() => undefined));
    }

    async dropLeftover(name: string): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(LeftoverEntity, { name }).then(() => undefined));
    }
}
