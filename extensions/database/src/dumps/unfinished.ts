/** What was begun on servers and is not finished: written down before it is made, so that a killed panel leaves nothing half done. */
import { isFailure } from '@portico/sdk';

import { UnfinishedEntity } from '../entities.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Ctx } from '../settings.ts';

/** Something that exists on a server only until work is done. */
export interface Temporary {
    readonly serverId: number;
    /** `swap` is a database that is to take the place of another one. */
    readonly type: 'database' | 'swap' | 'account';
    readonly name: string;
}

/** Keeps what has to be removed. */
export class Unfinished {
    readonly #ctx: Ctx;
    readonly #target: FindTarget;
    /** Numbers of what this generation works on. */
    readonly #active = new Set<number>();

    constructor(ctx: Ctx, target: FindTarget) {
        this.#ctx = ctx;
        this.#target = target;
    }

    /** Writes down what is about to be made. Returns its number, for `finish` and `remove`. */
    async begin({ serverId, type, name }: Temporary): Promise<number> {
        const id = await this.#ctx.db.write((em) => em.insert(UnfinishedEntity, { serverId, type, name }));
        this.#active.add(id);
        return id;
    }

    /** Says that it stays. */
    async finish(id: number): Promise<void> {
        await this.#ctx.db.write(async (em) => void (await em.nativeDelete(UnfinishedEntity, { id })));
        this.#active.delete(id);
    }

    /** Removes it from the server. Where that fails, `sweep` tries again. */
    async remove(id: number): Promise<void> {
        this.#active.delete(id);
        await this.sweep(id);
    }

    /** Removes what earlier generations left. A server that does not answer is asked again the next time. */
    async sweep(only?: number): Promise<void> {
        const rows = await this.#ctx.db.read((em) =>
            em.find(UnfinishedEntity, only === undefined ? {} : { id: only })
        );
        for (const { id, serverId, type, name } of rows.filter((row) => !this.#active.has(row.id))) {
            try {
                await this.#drop(serverId, type, name);
                await this.finish(id);
            } catch (error) {
                this.#ctx.log.warn('Something unfinished could not be removed from a server yet', {
                    serverId,
                    type,
                    name,
                    error
                });
            }
        }
    }

    async #drop(serverId: number, type: string, name: string): Promise<void> {
        try {
            const { kind, admin } = await this.#target(serverId);
            if (type === 'database') {
                await kind.databases.drop(admin, name);
            } else if (type === 'swap') {
                await kind.swap.reconcile(admin, name);
            } else {
                const all = await kind.accounts.list(admin);
                const found = all.find((each) => kind.accounts.format(each) === name);
                if (found !== undefined) {
                    await kind.accounts.closeGuest(admin, found);
                }
            }
        } catch (error) {
            // The server or the database is gone: so is what was to be removed.
            if (!isFailure(error) || error.reason !== 'NOT_FOUND') {
                throw error;
            }
        }
    }
}
