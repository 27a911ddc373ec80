/** Routes of the sessions of a server. */
import { joi, pages, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { serverId, serverParams } from './parameters.ts';

const sessionSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Session')
        .meta({ ui: { column: 1 } }),
    user: joi
        .string()
        .allow(null)
        .required()
        .label('Account')
        .meta({ ui: { column: 2 } }),
    database: joi
        .string()
        .allow(null)
        .required()
        .label('Database')
        .meta({ ui: { column: 3 } }),
    state: joi
        .string()
        .allow(null)
        .required()
        .label('State')
        .meta({ ui: { column: 4 } }),
    durationMs: joi.number().allow(null).required().label('Since').unit('millisecond'),
    sql: joi.string().allow(null, '').label('Statement').description('For those who may query')
});

/** Registers the routes below `/servers/{id}/sessions`. */
export function registerSessionRoutes(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/sessions',
        id: 'sessions',
        access: 'read',
        summary: 'Sessions of a server',
        ui: { title: 'Sessions', order: 3, empty: 'No other session' },
        returns: joi.array().items(sessionSchema),
        validate: { params: serverParams, query: joi.object(pages.query()) },
        async handler({ params, query, actor }) {
            const { kind, admin } = await target(params.id);
            const all = await admin.use(null, (session) => kind.sessions.list(session));
            const isShown = actor.can('query');
            const { rows, page } = pages.sorted(
                all.map(({ sql, ...rest }) => (isShown ? { ...rest, sql } : rest)),
                query,
                ({ id }) => id.padStart(20, '0')
            );
            return reply.list(rows, page);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}/sessions/{sid}',
        id: 'endSession',
        access: 'operate',
        summary: 'End a session, or what it does',
        answers: 'done',
        ui: { title: 'End', confirm: 'End this session?' },
        returns: joi.valid(null),
        audit: { action: 'end', resource: 'session' },
        validate: {
            params: joi.object({
                id: serverId,
                sid: joi
                    .string()
                    .pattern(/^\d{1,19}$/, 'a number')
                    .required()
                    .label('Session')
            }),
            query: joi.object({
                mode: joi
                    .choice({ cancel: 'Stop its statement', end: 'End the session' })
                    .default('cancel')
                    .label('What')
            })
        },
        async handler({ params, query, audit }) {
            audit({ resourceId: `${params.id}/${params.sid}`, after: { mode: query.mode } });
            const { kind, admin } = await target(params.id);
            await admin.use(null, (session) => kind.sessions.end(session, params.sid, query.mode));
            return null;
        }
    });
}
