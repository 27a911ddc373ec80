/** What is measured: now, as a stream, and over time. */
import { errors, joi } from '@portico/sdk';

import { metrics, type Named, nameOf, parseName } from '../metrics.ts';
import { failures } from '../errors.ts';
import type { Parts } from '../parts.ts';
import { sampleSchema } from '../sampling/sample.ts';

const value = joi.number().allow(null).required();
const historySchema = joi.object({
    metric: joi.string().required(),
    unit: joi.string().required(),
    from: joi.string().isoDate().required(),
    to: joi.string().isoDate().required(),
    step: joi.number().integer().required().description('Seconds'),
    points: joi
        .array()
        .items(
            joi.object({
                at: joi.string().isoDate().required().description('Where the step begins'),
                min: value,
                avg: value,
                max: value
            })
        )
        .required()
        .description('One for each step; null where nothing was measured')
});
const catalogueSchema = joi.array().items(
    joi.object({
        name: joi.string().required(),
        unit: joi.valid('percent', 'bytes', 'bytes/s', '1/s', 'count').required(),
        scope: joi.valid('core', 'disk', 'device', 'interface', 'container').allow(null).required(),
        summary: joi.string().required(),
        instances: joi.array().items(joi.string()).required().description('Of which there is a history')
    })
);
const mostPoints = 5_000;
const hourMs = 3_600_000;
const time = joi.string().isoDate().max(40);

export function metricRoutes({ ctx, monitor }: Parts): void {
    ctx.route({
        method: 'GET',
        path: '/metrics',
        id: 'metrics',
        access: 'read',
        summary: 'How the machine is now',
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
    ctx.route({
        method: 'GET',
        path: '/metrics/history',
        id: 'history',
        access: 'read',
        summary: 'A metric over time',
        returns: historySchema,
        description:
            'Minimum, average and maximum for each step. Without `from`, the last hour; without `step`, one that suits the span. A step is made longer where history is that coarse by now.',
        validate: {
            query: joi.object({
                metric: joi.string().max(300).required(),
                from: time,
                to: time,
                step: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(366 * 86_400)
                    .description('Seconds')
            })
        },
        async handler({ query }) {
            const { metric, instance } = named(
                query.metric,
                monitor.instances(parseName(query.metric)?.metric.name ?? '')
            );
            const now = monitor.now();
            const asked = query.to === undefined ? now : Date.parse(query.to);
            const from = query.from === undefined ? asked - hourMs : Date.parse(query.from);
            if (!(from < asked)) {
                throw errors.invalid([{ path: 'from', message: 'from lies before to' }]);
            }
            const plan = monitor.history.plan({
                from,
                to: asked,
                step: query.step === undefined ? null : query.step * 1000,
                now,
                interval: ctx.settings.intervalSeconds * 1000
            });
            const points = Math.ceil((plan.to - plan.from) / plan.step);
            if (points > mostPoints) {
                throw failures.TOO_MANY_POINTS({ points, limit: mostPoints });
            }
            const name = nameOf(metric.name, instance ?? '');
            return {
                metric: name,
                unit: metric.unit,
                from: new Date(plan.from).toISOString(),
                to: new Date(plan.to).toISOString(),
                step: plan.step / 1000,
                points: await monitor.history.points(name, plan)
            };
        }
    });
    ctx.stream({
        path: '/metrics/stream',
        id: 'stream',
        access: 'read',
        summary: 'Samples and alerts as they come',
        description:
            'Events `sample` (as GET `/metrics`) and `alert` (as GET `/alerts`), the newest sample first. With `Last-Event-ID` what came since; `gap` says how many of those are no longer kept.',
        handler: ({ lastEventId, signal }) =>
            monitor.feed.listen(lastEventId, AbortSignal.any([signal, ctx.signal]))
    });
}

/** @throws VALIDATION_FAILED 40001 for what is no metric, or leaves open which of several is meant */
function named(text: string, instances: readonly string[]): Named {
    const found = parseName(text);
    if (found === null) {
        throw errors.invalid([
            { path: 'metric', message: 'metric is none of those that GET metrics/catalogue lists' }
        ]);
    }
    if (found.metric.scope !== null && found.instance === null) {
        throw errors.invalid([
            {
                path: 'metric',
                message: `metric needs an instance: ${found.metric.name}:<${found.metric.scope}>${instances.length === 0 ? '' : `, such as ${found.metric.name}:${instances[0]}`}`
            }
        ]);
    }
    return found;
}
