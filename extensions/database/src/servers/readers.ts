/** The account of the console that reads. The server itself refuses it everything else. */
import { isFailure } from '@portico/sdk';

import { makePassword } from '../credentials/passwords.ts';
import { ServerEntity, type ServerRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Access } from '../kinds/kind.ts';
import { kinds } from '../kinds/kinds.ts';
import type { Ctx } from '../settings.ts';
import type { Connections } from './connections.ts';

const readerName = 'portico_reader';

/** Makes readers and gives them what they may read. */
export class Readers {
    readonly #ctx: Ctx;
    readonly #connections: Connections;
    /** Databases whose reader has its rights: `server/database`. */
    readonly #prepared = new Set<string>();

    constructor(ctx: Ctx, connections: Connections) {
        this.#ctx = ctx;
        this.#connections = connections;
    }

    /**
     * Runs work as the reader. When the server refuses it, the rights of the reader are given anew, because tables may have been made since, and the
     * work runs once more: it only reads.
     *
     * @throws READ_ONLY 42251 where there is no reader and the panel may not make one
     */
    async use<T>(server: ServerRow, database: string, work: (access: Access) => Promise<T>): Promise<T> {
        const kind = kinds[server.kind];
        const key = `${server.id}/${database}`;
        const isFresh = !this.#prepared.has(key);
        const reader = await this.#prepare(server, database, isFresh);
        try {
            return await work(reader);
        } catch (error) {
            const isReaders = isFailure(error) && (kind.isDenied(error) || error.reason === 'LOGIN_FAILED');
            if (isFresh || !isReaders) {
                throw error;
            }
            this.#prepared.delete(key);
            return work(await this.#prepare(server, database, true));
        }
    }

    /** Forgets that the reader has its rights in a database, which is gone. */
    forget(id: number, database: string): void {
        this.#prepared.delete(`${id}/${database}`);
    }

    async #prepare(server: ServerRow, database: string, isFresh: boolean): Promise<Access> {
        const kind = kinds[server.kind];
        const isOwn = server.readerName === null || server.readerMade;
        const row = isOwn && (isFresh || server.readerPassword === null) ? await this.#make(server) : server;
        const account = {
            username: row.readerName ?? readerName,
            host: server.kind === 'mysql' ? '%' : null
        };
        if (isOwn && isFresh && !kind.databases.isSystem(database)) {
            await this.#give(server, () =>
                kind.accounts.ensureLevel(this.#connections.admin(server), account, {
                    database,
                    level: 'read'
                })
            );
        }
        this.#prepared.add(`${server.id}/${database}`);
        const password = row.readerPassword === null ? '' : await this.#ctx.secrets.open(row.readerPassword);
        return this.#connections.as(server, { username: account.username, password });
    }

    /** The row with the reader that the panel made. Its password is stored before it is set, and set again when the server refuses it. */
    async #make(server: ServerRow): Promise<ServerRow> {
        const { accounts } = kinds[server.kind];
        const account = { username: readerName, host: server.kind === 'mysql' ? '%' : null };
        const access = this.#connections.admin(server);
        const stored =
            server.readerPassword === null ? null : await this.#ctx.secrets.open(server.readerPassword);
        if (stored !== null && (await this.#logsIn(server, { username: readerName, password: stored }))) {
            return server;
        }
        const password = stored ?? makePassword();
        const change = {
            readerName,
            readerPassword: server.readerPassword ?? (await this.#ctx.secrets.seal(password)),
            readerMade: true
        };
        await this.#ctx.db.write(
            async (em) => void (await em.nativeUpdate(ServerEntity, { id: server.id }, change))
        );
        await this.#give(server, async () => {
            try {
                await accounts.create(access, account, password);
            } catch (error) {
                if (!isFailure(error) || error.reason !== 'CONFLICT') {
                    throw error;
                }
                await accounts.setPassword(access, account, password);
                await accounts.setLocked(access, account, false);
            }
        });
        return { ...server, ...change };
    }

    async #logsIn(server: ServerRow, login: { username: string; password: string }): Promise<boolean> {
        try {
            await this.#connections.as(server, login).use(null, async () => undefined);
            return true;
        } catch (error) {
            if (isFailure(error) && error.reason === 'LOGIN_FAILED') {
                return false;
            }
            throw error;
        }
    }

    async #give(server: ServerRow, work: () => Promise<void>): Promise<void> {
        try {
            await work();
        } catch (error) {
            throw kinds[server.kind].isDenied(error)
                ? fail.READ_ONLY(
                      {
                          why: `the server has no account that may only read, and ${server.username} may not make one: give a reader`
                      },
                      { cause: error }
                  )
                : error;
        }
    }
}
