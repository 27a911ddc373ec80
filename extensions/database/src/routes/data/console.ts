/** Routes of the console: statements, their plans and their history. */
import { type Actor, errors, joi, pages, reply } from '@portico/sdk';

import type { Result } from '../../console/console.ts';
import { mustRead } from '../../console/statement.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { existingName, serverId, serverParams } from '../parameters.ts';

const sqlBytes = 256 * 1024;
const longestSeconds = 600;
const sql = () =>
    joi.typed<string>(
        joi
            .string()
            .min(1)
            .max(sqlBytes)
            .custom(
                (value: string, helpers) =>
                    Buffer.byteLength(value) <= sqlBytes
                        ? value
                        : helpers.error('string.max', { limit: sqlBytes }),
                'At most 256 KiB'
            )
            .required()
            .label('Statement')
            .meta({ media: 'application/sql' })
    );
const database = existingName().required().label('Database');
const queryId = joi
    .string()
    .pattern(/^[A-Za-z0-9_-]{1,64}$/, 'letters, digits, _ and -')
    .label('Name of the query')
    .description('By which DELETE cancels it');
/** The shape of a result. */
export const resultFields = {
    columns: joi
        .array()
        .items(
            joi.object({
                name: joi.string().allow('').required().label('Column'),
                type: joi.string().required().label('Type')
            })
        )
        .required()
        .label('Columns'),
    rows: joi.any<unknown[][]>().required().label('Rows')
};
const resultSchema = joi.object({
    ...resultFields,
    affected: joi.number().integer().label('Changed rows'),
    truncated: joi.boolean().required().label('There are more rows'),
    durationMs: joi.number().required().label('Time').unit('millisecond')
});
const historySchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    serverId: joi
        .number()
        .integer()
        .required()
        .label('Server')
        .meta({ ui: { ref: 'database.servers' } }),
    database: joi.string().required().label('Database'),
    sql: joi
        .string()
        .required()
        .label('Statement')
        .meta({ ui: { column: 1 } }),
    write: joi.boolean().required().label('May change things'),
    at: joi
        .string()
        .isoDate()
        .required()
        .label('Time')
        .meta({ ui: { column: 2 } }),
    durationMs: joi.number().required().label('Took').unit('millisecond'),
    rows: joi.number().integer().allow(null).required().label('Rows'),
    failure: joi
        .string()
        .allow(null)
        .required()
        .label('Failure')
        .meta({ ui: { column: 3 } })
});

/** Registers the routes of the console. */
export function registerConsoleRoutes(ctx: Ctx, services: Services): void {
    registerQuery(ctx, services);
    registerExplain(ctx, services);
    registerHistory(ctx, services);
}

/** A result as answers show it. */
function viewOf({ columns, rows, affected, truncated, durationMs }: Result) {
    return {
        columns: columns.map(({ name, type }) => ({ name, type })),
        rows: rows as unknown[][],
        ...(affected === null ? {} : { affected }),
        truncated,
        durationMs
    };
}

function mustWrite(actor: Actor, write: boolean): void {
    if (write && !actor.can('write')) {
        throw errors.forbidden('database:write');
    }
}

function registerQuery(ctx: Ctx, { target, console }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/query',
        id: 'query',
        access: 'query',
        summary: 'Run one statement',
        description:
            'Without `write`, it runs as an account that may only read, in a transaction that only reads: the server refuses everything else. With `write`, which needs that permission too, it runs as the account that the panel uses.',
        answers: 'done',
        effect: 'write',
        timeoutSeconds: longestSeconds + 30,
        ui: { title: 'Console', primary: true },
        returns: resultSchema,
        audit: { action: 'query', resource: 'database' },
        validate: {
            params: serverParams,
            payload: joi.object({
                database,
                sql: sql(),
                parameters: joi
                    .array()
                    .items(joi.any())
                    .max(1_000)
                    .default([])
                    .label('Parameters')
                    .description('For `?` in MySQL, `$1` in PostgreSQL')
                    .meta({ ui: { advanced: true } }),
                maxRows: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(10_000)
                    .label('Rows')
                    .description('Most rows of the answer; default: the setting `consoleRows`'),
                timeoutSeconds: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(longestSeconds)
                    .default(30)
                    .label('Time limit')
                    .unit('second')
                    .meta({ ui: { advanced: true } }),
                write: joi.boolean().default(false).label('May change things'),
                queryId
            })
        },
        async handler({ params, payload, actor, signal, audit }) {
            const { write, maxRows = ctx.settings.consoleRows, queryId: name = null, ...rest } = payload;
            mustWrite(actor, write);
            audit({ resourceId: `${params.id}/${payload.database}`, after: { write } });
            const { server } = await target(params.id);
            return viewOf(
                await console.run(server, actor, { ...rest, write, maxRows, queryId: name }, signal)
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}/query/{queryId}',
        id: 'cancelQuery',
        access: 'query',
        summary: 'Cancel a statement of your own',
        description: 'The statement itself then answers 40951.',
        answers: 'done',
        ui: { title: 'Cancel', role: 'hidden' },
        returns: joi.valid(null),
        audit: { action: 'cancel', resource: 'query' },
        validate: { params: joi.object({ id: serverId, queryId: queryId.required() }) },
        async handler({ params, actor, audit }) {
            audit({ resourceId: `${params.id}/${params.queryId}` });
            console.cancel(params.id, actor, params.queryId);
            return null;
        }
    });
}

function registerExplain(ctx: Ctx, { target, console }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/explain',
        id: 'explain',
        access: 'query',
        summary: 'Say how the server would run a statement',
        description: 'With `analyze` the statement runs, as in the console that only reads.',
        answers: 'done',
        effect: 'read',
        timeoutSeconds: 60,
        ui: { title: 'Explain' },
        returns: joi.object({
            plan: joi.any().required().label('Plan'),
            text: joi.string().required().label('Text')
        }),
        validate: {
            params: serverParams,
            payload: joi.object({
                database,
                sql: sql(),
                analyze: joi.boolean().default(false).label('Run it and measure')
            })
        },
        async handler({ params, payload, signal }) {
            const { kind, server } = await target(params.id);
            mustRead(payload.sql, ['SELECT', 'WITH', 'VALUES', 'TABLE']);
            const { rows } = await console.read(
                server,
                {
                    database: payload.database,
                    sql: kind.console.explain(
                        payload.sql,
                        payload.analyze,
                        server.flavour === 'mariadb' ? 'mariadb' : server.kind
                    ),
                    parameters: [],
                    maxRows: 10_000,
                    timeoutSeconds: 30
                },
                signal
            );
            return kind.console.planOf(rows);
        }
    });
}

function registerHistory(ctx: Ctx, { history }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/history',
        id: 'history',
        access: 'query',
        summary: 'Your own statements',
        ui: { title: 'History', order: 3, empty: 'You ran no statement yet' },
        returns: joi.array().items(historySchema),
        description: 'Newest first. What may hold a password is not kept.',
        validate: {
            query: joi.object({
                ...pages.query(),
                serverId: serverId.optional()
            })
        },
        async handler({ query, actor }) {
            const found = await history.list(actor.key, {
                serverId: query.serverId,
                before: pages.afterNumber(query),
                limit: query.limit
            });
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(
                rows.map(({ actor: _actor, at, ...row }) => ({ ...row, at: new Date(at).toISOString() })),
                page
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/history',
        id: 'clearHistory',
        access: 'query',
        summary: 'Forget your own statements',
        answers: 'done',
        ui: { title: 'Clear', confirm: 'Forget all statements that you ran?' },
        returns: joi.valid(null),
        audit: { action: 'clear', resource: 'history' },
        async handler({ actor }) {
            await history.clear(actor.key);
            return null;
        }
    });
}
