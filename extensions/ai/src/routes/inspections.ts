/** The routes of inspections. */
import { joi, pages, reply, taskSchema, type Value } from '@portico/sdk';

import { type Finding, findingSchema } from '../answers/events.ts';
import type { InspectionPlanRow, InspectionRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const fields = {
    enabled: joi
        .boolean()
        .label('Daily')
        .description('Reads the panel with the rights of the admin who switches it on'),
    time: joi
        .string()
        .pattern(/^(?:[01]\d|2[0-3]):[0-5]\d$/)
        .label('Time')
        .example('07:00'),
    timezone: joi
        .string()
        .max(64)
        .custom((value: string, helpers) => {
            try {
                new Intl.DateTimeFormat('en', { timeZone: value });
                return value;
            } catch {
                return helpers.error('any.invalid');
            }
        }, 'A time zone that this machine knows')
        .label('Time zone')
        .example('Europe/Berlin'),
    summary: joi.boolean().label('Summary by the model').description('Where a provider is set up'),
    notify: joi
        .choice({ always: 'Always', findings: 'When something was found', never: 'Never' })
        .label('Notification')
};
const planSchema = joi.object({
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } }),
    enabled: fields.enabled.required(),
    time: fields.time.required(),
    timezone: fields.timezone.required(),
    summary: fields.summary.required(),
    notify: fields.notify.required(),
    username: joi.string().allow(null).required().label('With the rights of')
});
const inspectionSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    at: joi
        .string()
        .isoDate()
        .required()
        .label('At')
        .meta({ ui: { column: 1 } }),
    trigger: joi
        .choice({ manual: 'By hand', daily: 'Daily' })
        .required()
        .label('Began')
        .meta({ ui: { column: 2 } }),
    username: joi.string().allow('').required().label('With the rights of'),
    score: joi
        .number()
        .integer()
        .min(0)
        .max(100)
        .required()
        .label('Score')
        .meta({ ui: { column: 3 } }),
    findings: joi.array().items(findingSchema).required().label('Findings'),
    skipped: joi.array().items(joi.string()).required().label('Not looked at'),
    summary: joi
        .string()
        .allow('')
        .required()
        .label('Summary')
        .meta({ ui: { column: 4 } }),
    usage: joi
        .object({
            input: joi.number().integer().required().label('Input').unit('token'),
            output: joi.number().integer().required().label('Output').unit('token'),
            cost: joi.number().allow(null).required().label('Cost')
        })
        .required()
        .label('Usage')
});

/** Declares `/inspection` and `/inspections`. */
export function registerInspectionRoutes(ctx: Ctx, services: Services): void {
    registerPlan(ctx, services);
    registerInspections(ctx, services);
}

function registerPlan(ctx: Ctx, { inspections }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/inspection',
        id: 'inspectionPlan',
        access: 'inspect',
        summary: 'The daily inspection',
        ui: { title: 'Daily inspection', role: 'card' },
        returns: planSchema,
        handler: async () => planOf(await inspections.plan())
    });
    ctx.route({
        method: 'PUT',
        path: '/inspection',
        id: 'changeInspectionPlan',
        access: 'manage',
        stepUp: true,
        summary: 'Set the daily inspection',
        description:
            'Switching it on gives the assistant a mandate to read what its checks read, revocable among the API tokens.',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'inspection' },
        validate: {
            payload: joi.object({
                ...fields,
                version: joi
                    .number()
                    .integer()
                    .label('Version')
                    .meta({ ui: { widget: 'hidden' } })
            })
        },
        returns: planSchema,
        async handler({ actor, payload: { version, ...change }, ifMatch, audit }) {
            const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
            const after = planOf(await inspections.change(actor, set, version ?? ifMatch));
            audit({ after });
            return reply.with(after, {});
        }
    });
}

function registerInspections(ctx: Ctx, { inspections }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/inspections',
        id: 'inspections',
        access: 'inspect',
        summary: 'Inspections',
        ui: { title: 'Inspections', order: 8, label: 'at', empty: 'Nothing was inspected yet' },
        validate: { query: joi.object(pages.query()) },
        returns: joi.array().items(inspectionSchema),
        async handler({ query }) {
            const found = await inspections.list({ before: pages.afterNumber(query), limit: query.limit });
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/inspections',
        id: 'inspect',
        access: 'inspect',
        summary: 'Inspect now',
        answers: 'task',
        ui: { title: 'Inspect now', role: 'action' },
        audit: { action: 'start', resource: 'inspection' },
        returns: taskSchema,
        async handler({ actor }) {
            const { summary } = await inspections.plan();
            const task = await ctx.task(
                {
                    kind: 'inspection',
                    title: 'Inspection',
                    access: 'inspect',
                    actor,
                    key: `inspection:${actor.id ?? 0}`
                },
                async ({ actor: by, signal, progress }) =>
                    viewOf(
                        await inspections.inspect(
                            by ?? actor,
                            { trigger: 'manual', summary, signal },
                            progress
                        )
                    )
            );
            return reply.accepted(task);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/inspections/{id}',
        id: 'inspection',
        access: 'inspect',
        summary: 'One inspection',
        validate: {
            params: joi.object({
                id: joi
                    .number()
                    .integer()
                    .min(1)
                    .required()
                    .label('Inspection')
                    .meta({ ui: { ref: 'ai.inspections' } })
            })
        },
        returns: inspectionSchema,
        handler: async ({ params: { id } }) => viewOf(await inspections.get(id))
    });
}

function planOf({
    version,
    enabled,
    time,
    timezone,
    summary,
    notify,
    username
}: InspectionPlanRow): Value<typeof planSchema> {
    return {
        version,
        enabled,
        time,
        timezone,
        summary,
        notify,
        username: enabled ? (username ?? null) : null
    };
}

function viewOf(row: InspectionRow): Value<typeof inspectionSchema> {
    return {
        id: row.id,
        at: new Date(row.at).toISOString(),
        trigger: row.trigger,
        username: row.username,
        score: row.score,
        findings: JSON.parse(row.findings) as Finding[],
        skipped: JSON.parse(row.skipped) as string[],
        summary: row.summary,
        usage: { input: row.input, output: row.output, cost: row.cost ?? null }
    };
}
