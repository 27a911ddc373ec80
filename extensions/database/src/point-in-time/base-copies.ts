/** Base copies: their rows, and their folders. */
import { findRows } from '@portico/sdk/db';

import { BaseCopyEntity, type BaseCopyRow } from '../entities.ts';
import type { MachineAccount } from '../managed/accounts.ts';
import type { Folders } from '../managed/folders.ts';
import type { Ctx } from '../settings.ts';

/** Makes, lists and removes them. */
export class BaseCopies {
    readonly #ctx: Ctx;
    readonly #folders: Folders;

    constructor(ctx: Ctx, folders: Folders) {
        this.#ctx = ctx;
        this.#folders = folders;
    }

    /** Those of a server that are complete, oldest first. */
    async ready(serverId: number): Promise<readonly BaseCopyRow[]> {
        return this.#find({ serverId, readyAt: { $ne: null } });
    }

    /** Makes one: `fill` copies into its folder, which is empty, and says how large it is and with which file of the log it begins. */
    async make(
        serverId: number,
        account: MachineAccount | null,
        fill: (folder: string) => Promise<Pick<BaseCopyRow, 'bytes' | 'firstLog'>>
    ): Promise<void> {
        const row = { serverId, bytes: 0, firstLog: '', readyAt: null };
        const id = await this.#ctx.db.write((em) => em.insert(BaseCopyEntity, row));
        try {
            const filled = await fill(await this.#folders.createBase(serverId, id, account));
            const change = { ...filled, readyAt: Date.now() };
            await this.#ctx.db.write(
                async (em) => void (await em.nativeUpdate(BaseCopyEntity, { id }, change))
            );
        } catch (error) {
            await this.remove({ ...row, id });
            throw error;
        }
    }

    /** The folder goes first: a row without a folder can be removed again. */
    async remove({ id, serverId }: BaseCopyRow): Promise<void> {
        await this.#folders.removeBase(serverId, id);
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(BaseCopyEntity, { id })));
    }

    /** Forgets all of a server, whose folders are gone. */
    async forget(serverId: number): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(BaseCopyEntity, { serverId })));
    }

    /** Removes what a killed panel left half done. */
    async sweep(): Promise<void> {
        for (const row of await this.#find({ readyAt: null })) {
            await this.remove(row);
        }
    }

    #find(where: object): Promise<readonly BaseCopyRow[]> {
        return this.#ctx.db.read((em) => findRows(em, BaseCopyEntity, where, { orderBy: { id: 'asc' } }));
    }
}
