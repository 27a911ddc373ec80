/** Copies of databases, with rows that are masked before the copy has them. */
import { randomBytes } from 'node:crypto';

import { type Actor, errors, type TaskRun, type TaskView } from '@portico/sdk';

import type { Dumps } from '../dumps/dumps.ts';
import type { Restores } from '../dumps/restores.ts';
import { runScript, type ScriptChange } from '../dumps/runner.ts';
import type { Unfinished } from '../dumps/unfinished.ts';
import { ServerEntity } from '../entities.ts';
import type { ForeignKey, Kind } from '../kinds/kind.ts';
import type { FindTarget, Target } from '../kinds/target.ts';
import type { Ctx } from '../settings.ts';
import { type CloneContent, CloneRows, removeDangling } from './change.ts';
import { copyRows } from './copy-rows.ts';
import { InsertRows } from './insert-rows.ts';
import { MaskPlanner, type WantedMask } from './plan.ts';

/** What a clone is made of. */
export interface CloneInput {
    /** Of the new database. */
    readonly name: string;
    readonly mask: readonly WantedMask[];
    /** Rows of each table, and those that they refer to; null: all. */
    readonly rows: number | null;
}

/** What the cloning of databases works with. */
export interface ClonesOptions {
    readonly ctx: Ctx;
    readonly dumps: Dumps;
    readonly restores: Restores;
    readonly unfinished: Unfinished;
    readonly target: FindTarget;
}

/** What becomes of the rows of one database. */
interface Content extends CloneContent {
    readonly foreignKeys: readonly ForeignKey[];
}

const keyBytes = 32;
const foreignKeyStart = /^alter table [\s\S]* add constraint [\s\S]* foreign key /i;

/** Makes copies of databases, with rows that are masked before the copy has them. */
export class Clones {
    readonly #options: ClonesOptions;

    constructor(options: ClonesOptions) {
        this.#options = options;
    }

    /** Begins a task that makes one. @throws VALIDATION_FAILED 40001, NOT_FOUND 40400, CONFLICT 40900, IN_USE 40901 */
    async begin(serverId: number, database: string, input: CloneInput, actor: Actor): Promise<TaskView> {
        const { content, release } = await this.#prepare(serverId, database, input);
        return this.#options.ctx.task(
            {
                kind: 'clone',
                title: `Clone ${database} as ${input.name}`,
                access: 'write',
                resource: `${serverId}/${input.name}`,
                actor
            },
            async (run) => {
                try {
                    await this.#make(serverId, { database, name: input.name }, content, run);
                    return { serverId, database: input.name };
                } finally {
                    release();
                }
            }
        );
    }

    /** Makes one without masks, and waits until it is whole. @throws as {@link Clones.begin} */
    async copy(serverId: number, database: string, name: string): Promise<void> {
        const { content, release } = await this.#prepare(serverId, database, { name, mask: [], rows: null });
        const run = { signal: this.#options.ctx.signal, progress: () => undefined, log: () => undefined };
        try {
            await this.#make(serverId, { database, name }, content, run);
        } finally {
            release();
        }
    }

    async #prepare(
        serverId: number,
        database: string,
        { name, mask, rows }: CloneInput
    ): Promise<{ readonly content: Content; readonly release: () => void }> {
        const { dumps, target } = this.#options;
        const found = await target(serverId);
        const { kind, admin } = found;
        for (const [path, each] of Object.entries({ db: database, name })) {
            if (kind.databases.isSystem(each)) {
                throw errors.invalid([{ path, message: `${each} belongs to the server` }]);
            }
        }
        await kind.databases.get(admin, database);
        const all = await admin.use(null, (session) => kind.databases.list(session));
        if (all.some((each) => each.name === name)) {
            throw errors.conflict('name');
        }
        const key = mask.length === 0 ? Buffer.alloc(0) : await this.#key(found);
        const content = await admin.use(database, async (session) => {
            const foreignKeys = await kind.structure.foreignKeys(session, database);
            const masks = await new MaskPlanner(kind, session, key).plan(database, mask, foreignKeys);
            return { masks, rows, foreignKeys };
        });
        const release = dumps.reserve([`${serverId}/${database}`, `${serverId}/${name}`]);
        return { content, release };
    }

    /** The dump goes through the masks into the new database, and nowhere else. */
    async #make(
        serverId: number,
        { database, name }: { readonly database: string; readonly name: string },
        content: Content,
        { signal, progress, log }: Pick<TaskRun, 'signal' | 'progress' | 'log'>
    ): Promise<void> {
        const { dumps, restores, unfinished, target } = this.#options;
        const found = await target(serverId);
        const { kind, admin, server } = found;
        const { charset, collation } = await kind.databases.get(admin, database);
        const made = await unfinished.begin({ serverId, type: 'database', name });
        try {
            await kind.databases.create(admin, { name, owner: null, charset, collation });
            progress(null, 'Copying');
            const isChanged = content.masks.size > 0 || content.rows !== null;
            const source = dumps.read(server, { database, format: 'sql', isRowsOnly: isChanged }, signal);
            const change = isChanged ? changeOf(kind, database, content) : undefined;
            const result = await restores.asGuest(found, name, (session) =>
                runScript(kind.name, session, source, signal, change)
            );
            await unfinished.finish(made);
            log(
                `${result.statements} statements were run, ${result.skipped} on owners and rights were left out`
            );
        } catch (error) {
            await unfinished.remove(made);
            throw error;
        }
    }

    /** The secret that masks of this server are made with. */
    async #key({ server }: Target): Promise<Buffer> {
        const { ctx, target } = this.#options;
        if (server.maskKey === null) {
            const sealed = await ctx.secrets.seal(randomBytes(keyBytes).toString('base64'));
            await ctx.db.write(
                async (em) =>
                    void (await em.nativeUpdate(
                        ServerEntity,
                        { id: server.id, maskKey: null },
                        { maskKey: sealed }
                    ))
            );
        }
        const { maskKey } = (await target(server.id)).server;
        return Buffer.from(await ctx.secrets.open(maskKey ?? ''), 'base64');
    }
}

function changeOf(kind: Kind, database: string, content: Content): ScriptChange {
    const rows = new CloneRows(content);
    const isSample = content.rows !== null;
    if (kind.name === 'mysql') {
        const inserts = new InsertRows(rows, database);
        return {
            statements: (sql) => inserts.change(sql),
            data: (_sql, data) => data,
            end: () => inserts.end(),
            async after(session) {
                if (isSample) {
                    // A row goes before those that refer to it: they go in the next round.
                    await session.run('set foreign_key_checks = 0');
                    await removeDangling(kind, session, content.foreignKeys);
                }
            }
        };
    }
    let isPruned = !isSample;
    return {
        async statements(sql, session) {
            if (!isPruned && foreignKeyStart.test(sql)) {
                // All rows are there, and the server checks references from here on.
                isPruned = true;
                await removeDangling(kind, session, content.foreignKeys);
            }
            return [sql];
        },
        data: (sql, data) => copyRows(rows, sql, data),
        end: () => [],
        after: async () => undefined
    };
}
