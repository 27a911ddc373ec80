/** Routes that say how busy a server is. */
import { errors, joi } from '@portico/sdk';

import { mayHoldPassword } from '../../console/statement.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { serverParams } from '../parameters.ts';

const dayMs = 86_400_000;
const time = (label: string) => joi.string().isoDate().label(label);

/** Registers `metrics` and `slow` of servers. */
export function registerLoadRoutes(ctx: Ctx, services: Services): void {
    registerMetrics(ctx, services);
    registerSlow(ctx, services);
}

function registerMetrics(ctx: Ctx, { metrics, servers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/metrics',
        id: 'serverMetrics',
        access: 'read',
        summary: 'How busy a server was',
        description:
            'One measurement a minute for a week; a long time is answered in at most 500 points, each a mean.',
        ui: { title: 'Load' },
        returns: joi.array().items(
            joi.object({
                at: time('Time').required(),
                connections: joi.number().required().label('Connections'),
                perSecond: joi
                    .number()
                    .allow(null)
                    .required()
                    .label('Work a second')
                    .description('Statements (MySQL) or transactions (PostgreSQL)'),
                cacheHits: joi
                    .number()
                    .allow(null)
                    .required()
                    .label('Found in memory')
                    .description('Share of the pages that were read, 0 to 1')
            })
        ),
        validate: {
            params: serverParams,
            query: joi.object({
                from: time('From').description('Default: a day before the end'),
                to: time('To').description('Default: now')
            })
        },
        async handler({ params, query }) {
            await servers.get(params.id);
            const to = query.to === undefined ? Date.now() : Date.parse(query.to);
            const from = query.from === undefined ? to - dayMs : Date.parse(query.from);
            if (from > to) {
                throw errors.invalid([{ path: 'from', message: 'from lies behind to' }]);
            }
            const points = await metrics.list(params.id, { from, to });
            return points.map(({ at, ...rest }) => ({ at: new Date(at).toISOString(), ...rest }));
        }
    });
}

function registerSlow(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/slow',
        id: 'slowStatements',
        access: 'query',
        summary: 'Statements that took longest',
        description:
            'From the performance schema or the slow log table of MySQL, and from pg_stat_statements of PostgreSQL. Statements that may hold a password are left out.',
        ui: { title: 'Slow statements', empty: 'No slow statement yet' },
        returns: joi.array().items(
            joi.object({
                sql: joi
                    .string()
                    .allow('')
                    .required()
                    .label('Statement')
                    .meta({ ui: { column: 1 } }),
                calls: joi
                    .number()
                    .required()
                    .label('Calls')
                    .meta({ ui: { column: 2 } }),
                totalMs: joi
                    .number()
                    .required()
                    .label('Time in all')
                    .unit('millisecond')
                    .meta({ ui: { column: 3 } }),
                rows: joi
                    .number()
                    .required()
                    .label('Rows')
                    .meta({ ui: { column: 4 } })
            })
        ),
        validate: { params: serverParams },
        async handler({ params }) {
            const { kind, admin } = await target(params.id);
            const all = await admin.use(null, (session) => kind.load.slow(session));
            return all.filter(({ sql }) => !mayHoldPassword(sql)).map((each) => ({ ...each }));
        }
    });
}
