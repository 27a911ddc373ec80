/** Dumps of databases: made, taken in, kept, and restored. */
import { createHash, randomUUID } from 'node:crypto';
import { createGzip } from 'node:zlib';

import { type Actor, errors, type Files, type TaskRun, type TaskView } from '@portico/sdk';
import { findRows } from '@portico/sdk/db';

import { DumpEntity, type DumpRow, type ServerRow } from '../entities.ts';
import { fail } from '../errors.ts';
import type { KindName } from '../kinds/kind.ts';
import type { FindTarget } from '../kinds/target.ts';
import type { Ctx } from '../settings.ts';
import { dumpCall, toolUser } from './clients.ts';
import type { DataFolder } from './folder.ts';
import type { Restores } from './restores.ts';
import { type Encoding, encodingOf, magicBytes } from './runner.ts';
import { tailOf, through } from './streams.ts';

/** How a dump is written: `native` is small and made for restoring, `sql` can be read. */
export type DumpFormat = 'native' | 'sql';

/** What the dumps need. */
export interface DumpsOptions {
    readonly ctx: Ctx;
    readonly folder: DataFolder;
    readonly restores: Restores;
    readonly target: FindTarget;
}

/** Makes, lists and removes the dumps of databases. */
export class Dumps {
    readonly #options: DumpsOptions;
    /** Databases that are being dumped or restored: `server/database`. */
    readonly #busy = new Set<string>();

    constructor(options: DumpsOptions) {
        this.#options = options;
    }

    /** Newest first, and one more than `limit` where there are more. */
    async list(filter: {
        readonly serverId?: number | undefined;
        readonly before: number | null;
        readonly limit: number;
    }): Promise<readonly DumpRow[]> {
        const where = {
            ...(filter.serverId === undefined ? {} : { serverId: filter.serverId }),
            ...(filter.before === null ? {} : { id: { $lt: filter.before } })
        };
        return this.#options.ctx.db.read((em) =>
            findRows(em, DumpEntity, where, { orderBy: { id: 'desc' }, limit: filter.limit + 1 })
        );
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<DumpRow> {
        const [found] = await this.#options.ctx.db.read((em) => findRows(em, DumpEntity, { id }));
        if (found === undefined) {
            throw errors.notFound('There is no dump of that number');
        }
        return found;
    }

    /** Removes a dump with its file. */
    async remove(id: number): Promise<DumpRow> {
        const row = await this.get(id);
        if (row.state === 'running') {
            throw errors.inUse('the task that makes it');
        }
        await this.#forget(row);
        return row;
    }

    /** Begins a task that dumps databases. @throws IN_USE 40901, NOT_FOUND 40400 */
    async begin(
        serverId: number,
        input: { readonly databases: readonly string[]; readonly format: DumpFormat },
        actor?: Actor
    ): Promise<TaskView> {
        const { server, kind, admin } = await this.#options.target(serverId);
        for (const database of input.databases) {
            if (kind.databases.isSystem(database)) {
                throw errors.invalid([{ path: 'databases', message: `${database} belongs to the server` }]);
            }
            await kind.databases.get(admin, database);
        }
        const release = this.reserve(input.databases.map((database) => `${serverId}/${database}`));
        return this.#options.ctx.task(
            {
                kind: 'dump',
                title: `Dump ${input.databases.join(', ')}`,
                access: 'operate',
                resource: `${serverId}`,
                ...(actor === undefined ? {} : { actor })
            },
            async (run) => {
                try {
                    const dumpIds: number[] = [];
                    for (const [index, database] of input.databases.entries()) {
                        run.progress(index / input.databases.length, `Dumping ${database}`);
                        dumpIds.push((await this.make(server, database, input.format, run.signal)).id);
                    }
                    return { dumpIds };
                } finally {
                    release();
                }
            }
        );
    }

    /** Takes databases for one piece of work. @throws IN_USE 40901 */
    reserve(keys: readonly string[]): () => void {
        const taken = keys.find((key) => this.#busy.has(key));
        if (taken !== undefined) {
            throw errors.inUse(`a dump or restore of ${taken.slice(taken.indexOf('/') + 1)}`);
        }
        keys.forEach((key) => this.#busy.add(key));
        return () => keys.forEach((key) => this.#busy.delete(key));
    }

    /** Dumps one database into a file of the plugin. */
    async make(
        server: ServerRow,
        database: string,
        format: DumpFormat,
        signal: AbortSignal
    ): Promise<DumpRow> {
        const { ctx, folder } = this.#options;
        const row = {
            serverId: server.id,
            kind: server.kind,
            database,
            format,
            encoding: encodingFor(server.kind, format),
            file: `dumps/${randomUUID()}`,
            bytes: 0,
            sha256: '',
            state: 'running' as const,
            createdAt: Date.now()
        };
        const id = await ctx.db.write((em) => em.insert(DumpEntity, row));
        const hash = createHash('sha256');
        try {
            const bytes = await folder.write(
                row.file,
                this.read(server, { database, format }, signal),
                (chunk) => void hash.update(chunk)
            );
            const done = { bytes, sha256: hash.digest('hex'), state: 'ready' as const };
            await ctx.db.write(async (em) => void (await em.nativeUpdate(DumpEntity, { id }, done)));
            await this.#expire(server, database);
            return { ...row, ...done, id };
        } catch (error) {
            await ctx.db.write(async (em) => void (await em.nativeDelete(DumpEntity, { id })));
            throw error;
        }
    }

    /** The bytes of a dump as the program writes them. */
    async *read(
        server: ServerRow,
        what: Parameters<typeof dumpCall>[3],
        signal: AbortSignal
    ): AsyncGenerator<Uint8Array> {
        const { ctx } = this.#options;
        const password = server.password === null ? '' : await ctx.secrets.open(server.password);
        const { file, args, env, privateFiles } = await dumpCall(ctx, server, password, what);
        await using child = await ctx.spawn(file, args, { ...toolUser, env, privateFiles, signal });
        await child.stdin.close();
        const said = tailOf(child.stderr);
        const isZipped = encodingFor(server.kind, what.format) === 'gzip';
        yield* isZipped ? through(child.stdout, createGzip({ level: 1 })) : child.stdout;
        const { code } = await child.exited;
        signal.throwIfAborted();
        if (code !== 0) {
            throw fail.SQL_FAILED({
                sqlState: null,
                message: (await said) || `the program ended with ${code}`
            });
        }
    }

    /** Dumps one database into a file of a folder that was lent. */
    async writeTo(
        files: Files,
        path: string,
        { server, database }: { readonly server: ServerRow; readonly database: string }
    ): Promise<number> {
        const release = this.reserve([`${server.id}/${database}`]);
        const handle = await files.open(path, 'wx', 0o600);
        let bytes = 0;
        try {
            for await (const chunk of this.read(
                server,
                { database, format: 'native' },
                this.#options.ctx.signal
            )) {
                await handle.writeFile(chunk);
                bytes += chunk.byteLength;
            }
            return bytes;
        } finally {
            release();
            await handle.close();
        }
    }

    /** Restores what `writeTo` wrote into a new database. */
    async takeBack(server: ServerRow, database: string, source: AsyncIterable<Uint8Array>): Promise<void> {
        const release = this.reserve([`${server.id}/${database}`]);
        const row = await this.upload(server.kind, database, source);
        try {
            await this.#options.restores.run(
                row,
                { serverId: server.id, database, replaces: false },
                { signal: this.#options.ctx.signal, progress: () => undefined, log: () => undefined }
            );
        } finally {
            release();
            await this.#forget(row);
        }
    }

    /** Takes a file in. */
    async upload(kind: KindName, name: string, body: AsyncIterable<Uint8Array>): Promise<DumpRow> {
        const { ctx, folder } = this.#options;
        const file = `dumps/${randomUUID()}`;
        const hash = createHash('sha256');
        let first = Buffer.alloc(0);
        const bytes = await folder.write(file, body, (chunk) => {
            hash.update(chunk);
            if (first.length < magicBytes) {
                first = Buffer.concat([first, chunk.subarray(0, magicBytes)]);
            }
        });
        const encoding = encodingOf(kind, first);
        const row = {
            serverId: null,
            kind,
            database: name,
            format: encoding === 'sql' ? ('sql' as const) : ('native' as const),
            encoding,
            file,
            bytes,
            sha256: hash.digest('hex'),
            state: 'ready' as const,
            createdAt: Date.now()
        };
        const id = await ctx.db.write((em) => em.insert(DumpEntity, row));
        return { ...row, id };
    }

    /** Begins a task that restores a dump. @throws CONFLICT 40900, IN_USE 40901 */
    async restore(
        id: number,
        {
            serverId,
            database,
            replace
        }: { readonly serverId: number; readonly database: string; readonly replace: boolean },
        actor: Actor
    ): Promise<TaskView> {
        const { ctx, restores, target } = this.#options;
        const row = await this.get(id);
        const { server, kind, admin } = await target(serverId);
        if (row.state !== 'ready' || row.kind !== server.kind) {
            throw errors.invalid([
                { path: 'serverId', message: 'The dump is of another kind of server, or not ready' }
            ]);
        }
        if (kind.databases.isSystem(database)) {
            throw errors.invalid([{ path: 'database', message: 'This database belongs to the server' }]);
        }
        const all = await admin.use(null, (session) => kind.databases.list(session));
        const isThere = all.some(({ name }) => name === database);
        if (isThere && !replace) {
            throw errors.conflict('database');
        }
        if (isThere) {
            await kind.swap.check(admin, database);
        }
        const release = this.reserve([`${serverId}/${database}`]);
        return ctx.task(
            {
                kind: 'restore',
                title: `Restore ${database}`,
                access: 'write',
                resource: `${serverId}/${database}`,
                actor
            },
            async (run: TaskRun) => {
                try {
                    await restores.run(row, { serverId, database, replaces: isThere }, run);
                    return { serverId, database };
                } finally {
                    release();
                }
            }
        );
    }

    /** Removes what a killed panel left half done. */
    async sweep(): Promise<void> {
        const { ctx } = this.#options;
        for (const row of await ctx.db.read((em) => findRows(em, DumpEntity, { state: 'running' }))) {
            await this.#forget(row);
        }
    }

    /** Keeps the newest dumps of each database. */
    async #expire({ id: serverId, dumpSchedule }: ServerRow, database: string): Promise<void> {
        const rows = await this.#options.ctx.db.read((em) =>
            findRows(em, DumpEntity, { serverId, database, state: 'ready' }, { orderBy: { id: 'desc' } })
        );
        for (const row of rows.slice(dumpSchedule?.keep ?? this.#options.ctx.settings.dumpsKept)) {
            await this.#forget(row);
        }
    }

    /** The file goes first: a row without a file can be removed again, a file without a row is never found. */
    async #forget({ id, file }: DumpRow): Promise<void> {
        await this.#options.folder.remove(file);
        await this.#options.ctx.db.write(async (em) => void (await em.nativeDelete(DumpEntity, { id })));
    }
}

function encodingFor(kind: KindName, format: DumpFormat): Encoding {
    return format === 'sql' ? 'sql' : kind === 'postgresql' ? 'pg_dump' : 'gzip';
}
