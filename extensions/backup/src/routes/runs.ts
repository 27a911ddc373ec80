/** Routes of runs. */
import { type EventOf, joi, pages, reply } from '@portico/sdk';

import { RunEntity } from '../entities.ts';
import { findRuns } from '../queries.ts';
import type { LogLine } from '../runs/run-log.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams, period } from './common.ts';
import { runSchema, runView } from './views.ts';

const logEvents = {
    message: joi.object({
        at: joi.string().required().label('Time'),
        level: joi.choice({ info: 'Info', warning: 'Warning', error: 'Error' }).required().label('Level'),
        text: joi.string().allow('').required().label('Text')
    }),
    end: runSchema
};

/** Registers the routes below `/runs`. */
export function registerRunRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx);
    registerLog(ctx, services);
    registerRun(ctx, services);
}

function registerList(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/runs',
        id: 'runs',
        access: 'read',
        summary: 'Runs of all plans, newest first',
        ui: { title: 'Runs', order: 3, empty: 'Nothing ran yet' },
        returns: joi.array().items(runSchema),
        validate: {
            query: joi.object({
                planId: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Plan')
                    .meta({ ui: { ref: 'backup.plans' } }),
                state: joi
                    .valid(
                        'queued',
                        'running',
                        'succeeded',
                        'incomplete',
                        'failed',
                        'cancelled',
                        'interrupted'
                    )
                    .label('State'),
                ...period,
                ...pages.query()
            })
        },
        async handler({ query: { planId, state, from, to, ...query } }) {
            const before = pages.afterNumber(query);
            const started = {
                ...(from === undefined ? {} : { $gte: Date.parse(from) }),
                ...(to === undefined ? {} : { $lte: Date.parse(to) })
            };
            const where = {
                ...(planId === undefined ? {} : { planId }),
                ...(state === undefined ? {} : { state }),
                ...(Object.keys(started).length === 0 ? {} : { startedAt: started })
            };
            const found = await ctx.db.read(async (em) => ({
                rows: await findRuns(
                    em,
                    { ...where, ...(before === null ? {} : { id: { $lt: before } }) },
                    query.limit + 1
                ),
                total: await em.count(RunEntity, where as object)
            }));
            const { rows, page } = pages.read(found.rows, query.limit, ({ id }) => id, found.total);
            return reply.list(rows.map(runView), page);
        }
    });
}

function registerLog(ctx: Ctx, { runs }: Services): void {
    ctx.stream({
        path: '/runs/{id}/log',
        id: 'runLog',
        access: 'browse',
        summary: 'The log of a run, as it comes',
        description:
            'Events with `at`, `level` and `text`, then `end` with the run. Of a run that is over, what was kept.',
        validate: { params: idParams },
        ui: { title: 'Log', role: 'log' },
        events: logEvents,
        async handler({ params, signal }) {
            await runs.get(params.id);
            return follow(params.id, signal);
        }
    });

    async function* follow(id: number, signal: AbortSignal): AsyncGenerator<EventOf<typeof logEvents>> {
        const live = runs.logOf(id);
        if (live !== null) {
            for await (const line of live.follow(signal)) {
                yield { data: line };
            }
            await Promise.race([
                runs.ended(id),
                new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
            ]);
        }
        const run = await runs.get(id);
        if (live === null) {
            for (const line of JSON.parse(run.log) as readonly LogLine[]) {
                yield { data: line };
            }
        }
        yield { event: 'end', data: runView(run) };
    }
}

function registerRun(ctx: Ctx, { runs }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/runs/{id}',
        id: 'run',
        access: 'read',
        summary: 'One run',
        returns: runSchema,
        validate: { params: idParams },
        handler: async ({ params }) => runView(await runs.get(params.id))
    });
    ctx.route({
        method: 'DELETE',
        path: '/runs/{id}',
        id: 'cancelRun',
        access: 'run',
        summary: 'Cancel a run',
        description:
            'restic is asked to end, so that its lock goes. The answer is the run after that; one that is over stays as it is.',
        answers: 'done',
        returns: runSchema,
        ui: { title: 'Cancel', role: 'action', confirm: 'Cancel this run?' },
        audit: { action: 'cancel', resource: 'run' },
        validate: { params: idParams },
        handler: async ({ params }) => runView(await runs.cancel(params.id))
    });
}
