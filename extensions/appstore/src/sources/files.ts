/** Documents and icons, kept by their SHA-256. */
import { createHash } from 'node:crypto';

import { findRow } from '@portico/sdk/db';

import { FileEntity, type FileRow } from '../entities.ts';
import type { Ctx } from '../settings.ts';

/** SHA-256 of some bytes, in small hex digits. */
export const sha256Of = (bytes: string | Uint8Array): string =>
    createHash('sha256').update(bytes).digest('hex');

/** Keeps files; those that no app, revision or leftover needs any more go. */
export class FileStore {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Those of some hashes that are there. */
    async known(hashes: readonly string[]): Promise<ReadonlySet<string>> {
        const rows = await this.#ctx.db.read((em) =>
            em.execute<{ sha256: string }[]>(
                'select sha256 from files where sha256 in (select value from json_each(?))',
                [JSON.stringify(hashes)]
            )
        );
        return new Set(rows.map(({ sha256 }) => sha256));
    }

    /** The file of a hash; null when it is not there. */
    async find(sha256: string): Promise<FileRow | null> {
        return this.#ctx.db.read((em) => findRow(em, FileEntity, { sha256 }));
    }

    async add(files: readonly FileRow[]): Promise<void> {
        if (files.length > 0) {
            await this.#ctx.db.write((em) => em.upsertMany(FileEntity, [...files]).then(() => undefined));
        }
    }

    /** Removes what is not needed any more. */
    async prune(): Promise<void> {
        await this.#ctx.db.write((em) =>
            em
                .execute(
                    `delete from files where sha256 not in (select document from apps where document is not null
                    union select icon from apps where icon is not null union select document from revisions)`
                )
                .then(() => undefined)
        );
    }
}
