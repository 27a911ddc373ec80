/** Routes of runs. */
import { joi } from '@portico/sdk';

import { findRuns } from '../queries.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './common.ts';
import { runSchema, runView } from './views.ts';

const mostRuns = 500;

/** Registers the routes below `/runs`. */
export function registerRunRoutes(ctx: Ctx, { runs }: Services): void {
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
                limit: joi.number().integer().min(1).max(mostRuns).default(50).label('Rows')
            })
        },
        async handler({ query: { planId, state, limit } }) {
            const where = {
                ...(planId === undefined ? {} : { planId }),
                ...(state === undefined ? {} : { state })
            };
            return (await ctx.db.read((em) => findRuns(em, where, limit))).map(runView);
        }
    });
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
