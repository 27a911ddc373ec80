/** Routes of dumps. */
import { joi, pages, reply } from '@portico/sdk';

import type { DumpRow } from '../../entities.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { existingName, newName, serverId } from '../parameters.ts';

const formatWords = { native: 'Small, for restoring', sql: 'SQL, to be read' } as const;
const mostUpload = 4 * 1024 ** 3;
const dumpSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    serverId: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Server')
        .meta({ ui: { ref: 'database.servers' } }),
    kind: joi.string().required().label('Kind'),
    database: joi
        .string()
        .required()
        .label('Database')
        .meta({ ui: { column: 1 } }),
    format: joi.choice(formatWords).required().label('Format'),
    bytes: joi
        .number()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 2 } }),
    sha256: joi.string().allow('').required().label('SHA-256'),
    state: joi
        .valid('running', 'ready')
        .required()
        .label('State')
        .meta({ ui: { column: 3, tones: { running: 'busy', ready: 'good' } } }),
    createdAt: joi
        .string()
        .isoDate()
        .required()
        .label('Made')
        .meta({ ui: { column: 4 } })
});
const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Dump')
        .meta({ ui: { ref: 'database.dumps' } })
});

/** Registers the routes below `/dumps`. */
export function registerDumpRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerCreation(ctx, services);
    registerUpload(ctx, services);
    registerRestore(ctx, services);
}

function viewOf({ id, serverId: server, kind, database, format, bytes, sha256, state, createdAt }: DumpRow) {
    return {
        id,
        serverId: server,
        kind,
        database,
        format,
        bytes,
        sha256,
        state,
        createdAt: new Date(createdAt).toISOString()
    };
}

function registerReads(ctx: Ctx, { dumps, folder }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/dumps',
        id: 'dumps',
        access: 'read',
        summary: 'Dumps',
        description: 'Newest first.',
        ui: { title: 'Dumps', order: 2, label: 'database', empty: 'No dump yet' },
        returns: joi.array().items(dumpSchema),
        validate: { query: joi.object({ ...pages.query(), serverId: serverId.optional() }) },
        async handler({ query }) {
            const found = await dumps.list({
                serverId: query.serverId,
                before: pages.afterNumber(query),
                limit: query.limit
            });
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/dumps/{id}',
        id: 'dump',
        access: 'read',
        summary: 'One dump',
        returns: dumpSchema,
        validate: { params },
        handler: async (request) => viewOf(await dumps.get(request.params.id))
    });
    ctx.download({
        path: '/dumps/{id}/content',
        id: 'dumpContent',
        access: 'query',
        summary: 'The file of a dump',
        ui: { title: 'Download' },
        validate: { params },
        async handler(request) {
            const row = await dumps.get(request.params.id);
            const ending = { sql: 'sql', gzip: 'sql.gz', pg_dump: 'dump' }[row.encoding] ?? 'dump';
            const handle = await folder.files().open(row.file, 'r');
            return {
                size: row.bytes,
                type: 'application/octet-stream',
                name: `${row.database.replace(/[^\w.-]/g, '_')}.${ending}`,
                version: row.sha256,
                open: ({ start, end }) =>
                    handle.createReadStream({
                        start,
                        ...(end === null ? {} : { end: end - 1 }),
                        autoClose: false
                    }),
                close: () => handle.close()
            };
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/dumps/{id}',
        id: 'removeDump',
        access: 'write',
        summary: 'Remove a dump',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this dump?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'dump' },
        validate: { params },
        async handler({ params: { id }, audit }) {
            audit({ resourceId: id, before: viewOf(await dumps.remove(id)) });
            return null;
        }
    });
}

function registerCreation(ctx: Ctx, { dumps }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/dumps',
        id: 'createDump',
        access: 'operate',
        summary: 'Dump databases',
        description: 'The result of the task names the dumps.',
        answers: 'task',
        ui: { title: 'New dump', primary: true },
        returns: joi.any(),
        audit: { action: 'dump', resource: 'database' },
        validate: {
            payload: joi.object({
                serverId,
                databases: joi
                    .array()
                    .items(existingName())
                    .unique()
                    .min(1)
                    .max(100)
                    .required()
                    .label('Databases')
                    .meta({ ui: { widget: 'lines' } }),
                format: joi.choice(formatWords).default('native').label('Format')
            })
        },
        async handler({ payload, actor, audit }) {
            audit({
                resourceId: payload.serverId,
                after: { databases: payload.databases, format: payload.format }
            });
            const databases = payload.databases as readonly string[]; // `unique` leaves the type of the items out
            return reply.accepted(
                await dumps.begin(payload.serverId, { databases, format: payload.format }, actor)
            );
        }
    });
}

function registerUpload(ctx: Ctx, { dumps }: Services): void {
    ctx.upload({
        method: 'POST',
        path: '/dumps/upload',
        id: 'uploadDump',
        access: 'write',
        summary: 'Take a dump in',
        description:
            'SQL, also compressed with gzip, or a file of `pg_dump --format=custom`. `name` is the database that it is of.',
        answers: 'made',
        ui: { title: 'Upload' },
        accepts: ['*/*'],
        maxBytes: mostUpload,
        returns: dumpSchema,
        audit: { action: 'upload', resource: 'dump' },
        validate: {
            query: joi.object({
                kind: joi
                    .choice({ mysql: 'MySQL or MariaDB', postgresql: 'PostgreSQL' })
                    .required()
                    .label('Kind'),
                name: newName()
            })
        },
        async handler({ query, body, audit }) {
            const row = await dumps.upload(query.kind, query.name, body);
            audit({ resourceId: row.id, after: viewOf(row) });
            return reply.created(`/api/plugins/${ctx.name}/dumps/${row.id}`, viewOf(row));
        }
    });
}

function registerRestore(ctx: Ctx, { dumps }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/dumps/{id}/restore',
        id: 'restoreDump',
        access: 'write',
        summary: 'Restore a dump',
        description:
            'Into a new database, or with `replace` in place of one that stays whole until the new one is. Statements run as an account that owns this database only.',
        answers: 'task',
        ui: { title: 'Restore', role: 'action', primary: true },
        returns: joi.any(),
        audit: { action: 'restore', resource: 'database' },
        validate: {
            params,
            payload: joi.object({
                serverId,
                database: newName(),
                replace: joi.boolean().default(false).label('Replace')
            })
        },
        async handler({ params: { id }, payload, actor, audit }) {
            audit({ resourceId: `${payload.serverId}/${payload.database}`, after: { dump: id } });
            return reply.accepted(await dumps.restore(id, payload, actor));
        }
    });
}
