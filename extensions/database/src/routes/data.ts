/** Routes that take rows out of a table and bring them in. */
import { randomUUID } from 'node:crypto';

import { errors, joi, reply } from '@portico/sdk';

import { readCsv, readJsonLines } from '../data/csv.ts';
import { exportRows } from '../data/export.ts';
import { importRows } from '../data/import.ts';
import { readFile } from '../dumps/runner.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { databaseParams, existingName } from './parameters.ts';

const mostUpload = 4 * 1024 ** 3;
const types = { csv: 'text/csv', jsonl: 'application/jsonl', sql: 'application/sql' } as const;
const table = existingName().required().label('Table');
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
                table,
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

function registerImport(ctx: Ctx, { target, folder }: Services): void {
    ctx.upload({
        method: 'POST',
        path: '/servers/{id}/databases/{db}/import',
        id: 'importTable',
        access: 'write',
        summary: 'Bring rows into a table',
        description:
            'All rows of the file, or none. The first line of CSV names the columns. `replace` removes the rows that were there.',
        answers: 'task',
        ui: { title: 'Import' },
        accepts: ['*/*'],
        maxBytes: mostUpload,
        returns: joi.any(),
        audit: { action: 'import', resource: 'rows' },
        validate: {
            params: databaseParams,
            query: joi.object({
                table,
                schema,
                format: joi.choice({ csv: 'CSV', jsonl: 'JSON lines' }).default('csv').label('Format'),
                mode: joi.choice({ append: 'Add', replace: 'Replace all' }).default('append').label('Mode')
            })
        },
        async handler({ params, query, body, actor, audit }) {
            audit({ resourceId: `${params.id}/${params.db}/${query.table}`, after: { mode: query.mode } });
            const { kind, admin } = await target(params.id);
            const name = {
                database: params.db,
                table: query.table,
                schema: query.schema ?? kind.structure.defaultSchema(params.db)
            };
            if (kind.databases.isSystem(params.db)) {
                throw errors.invalid([{ path: 'db', message: 'This database belongs to the server' }]);
            }
            await admin.use(params.db, (session) => kind.structure.table(session, name));
            const file = `uploads/${randomUUID()}`;
            // The body ends with the request, and the work goes on.
            await folder.write(file, body);
            const task = await ctx.task(
                {
                    kind: 'import',
                    title: `Import into ${query.table}`,
                    access: 'write',
                    actor,
                    resource: `${params.id}/${params.db}`
                },
                async ({ signal, log, progress }) => {
                    try {
                        await using handle = await folder.files().open(file, 'r');
                        const source = readFile(handle, signal);
                        const rows = query.format === 'csv' ? readCsv(source) : readJsonLines(source);
                        const done = await importRows(kind, admin, name, {
                            rows,
                            mode: query.mode,
                            signal,
                            progress: (count) => progress(null, `${count} rows`)
                        });
                        log(`${done.rows} rows were inserted`);
                        return done;
                    } finally {
                        await folder.remove(file);
                    }
                }
            );
            return reply.accepted(task);
        }
    });
}
