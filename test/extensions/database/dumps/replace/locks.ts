/** Uses tables of a database while a dump replaces it, so that a test decides where that waits. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { until } from '../../harness.ts';
import type { Instance } from '../../instances.ts';

/** Statements but those that hold locks here. */
const other = /^(?!.*sleep)/s;
/** MariaDB's number for a session that is not there. */
const unknownThread = 1094;

/** Locks in one database. It is in the state `second` of `state.ts`. */
export class Locks {
    readonly #instance: Instance;
    readonly #database: string;

    constructor(instance: Instance, database: string) {
        this.#instance = instance;
        this.#database = database;
    }

    /** The sessions that wait for a table, and whose statement has these words. */
    async allWaiting(words = /./): Promise<readonly number[]> {
        const rows = await this.#instance.sql(
            "select id, info from information_schema.processlist where state like 'Waiting for table%'"
        );
        return rows.filter(({ info }) => words.test(String(info))).map(({ id }) => Number(id));
    }

    /** A session that waits for a table, once there is one whose statement has these words. */
    waiting(words = /./): Promise<number> {
        return until(`a session that waits: ${words.source}`, async () => (await this.allWaiting(words))[0]);
    }

    /** Takes a lock by a statement before one that sleeps, and gives what lets it go. The lock is held when this returns. */
    async hold(sql: string): Promise<() => Promise<void>> {
        const end = this.use(sql);
        await until(`the lock of ${sql}`, async () => {
            const rows = await this.#instance.sql(
                `select id from information_schema.processlist where state = 'User sleep' and instr(info, '${sql.slice(-12)}') > 0`
            );
            return rows.length > 0;
        });
        return end;
    }

    /** Ends a session that waits. One whose client is gone may have ended by itself: MariaDB looks once a second while it waits. */
    async kill(session: number): Promise<void> {
        await this.#instance.sql(`kill ${session}`).catch((error: unknown) => {
            if ((error as { readonly errno?: number }).errno !== unknownThread) {
                throw error;
            }
        });
    }

    /** Whether the tables of the dump have taken the place of those that were there. */
    hasMoved(): boolean {
        return existsSync(this.#file('orders.frm'));
    }

    /** Runs a statement that uses a table until it is ended. No two have the same last words. */
    use(sql: string): () => Promise<void> {
        const running = this.#instance.sql(sql, this.#database);
        running.catch(() => undefined);
        return async () => {
            const rows = await this.#instance.sql(
                `select id from information_schema.processlist where instr(info, '${sql.slice(-12)}') > 0`
            );
            for (const { id } of rows) {
                await this.#instance.sql(`kill ${String(id)}`).catch(() => undefined);
            }
            await running.catch(() => undefined);
        };
    }

    /**
     * Begins a replacement, has it wait with the move of the tables, and lets it go on behind the work. The last table has no triggers: the others have lost
     * theirs, and are locked.
     */
    async whileMoving<B, G>(
        begin: () => Promise<B>,
        work: (session: number) => Promise<G>
    ): Promise<{ readonly begun: B; readonly given: G }> {
        const end = await this.hold('lock tables z_plain read; select sleep(601)');
        try {
            const begun = await begin();
            await until('the end of the triggers', async () => !this.hasTrigger());
            return { begun, given: await work(await this.waiting(other)) };
        } finally {
            await end();
        }
    }

    /** As {@link Locks.whileMoving}, and has it wait once more behind the move. Gives what lets it go on. */
    async pastMoving<B>(
        begin: () => Promise<B>
    ): Promise<{ readonly begun: B; readonly session: number; readonly end: () => Promise<void> }> {
        const { begun, given: end } = await this.whileMoving(begin, async () => {
            const used = this.use('select id, sleep(602) from people');
            await this.waiting(/sleep\(602\)/);
            return used;
        });
        await until('the move', async () => this.hasMoved());
        return { begun, end, session: await this.waiting(other) };
    }

    /** Whether the table `people` has its trigger, as the files of the server say: a statement would wait. */
    hasTrigger(): boolean {
        return existsSync(this.#file('kept.TRN'));
    }

    /** The databases that a replacement needs as long as it runs. */
    async temporary(): Promise<readonly string[]> {
        const rows = await this.#instance.sql(
            "select schema_name as name from information_schema.schemata where schema_name like 'portico%'"
        );
        return rows.map(({ name }) => String(name));
    }

    #file(name: string): string {
        return join(this.#instance.folder, 'data', this.#database, name);
    }
}
