/** Routes of tables: their structure, their rows, and changes of rows. */
import { joi, nextCursorHeader, pages, reply } from '@portico/sdk';

import { applyChanges, type Change } from '../../data/changes.ts';
import { selectRows } from '../../data/rows.ts';
import type { TableName } from '../../kinds/kind.ts';
import type { Target } from '../../kinds/target.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { databaseParams, existingName, tableParams } from '../parameters.ts';
import { resultFields } from './console.ts';

const tableSchema = joi.object({
    schema: joi
        .string()
        .required()
        .label('Schema')
        .meta({ ui: { column: 2 } }),
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    type: joi.valid('table', 'view', 'materialized', 'foreign').required().label('Type'),
    rows: joi
        .number()
        .allow(null)
        .required()
        .label('Rows')
        .description('As the server estimates them')
        .meta({ ui: { column: 3 } }),
    sizeBytes: joi
        .number()
        .allow(null)
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 4 } })
});
const columnSchema = joi.object({
    name: joi.string().required().label('Column'),
    type: joi.string().required().label('Type'),
    nullable: joi.boolean().required().label('May be empty'),
    default: joi.string().allow(null, '').required().label('Default'),
    generated: joi.boolean().required().label('Made by the server')
});
const indexSchema = joi.object({
    name: joi.string().required().label('Index'),
    unique: joi.boolean().required().label('Unique'),
    columns: joi.array().items(joi.string()).required().label('Columns')
});
const keySchema = joi.object({
    name: joi.string().required().label('Key'),
    type: joi.valid('primary', 'unique', 'foreign').required().label('Type'),
    columns: joi.array().items(joi.string()).required().label('Columns'),
    references: joi
        .object({
            schema: joi.string().required().label('Schema'),
            table: joi.string().required().label('Table'),
            columns: joi.array().items(joi.string()).required().label('Columns')
        })
        .allow(null)
        .required()
        .label('Refers to')
});
const structureSchema = joi.object({
    columns: joi.array().items(columnSchema).required().label('Columns'),
    indexes: joi.array().items(indexSchema).required().label('Indexes'),
    keys: joi.array().items(keySchema).required().label('Keys'),
    ddl: joi.string().allow('').required().label('Definition').meta({ media: 'application/sql' })
});
const schema = existingName().label('Schema').description('Default: public; MySQL has none');
const values = joi.record(joi.any().allow(null));

/** Registers the routes below `/servers/{id}/databases/{db}/tables`. */
export function registerTableRoutes(ctx: Ctx, services: Services): void {
    registerStructure(ctx, services);
    registerRows(ctx, services);
    registerRowChanges(ctx, services);
}

function nameOf(
    { kind }: Target,
    { db, table }: { readonly db: string; readonly table: string },
    given: string | undefined
): TableName {
    return { database: db, table, schema: given ?? kind.structure.defaultSchema(db) };
}

function registerStructure(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases/{db}/tables',
        id: 'tables',
        access: 'read',
        summary: 'Tables of a database',
        ui: { title: 'Tables', order: 1, label: 'name', empty: 'No table yet' },
        returns: joi.array().items(tableSchema),
        validate: {
            params: databaseParams,
            query: joi.object({
                ...pages.query(),
                schema: existingName().label('Schema').description('Default: all')
            })
        },
        async handler({ params, query }) {
            const { kind, admin } = await target(params.id);
            await kind.databases.get(admin, params.db);
            const all = await admin.use(params.db, (session) =>
                kind.structure.tables(session, params.db, query.schema ?? null)
            );
            const { rows, page } = pages.sorted(all, query, (table) => `${table.schema}\0${table.name}`);
            return reply.list(
                rows.map((table) => ({ ...table })),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases/{db}/tables/{table}',
        id: 'table',
        access: 'read',
        summary: 'Structure of a table',
        returns: structureSchema,
        validate: { params: tableParams, query: joi.object({ schema }) },
        async handler({ params, query }) {
            const found = await target(params.id);
            const { kind, admin } = found;
            const { columns, indexes, keys, ddl } = await admin.use(params.db, (session) =>
                kind.structure.table(session, nameOf(found, params, query.schema))
            );
            return {
                columns: columns.map((column) => ({ ...column })),
                indexes: indexes.map((index) => ({ ...index, columns: [...index.columns] })),
                keys: keys.map((key) => ({
                    ...key,
                    columns: [...key.columns],
                    references:
                        key.references === null
                            ? null
                            : { ...key.references, columns: [...key.references.columns] }
                })),
                ddl
            };
        }
    });
}

function registerRows(ctx: Ctx, { target, console }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases/{db}/tables/{table}/rows',
        id: 'rows',
        access: 'query',
        summary: 'Rows of a table',
        description:
            'Each `filter` is `column:operator:value` with eq, ne, lt, lte, gt, gte, contains, null or notnull. Bytes are shown as `{ "base64": "…" }`.',
        ui: { title: 'Rows', role: 'card', order: 2 },
        returns: joi.object(resultFields),
        timeoutSeconds: 60,
        validate: {
            params: tableParams,
            query: joi.object({
                ...pages.query(),
                schema,
                sort: existingName().label('Sort by'),
                order: joi.choice({ asc: 'Ascending', desc: 'Descending' }).default('asc').label('Order'),
                filter: joi.typed<string[] | undefined>(
                    joi.array().items(joi.string().max(10_000)).single().max(20).label('Filter')
                )
            })
        },
        async handler({ params, query, signal }) {
            const found = await target(params.id);
            const { kind, admin, server } = found;
            const name = nameOf(found, params, query.schema);
            const structure = await admin.use(params.db, (session) => kind.structure.table(session, name));
            const { sort, order, limit, filter = [] } = query;
            const offset = pages.afterNumber(query) ?? 0;
            const statement = selectRows(kind, name, structure, { sort, order, filter, limit, offset });
            const result = await console.read(
                server,
                { ...statement, database: params.db, maxRows: limit + 1, timeoutSeconds: 30 },
                signal
            );
            const rows = result.rows.slice(0, limit);
            const hasMore = result.rows.length > limit || result.truncated;
            return reply.with(
                { columns: result.columns.map((column) => ({ ...column })), rows: rows as unknown[][] },
                hasMore ? { headers: { [nextCursorHeader]: pages.cursor(offset + rows.length) } } : {}
            );
        }
    });
}

function registerRowChanges(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/databases/{db}/tables/{table}/changes',
        id: 'changeRows',
        access: 'write',
        summary: 'Change rows of a table',
        description:
            'All changes, or none. `key` names one row, `expected` what it held when you saw it: where that differs, nothing is changed (41200).',
        answers: 'done',
        ui: { title: 'Change rows', role: 'action' },
        returns: joi.object({ affected: joi.number().integer().required().label('Changed rows') }),
        timeoutSeconds: 60,
        audit: { action: 'change', resource: 'rows' },
        validate: {
            params: tableParams,
            query: joi.object({ schema }),
            payload: joi.object({
                changes: joi
                    .array()
                    .items(
                        joi.object({
                            op: joi
                                .choice({ insert: 'Insert', update: 'Update', delete: 'Delete' })
                                .required()
                                .label('What'),
                            key: values.label('Key'),
                            set: values.label('Values'),
                            expected: values.label('Seen before')
                        })
                    )
                    .min(1)
                    .max(1_000)
                    .required()
                    .label('Changes')
            })
        },
        async handler({ params, query, payload, audit }) {
            audit({
                resourceId: `${params.id}/${params.db}/${params.table}`,
                after: { changes: payload.changes.length }
            });
            const found = await target(params.id);
            const name = nameOf(found, params, query.schema);
            const changes = payload.changes as readonly Change[]; // cells are any JSON
            return { ...(await applyChanges(found.kind, found.admin, name, changes)) };
        }
    });
}
