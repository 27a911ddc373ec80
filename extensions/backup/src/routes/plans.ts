/** Routes of plans, of running them now, and of drills. */
import { joi, pages, reply } from '@portico/sdk';

import type { RunRow } from '../entities.ts';
import { changedPlan, newPlan, planFields } from '../plans/input.ts';
import type { Plan } from '../plans/plans.ts';
import { findRuns } from '../queries.ts';
import { hooksSchema } from '../runs/commands.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams, timeOf } from './common.ts';
import { runSchema, runView } from './views.ts';

const planView = joi.object({
    ...planFields,
    id: joi.number().integer().required().label('Number'),
    version: joi.number().integer().required().label('Version'),
    nextRunAt: joi.string().allow(null).required().label('Next run'),
    lastSuccessAt: joi.string().allow(null).required().label('Last success'),
    lastRun: joi.any().label('Last run'),
    hasHooks: joi.boolean().required().label('Commands around a run')
});
const dryRun = joi.object({ dryRun: joi.boolean().default(false).label('Only try') });

/** What a plugin could give, or why it could not be asked. */
const offerSchema = joi.object({
    plugin: joi.string().required().label('From'),
    ok: joi.boolean().required().label('Answers'),
    reason: joi.string().allow('').label('Why not'),
    items: joi
        .array()
        .items(joi.object({ name: joi.string().required().label('Name') }).unknown())
        .required()
        .label('What it gives')
});

/** Registers the routes below `/plans`, and those of drills and sources. */
export function registerPlanRoutes(ctx: Ctx, services: Services): void {
    registerPlans(ctx, services);
    registerPlan(ctx, services);
    registerCommands(ctx, services);
    registerWork(ctx, services);
    registerKnowledge(ctx, services);
}

async function viewOf(ctx: Ctx, { plans }: Services, plan: Plan) {
    const [lastRun] = await ctx.db.read((em) => findRuns(em, { planId: plan.id }, 1));
    const {
        createdAt: _created,
        updatedAt: _updated,
        overdueAt: _overdue,
        hooks,
        lastSuccessAt,
        ...rest
    } = plan;
    return {
        ...rest,
        nextRunAt: (await plans.nextRunAt(plan.id))?.toISOString() ?? null,
        lastSuccessAt: timeOf(lastSuccessAt),
        lastRun: lastRun === undefined ? null : runView(lastRun),
        hasHooks: hooks !== null
    };
}

function registerPlans(ctx: Ctx, services: Services): void {
    const { plans } = services;
    ctx.route({
        method: 'GET',
        path: '/plans',
        id: 'plans',
        access: 'read',
        summary: 'List the plans',
        ui: { title: 'Plans', primary: true, label: 'name', order: 1, empty: 'No plan yet' },
        returns: joi.array().items(planView),
        validate: { query: joi.object(pages.query(100)) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await plans.list(), query, ({ id }) => id);
            return reply.list(await Promise.all(rows.map((plan) => viewOf(ctx, services, plan))), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/plans',
        id: 'createPlan',
        access: 'write',
        summary: 'Make a plan',
        answers: 'made',
        returns: planView,
        audit: { action: 'create', resource: 'plan' },
        validate: { payload: newPlan },
        async handler({ payload }) {
            const plan = await plans.create(payload);
            return reply.created(
                `/api/plugins/${ctx.name}/plans/${plan.id}`,
                await viewOf(ctx, services, plan)
            );
        }
    });
}

function registerPlan(ctx: Ctx, services: Services): void {
    const { plans } = services;
    ctx.route({
        method: 'GET',
        path: '/plans/{id}',
        id: 'plan',
        access: 'read',
        summary: 'One plan',
        returns: planView,
        validate: { params: idParams },
        async handler({ params }) {
            const plan = await plans.get(params.id);
            return reply.with(await viewOf(ctx, services, plan), { version: plan.version });
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/plans/{id}',
        id: 'changePlan',
        access: 'write',
        summary: 'Change a plan',
        returns: planView,
        audit: { action: 'update', resource: 'plan' },
        validate: { params: idParams, payload: changedPlan },
        async handler({ params, payload, ifMatch }) {
            const plan = await plans.update(params.id, payload, ifMatch);
            return reply.with(await viewOf(ctx, services, plan), { version: plan.version });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/plans/{id}',
        id: 'removePlan',
        access: 'write',
        summary: 'Remove a plan with the history of its runs',
        description: 'Its snapshots stay.',
        returns: joi.any(),
        audit: { action: 'delete', resource: 'plan' },
        validate: { params: idParams },
        async handler({ params }) {
            await plans.remove(params.id);
            return null;
        }
    });
}

function registerCommands(ctx: Ctx, services: Services): void {
    const { plans } = services;
    ctx.route({
        method: 'PUT',
        path: '/plans/{id}/hooks',
        id: 'setHooks',
        access: 'hooks',
        stepUp: true,
        summary: 'Set the commands before and after the runs of a plan',
        description:
            'No shell. A command `before` that fails ends the run; the one `after` runs in any case, with BACKUP_STATE. What is left out is removed. No answer shows them.',
        returns: planView,
        audit: { action: 'set-hooks', resource: 'plan' },
        validate: { params: idParams, payload: hooksSchema },
        async handler({ params, payload }) {
            const isNone = payload.before == null && payload.after == null;
            await plans.setHooks(params.id, isNone ? null : payload);
            return viewOf(ctx, services, await plans.get(params.id));
        }
    });
}

function registerWork(ctx: Ctx, services: Services): void {
    const { plans, runs, work } = services;
    const accepted = (run: RunRow) =>
        reply.accepted(runView(run), { headers: { location: `/api/plugins/${ctx.name}/runs/${run.id}` } });
    ctx.route({
        method: 'POST',
        path: '/plans/{id}/run',
        id: 'runPlan',
        access: 'run',
        summary: 'Run a plan now',
        answers: 'task',
        returns: runSchema,
        ui: { title: 'Run now', role: 'action' },
        audit: { action: 'run', resource: 'plan' },
        validate: { params: idParams, payload: dryRun },
        handler: async ({ params, payload, actor }) =>
            accepted(
                await runs.start(await plans.get(params.id), {
                    trigger: 'manual',
                    dryRun: payload.dryRun,
                    actor
                })
            )
    });
    ctx.route({
        method: 'POST',
        path: '/plans/run-all',
        id: 'runAllPlans',
        access: 'run',
        summary: 'Run every enabled plan now',
        description: 'A plan that runs already is left as it is.',
        answers: 'task',
        returns: joi.array().items(runSchema),
        ui: { title: 'Run all', role: 'action' },
        audit: { action: 'run', resource: 'plan' },
        async handler({ actor }) {
            const started: RunRow[] = [];
            for (const plan of (await plans.list()).filter(({ enabled }) => enabled)) {
                const run = await runs.start(plan, { trigger: 'manual', actor }).catch((error: unknown) => {
                    if ((error as { reason?: unknown }).reason === 'IN_USE') {
                        return null;
                    }
                    throw error;
                });
                started.push(...(run === null ? [] : [run]));
            }
            return reply.accepted(started.map(runView));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/plans/{id}/drill',
        id: 'drillPlan',
        access: 'run',
        summary: 'Prove that the newest snapshot of a plan comes back',
        description:
            'Everything in it is restored beside the machine’s own files and compared with the snapshot; the panel in it is booted. A task; its result is the proof.',
        answers: 'task',
        returns: joi.any(),
        ui: { title: 'Drill', role: 'action' },
        audit: { action: 'drill', resource: 'plan' },
        validate: { params: idParams },
        async handler({ params, actor }) {
            return reply.accepted(await work.drill(await plans.get(params.id), actor));
        }
    });
}

function registerKnowledge(ctx: Ctx, { drills, sources }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/drills',
        id: 'drills',
        access: 'read',
        summary: 'Proofs of drills, newest first',
        ui: { title: 'Drills', order: 4, empty: 'No drill yet' },
        returns: joi.array().items(joi.any()),
        validate: {
            query: joi.object({
                ...pages.query(),
                planId: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Plan')
                    .meta({ ui: { ref: 'backup.plans' } })
            })
        },
        async handler({ query: { planId, ...query } }) {
            const before = pages.afterNumber(query) ?? Infinity;
            const all = (await drills.list()).filter(
                ({ proof }) => planId === undefined || proof.planId === planId
            );
            const { rows, page } = pages.read(
                all.filter(({ id }) => id < before),
                query.limit,
                ({ id }) => id,
                all.length
            );
            return reply.list(
                rows.map(({ proof }) => proof),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/sources',
        id: 'sources',
        access: 'read',
        summary: 'What the panel and the plugins could give',
        ui: { title: 'Sources', order: 5, empty: 'Nothing' },
        returns: joi.array().items(offerSchema),
        handler: async () => (await sources.list()).map((offer) => ({ ...offer, items: [...offer.items] }))
    });
}
