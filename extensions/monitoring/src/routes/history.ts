/** The route of what was measured over time. */
import { errors, joi } from '@portico/sdk';

import { fail } from '../errors.ts';
import { type MetricReference, nameSeries, parseSeriesName } from '../sampling/metrics.ts';
import type { Monitor } from '../sampling/monitor.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const value = (label: string) => joi.number().allow(null).required().label(label);
const historySchema = joi.object({
    metric: joi.string().required().label('Metric'),
    unit: joi.string().required().label('Unit'),
    from: joi.string().isoDate().required().label('From'),
    to: joi.string().isoDate().required().label('To'),
    step: joi.number().integer().required().label('Step').unit('second'),
    points: joi
        .array()
        .items(
            joi.object({
                at: joi.string().isoDate().required().label('Time').description('Where the step begins'),
                min: value('Minimum'),
                avg: value('Average'),
                max: value('Maximum')
            })
        )
        .required()
        .label('Points')
        .description('One for each step; null where nothing was measured')
});
const mostPoints = 5_000;
const hourMs = 3_600_000;
const time = joi.string().isoDate().max(40);

/** Declares the routes below `/metrics/history`. */
export function registerHistoryRoutes(ctx: Ctx, { monitor }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/metrics/history',
        id: 'history',
        access: 'read',
        summary: 'A metric over time',
        ui: { title: 'History', role: 'chart' },
        returns: historySchema,
        description:
            'Minimum, average and maximum for each step. Without `from`, the last hour; without `step`, a step that suits the span. Where history is kept in longer steps by now, the answer has these.',
        validate: {
            query: joi.object({
                metric: joi
                    .string()
                    .max(300)
                    .required()
                    .label('Metric')
                    .description('One of the catalogue, with its instance where it has instances')
                    .example('disk.usedPercent:/srv'),
                from: time.label('From').description('Default: an hour before `to`'),
                to: time.label('To').description('Default: now'),
                step: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(366 * 86_400)
                    .label('Step')
                    .unit('second')
                    .description('Default: one that suits the span')
            })
        },
        async handler({ query }) {
            const { metric, instance } = resolveSeries(query.metric, monitor);
            const now = monitor.now();
            const to = query.to === undefined ? now : Date.parse(query.to);
            const from = query.from === undefined ? to - hourMs : Date.parse(query.from);
            if (!(from < to)) {
                throw errors.invalid([{ path: 'from', message: 'from must lie before to' }]);
            }
            const plan = monitor.history.plan({
                from,
                to,
                step: query.step === undefined ? null : query.step * 1000,
                now,
                interval: ctx.settings.intervalSeconds * 1000
            });
            const points = Math.ceil((plan.to - plan.from) / plan.step);
            if (points > mostPoints) {
                throw fail.TOO_MANY_POINTS({ points, limit: mostPoints });
            }
            const name = nameSeries(metric.name, instance ?? '');
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
}

/**
 * Finds the one series that a request means.
 *
 * @throws VALIDATION_FAILED 40001 for an unknown metric, and for one with instances when the request names none
 */
function resolveSeries(text: string, monitor: Monitor): MetricReference {
    const found = parseSeriesName(text);
    if (found === null) {
        throw errors.invalid([
            { path: 'metric', message: 'metric must be one that GET metrics/catalogue lists' }
        ]);
    }
    const { name, scope } = found.metric;
    if (scope !== null && found.instance === null) {
        const [example] = monitor.instances(name);
        const hint = example === undefined ? '' : `, such as ${name}:${example}`;
        throw errors.invalid([
            { path: 'metric', message: `metric needs an instance: ${name}:<${scope}>${hint}` }
        ]);
    }
    return found;
}
