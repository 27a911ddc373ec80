/** Brings a dump back into a database that nothing uses until it is whole. */
import { randomUUID } from 'node:crypto';

import type { TaskRun } from '@portico/sdk';

import { makePassword } from '../credentials/passwords.ts';
import type { DumpRow } from '../entities.ts';
import type { FindTarget, Target } from '../kinds/target.ts';
import type { Connections } from '../servers/connections.ts';
import type { Ctx } from '../settings.ts';
import type { DataFolder } from './folder.ts';
import { checkScript, type Encoding, encodingOf, magicBytes, runScript, sqlOf } from './runner.ts';
import type { Unfinished } from './unfinished.ts';

/** What the restoring of dumps works with. */
export interface RestoresOptions {
    readonly ctx: Ctx;
    readonly folder: DataFolder;
    readonly connections: Connections;
    readonly unfinished: Unfinished;
    readonly target: FindTarget;
}

/** Where a dump goes. */
export interface Destination {
    readonly serverId: number;
    readonly database: string;
    /** The database is there, and stays whole until the new one is. */
    readonly replaces: boolean;
}

/** Restores a dump beside the database, and replaces the database when all of it is there. */
export class Restores {
    readonly #options: RestoresOptions;

    constructor(options: RestoresOptions) {
        this.#options = options;
    }

    /** @throws CLIENT_COMMAND 42253 before anything is made; SQL_FAILED 42250, and nothing is left */
    async run(
        { file, encoding }: Pick<DumpRow, 'file' | 'encoding'>,
        { serverId, database, replaces }: Destination,
        { signal, progress, log }: Pick<TaskRun, 'signal' | 'progress' | 'log'>
    ): Promise<void> {
        const { ctx, folder, unfinished, target } = this.#options;
        const found = await target(serverId);
        const { kind, admin } = found;
        // What replaces a database is in the same encoding.
        const { charset, collation } = replaces
            ? await kind.databases.get(admin, database)
            : { charset: null, collation: null };
        await using handle = await folder.files().open(file, 'r');
        const read = () => sqlOf(ctx, handle, encoding as Encoding, signal);
        progress(0, 'Checking');
        await checkScript(kind.name, read());
        const name = replaces ? `portico_new_${randomUUID().slice(0, 8)}` : database;
        const made = await unfinished.begin({ serverId, type: replaces ? 'swap' : 'database', name });
        try {
            await kind.databases.create(admin, { name, owner: null, charset, collation });
            progress(0.2, 'Restoring');
            const result = await this.asGuest(found, name, (session) =>
                runScript(kind.name, session, read(), signal)
            );
            log(
                `${result.statements} statements were run, ${result.skipped} on owners and rights were left out`
            );
            if (replaces) {
                progress(0.9, 'Replacing');
                await kind.swap.run(admin, database, name);
                await unfinished.remove(made);
            } else {
                await unfinished.finish(made);
            }
        } catch (error) {
            await unfinished.remove(made);
            throw error;
        }
    }

    /**
     * Runs the statements of a file in a database that is there, as an account that owns this one only. PostgreSQL takes all of them or none; MySQL
     * cannot take back what makes or changes tables. @throws CLIENT_COMMAND 42253 before anything runs; SQL_FAILED 42250
     */
    async runIn(
        serverId: number,
        database: string,
        file: string,
        { signal, progress, log }: Pick<TaskRun, 'signal' | 'progress' | 'log'>
    ): Promise<{ readonly statements: number }> {
        const { ctx, folder, target } = this.#options;
        const found = await target(serverId);
        const { kind } = found;
        await using handle = await folder.files().open(file, 'r');
        const first = Buffer.alloc(magicBytes);
        await handle.read(first, 0, magicBytes, 0);
        const read = () => sqlOf(ctx, handle, encodingOf(kind.name, first), signal);
        progress(0, 'Checking');
        await checkScript(kind.name, read());
        progress(0.2, 'Running');
        const { statements, skipped } = await this.asGuest(found, database, async (session) => {
            if (kind.name === 'mysql') {
                return runScript(kind.name, session, read(), signal);
            }
            await session.run('begin');
            const done = await runScript(kind.name, session, read(), signal);
            await session.run('commit');
            return done;
        });
        log(`${statements} statements were run, ${skipped} on owners and rights were left out`);
        return { statements };
    }

    /** Runs work as an account that owns this database only, and goes with the work. */
    async asGuest<T>(
        { kind, admin, server }: Target,
        database: string,
        work: (session: Parameters<Parameters<Target['admin']['use']>[1]>[0]) => Promise<T>
    ): Promise<T> {
        const { connections, unfinished } = this.#options;
        const password = makePassword();
        const account = kind.accounts.guestOf(database);
        const made = await unfinished.begin({
            serverId: server.id,
            type: 'account',
            name: kind.accounts.format(account)
        });
        try {
            await kind.accounts.createGuest(admin, account, { database, password });
            return await connections.as(server, { username: account.username, password }).use(database, work);
        } finally {
            await unfinished.remove(made);
        }
    }
}
