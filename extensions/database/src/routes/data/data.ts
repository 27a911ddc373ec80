/** Routes that take rows out of a table and bring them in. */
import { randomUUID } from 'node:crypto';

import { errors, joi, reply, type TaskRun } from '@portico/sdk';

import { readCsv, readJsonLines } from '../../data/csv.ts';
import { exportRows } from '../../data/export.ts';
import { importRows } from '../../data/import.ts';
import { readFile } from '../../dumps/runner.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { databaseParams, existingName } from '../parameters.ts';

const mostUpload = 4 * 1024 ** 3;
const types = { csv: 'text/csv', jsonl: 'application/jsonl', sql: 'application/sql' } as const;
const table = existingName().label('Table');
const schema = existingName().label('Schema').description('Default: public; MySQL has none');

/** Registers `export` and `import` of databases. */
export function registerDataRoutes(ctx: Ctx, services: Services): void {
    registerExport(ctx, services);
    registerImport(ctx, services);
}

function registerExport(ctx: Ctx, { target, readers }: Services): void {
    ctx.download({
        path: '/servers/{id}/databases/{db}/export',
        id: 'exportTable',
        access: 'query',
        summary: 'The rows of a table as a file',
        description:
            'CSV after RFC 4180 with a line of names; null is an unquoted empty field, bytes are base64.',
        ui: { title: 'Export' },
        validate: {
            params: databaseParams,
            query: joi.object({
                table: table.required(),
                schema,
                format: joi
                    .choice({ csv: 'CSV', jsonl: 'JSON lines', sql: 'SQL' })
                    .default('csv')
                    .label('Format')
            })
        },
        async handler({ params, query }) {
            const { kind, server, admin } = await target(params.id);
            const name = {
                database: params.db,
                table: query.table,
                schema: query.schema ?? kind.structure.defaultSchema(params.db)
            };
            await admin.use(params.db, (session) => kind.structure.table(session, name));
            const access = await readers.use(server, params.db, async (reader) => {
                // A table that the reader may not read is told before the download begins.
                await reader.use(params.db, (session) =>
                    session.all(`select 1 from ${kind.structure.quoteTable(name)} limit 0`)
                );
                return reader;
            });
            return {
                size: null,
                type: types[query.format],
                name: `${query.table.replace(/[^\w.-]/g, '_')}.${query.format}`,
                open: () => exportRows(kind, access, name, query.format)
            };
        }
    });
}

function registerImport(ctx: Ctx, services: Services): void {
    const { target, folder, dumps } = services;
    ctx.upload({
        method: 'POST',
        path: '/servers/{id}/databases/{db}/import',
        id: 'importTable',
        access: 'write',
        summary: 'Bring rows into a table, or run a file of SQL',
        description:
            'All rows of the file, or none. The first line of CSV names the columns. `replace` removes the rows that were there. SQL, also compressed with gzip, or a file of `pg_dump --format=custom`, has no `table`: its statements run as an account that owns this database only. PostgreSQL takes all of them or none, MySQL keeps those before one that fails.',
        answers: 'task',
        ui: { title: 'Import' },
        accepts: ['*/*'],
        maxBytes: mostUpload,
        returns: joi.any(),
        audit: { action: 'import', resource: 'rows' },
        validate: {
            params: databaseParams,
            query: joi.object({
                table: table.description('For CSV and JSON lines'),
                schema,
                format: joi
                    .choice({ csv: 'CSV', jsonl: 'JSON lines', sql: 'SQL' })
                    .default('csv')
                    .label('Format'),
                mode: joi.choice({ append: 'Add', replace: 'Replace all' }).default('append').label('Mode')
            })
        },
        async handler({ params, query, body, actor, audit }) {
            const { id: server, db: database } = params;
            audit({
                resourceId: [server, database, query.table].filter((part) => part !== undefined).join('/'),
                after: { mode: query.mode, format: query.format }
            });
            const { kind, admin } = await target(server);
            if (kind.databases.isSystem(database)) {
                throw errors.invalid([{ path: 'db', message: 'This database belongs to the server' }]);
            }
            const work = await workOf(services, params, query);
            await kind.databases.get(admin, database);
            const release =
                query.format === 'sql' ? dumps.reserve([`${server}/${database}`]) : () => undefined;
            const file = `uploads/${randomUUID()}`;
            try {
                // The body ends with the request, and the work goes on.
                await folder.write(file, body);
            } catch (error) {
                release();
                throw error;
            }
            const task = await ctx.task(
                {
                    kind: 'import',
                    title: `Import into ${query.table ?? database}`,
                    access: 'write',
                    actor,
                    resource: `${server}/${database}`
                },
                async (run) => {
                    try {
                        return await work(file, run);
                    } finally {
                        release();
                        await folder.remove(file);
                    }
                }
            );
            return reply.accepted(task);
        }
    });
}

interface ImportQuery {
    readonly table?: string | undefined;
    readonly schema?: string | undefined;
    readonly format: 'csv' | 'jsonl' | 'sql';
    readonly mode: 'append' | 'replace';
}
type ImportWork = (file: string, run: TaskRun) => Promise<object>;

/** What an import does with its file. @throws VALIDATION_FAILED 40001, NOT_FOUND 40400 */
async function workOf(
    { target, folder, restores }: Services,
    { id, db }: { readonly id: number; readonly db: string },
    { table: name, schema: given, format, mode }: ImportQuery
): Promise<ImportWork> {
    if (format === 'sql') {
        const strange = Object.entries({
            table: name,
            schema: given,
            mode: mode === 'replace' ? mode : undefined
        });
        const [found] = strange.find(([, value]) => value !== undefined) ?? [];
        if (found !== undefined) {
            throw errors.invalid([{ path: found, message: `A file of SQL has no ${found}` }]);
        }
        return (file, run) => restores.runIn(id, db, file, run);
    }
    if (name === undefined) {
        throw errors.invalid([{ path: 'table', message: 'Rows need a table' }]);
    }
    const { kind, admin } = await target(id);
    const place = { database: db, table: name, schema: given ?? kind.structure.defaultSchema(db) };
    await admin.use(db, (session) => kind.structure.table(session, place));
    return async (file, { signal, log, progress }) => {
        await using handle = await folder.files().open(file, 'r');
        const source = readFile(handle, signal);
        const rows = format === 'csv' ? readCsv(source) : readJsonLines(source);
        const done = await importRows(kind, admin, place, {
            rows,
            mode,
            signal,
            progress: (count) => progress(null, `${count} rows`)
        });
        log(`${done.rows} rows were inserted`);
        return done;
    };
}
