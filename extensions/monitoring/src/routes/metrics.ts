/** Routes of what is measured now: the newest sample, the list of metrics, and the stream. */
import { joi } from '@portico/sdk';

import { feedEvents } from '../sampling/event-feed.ts';
import { metrics, scopes, units } from '../sampling/metrics.ts';
import { sampleSchema } from '../sampling/sample.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const catalogueSchema = joi.array().items(
    joi.object({
        name: joi
            .string()
            .required()
            .label('Metric')
            .meta({ ui: { column: 1 } }),
        unit: joi
            .valid(...units)
            .required()
            .label('Unit')
            .meta({ ui: { column: 3 } }),
        scope: joi
            .valid(...scopes)
            .allow(null)
            .required()
            .label('Measured for each')
            .description('Null: once for the whole machine')
            .meta({ ui: { column: 4 } }),
        summary: joi
            .string()
            .required()
            .label('What it is')
            .meta({ ui: { column: 2 } }),
        instances: joi
            .array()
            .items(joi.string())
            .required()
            .label('Instances')
            .description('Of which there is a history')
    })
);

/** Declares `/metrics`, `/metrics/catalogue` and `/metrics/stream`. */
export function registerMetricRoutes(ctx: Ctx, { monitor }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/metrics',
        id: 'metrics',
        access: 'read',
        summary: 'How the machine is now',
        ui: { title: 'Now', role: 'card', primary: true, order: 1 },
        returns: sampleSchema,
        description:
            'The newest sample. Rates are averages since the sample before; the first one has none, so they are null.',
        handler: () => monitor.sample
    });
    ctx.route({
        method: 'GET',
        path: '/metrics/catalogue',
        id: 'catalogue',
        access: 'read',
        summary: 'Every metric with its unit and its instances',
        ui: { title: 'Catalogue', order: 6, label: 'name' },
        returns: catalogueSchema,
        handler: () =>
            metrics.map(({ name, unit, scope, summary }) => ({
                name,
                unit,
                scope,
                summary,
                instances: scope === null ? [] : monitor.instances(name)
            }))
    });
    ctx.stream({
        path: '/metrics/stream',
        id: 'stream',
        access: 'read',
        summary: 'Samples and alerts as they come',
        ui: { title: 'Live', role: 'chart' },
        events: feedEvents,
        description:
            'Events `sample` (as GET `/metrics`) and `alert` (as GET `/alerts`), the newest sample first. With `Last-Event-ID` what came since; `gap` says how many of those are no longer kept.',
        handler: ({ lastEventId, signal }) =>
            monitor.feed.listen(lastEventId, AbortSignal.any([signal, ctx.signal]))
    });
}
