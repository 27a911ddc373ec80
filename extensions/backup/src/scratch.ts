/** Where copies lie while a run, a restore or a drill is under way. */
import { errors, type Files } from '@portico/sdk';

import type { Ctx } from './settings.ts';

const ownName = 'scratch';
const sharedName = 'portico-backup-scratch';
/** What tells backups to leave a folder out (bford.info/cachedir): the panel's own copy of this plugin's data does. */
const cacheTag =
    'Signature: 8a477f597d28d172789f06886806bc55\n# Copies of Portico that live as long as a run.\n';
/** Bytes that stay free. */
const reserve = 64 * 1024 * 1024;

/** The folder for copies: the plugin's own, or the one in the setting. */
export class Scratch {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Absolute. */
    get folder(): string {
        const { scratchFolder } = this.#ctx.settings;
        return scratchFolder === undefined
            ? `${this.#ctx.dataDir}/${ownName}`
            : `${scratchFolder}/${sharedName}`;
    }

    /** Files below the folder; it must have been made. */
    get files(): Files {
        return this.#ctx.files(this.folder);
    }

    /** Makes a new and empty folder in it, and returns its absolute path. */
    async make(name: string): Promise<string> {
        await this.remove(name);
        const { folder } = this;
        const parent = this.#ctx.files(folder.slice(0, folder.lastIndexOf('/')));
        const base = folder.slice(folder.lastIndexOf('/') + 1);
        if ((await parent.stat(base).catch(() => null)) === null) {
            await parent.createFolder(base, { mode: 0o700 });
        }
        await using tag = await this.files.open('CACHEDIR.TAG', 'w', 0o600);
        await tag.writeFile(cacheTag);
        await this.files.createFolder(name, { mode: 0o700, parents: true });
        return `${folder}/${name}`;
    }

    /** Removes a folder in it, if it is there. */
    async remove(name: string): Promise<void> {
        await this.files.remove(name, { recursive: true }).catch((error: unknown) => {
            if ((error as { reason?: unknown }).reason !== 'NOT_FOUND') {
                throw error;
            }
        });
    }

    /** Removes what an earlier process left. */
    async clear(): Promise<void> {
        const entries = await this.files.list('').catch(() => []);
        for (const { name } of entries) {
            await this.remove(name);
        }
    }

    /** Bytes that fit in it. */
    async room(): Promise<number> {
        return (await this.files.space()).available - reserve;
    }

    /** @throws STORAGE_FULL 50700 unless so many bytes fit in it */
    async requireRoom(bytes: number): Promise<void> {
        if (bytes > (await this.room())) {
            throw errors.storageFull();
        }
    }
}
