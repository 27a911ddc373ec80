/** The route of the requests to the hosts. */
import { errors, joi } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { statusClasses } from '../traffic/counts.ts';
import { percentile } from '../traffic/latency.ts';
import { minuteMs, minutesKeptMs, type Row } from '../traffic/rows.ts';
import { topDays } from '../traffic/top.ts';

const mostRows = 5_000;
const mostValues = 100;
const hourSeconds = 3_600;
const time = joi.string().isoDate().max(40);
const hostId = joi
    .number()
    .integer()
    .min(1)
    .label('Host')
    .meta({ ui: { ref: 'hosts.list' } });
const count = (label: string) => joi.number().integer().required().label(label);
const latency = (label: string) => joi.number().allow(null).required().label(label).unit('millisecond');
const named = (statusClass: number): string => (statusClass === 0 ? 'none' : `${statusClass}xx`);

const trafficSchema = joi.array().items(
    joi.object({
        at: joi
            .string()
            .isoDate()
            .required()
            .label('Time')
            .description('Where the step begins')
            .meta({ ui: { column: 1 } }),
        hostId: joi
            .number()
            .integer()
            .allow(null)
            .required()
            .label('Host')
            .description('Null: names that no host has')
            .meta({ ui: { column: 2, ref: 'hosts.list' } }),
        requests: count('Requests').meta({ ui: { column: 3 } }),
        bytes: count('Bytes sent')
            .unit('byte')
            .meta({ ui: { column: 4 } }),
        missed: count('Not counted').description(
            'Requests that were recorded faster than they could be read'
        ),
        statuses: joi
            .object(
                Object.fromEntries(statusClasses.map((each) => [named(each), count(`Status ${named(each)}`)]))
            )
            .required()
            .label('By status')
            .description('`none`: the visitor left before there was an answer'),
        latencyMs: joi
            .object({ p50: latency('Median'), p95: latency('95 percent'), p99: latency('99 percent') })
            .required()
            .label('Latency')
            .description(
                'So many percent of the requests took no longer; an estimate from classes of latencies'
            )
    })
);

/** Declares `/traffic` and `/traffic/top`. */
export function registerTrafficRoutes(ctx: Ctx, services: Services): void {
    registerCounts(ctx, services);
    registerTop(ctx, services);
}

function registerCounts(ctx: Ctx, { machine, traffic }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/traffic',
        id: 'traffic',
        access: 'read',
        summary: 'Requests to the hosts over time',
        ui: {
            title: 'Traffic',
            order: 7,
            empty: 'Nothing was recorded. The setting engine.accessLog makes the engine record requests',
            links: { host: { operationId: 'hosts.get', parameters: { id: 'hostId' } } }
        },
        returns: trafficSchema,
        description:
            'Requests, bytes, statuses and latencies by step and host, as the engine records them with the setting `engine.accessLog`. Without `from`, the last hour; without `step`, a minute, or an hour where the span reaches back more than two days. Steps without a request are left out.',
        validate: {
            query: joi.object({
                hostId,
                from: time.label('From').description('Default: an hour before `to`'),
                to: time.label('To').description('Default: now'),
                step: joi
                    .number()
                    .integer()
                    .min(60)
                    .max(366 * 86_400)
                    .multiple(60)
                    .label('Step')
                    .unit('second')
                    .description('Whole minutes')
            })
        },
        async handler({ query }) {
            const now = machine.now();
            const to = query.to === undefined ? now + minuteMs : Date.parse(query.to);
            const from = query.from === undefined ? to - hourSeconds * 1000 : Date.parse(query.from);
            if (!(from < to)) {
                throw errors.invalid([{ path: 'from', message: 'from must lie before to' }]);
            }
            const least = from < now - minutesKeptMs ? hourSeconds : minuteMs / 1000;
            const step = Math.max(least, query.step ?? least) * 1000;
            const span = { from: Math.floor(from / step) * step, to, step, hostId: query.hostId ?? null };
            const rows = await traffic.find(span, mostRows + 1);
            if (rows.length > mostRows) {
                throw fail.TOO_MANY_POINTS({ points: `more than ${mostRows}`, limit: mostRows });
            }
            return rows.map(viewOf);
        }
    });
}

function registerTop(ctx: Ctx, { machine, traffic }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/traffic/top',
        id: 'trafficTop',
        access: 'logs',
        summary: 'The most frequent paths, addresses, browsers or statuses',
        ui: { title: 'Most frequent', order: 13, label: 'value', empty: 'No request yet' },
        returns: joi.array().items(
            joi.object({
                value: joi
                    .string()
                    .allow('')
                    .required()
                    .label('Value')
                    .description('Empty: a request without one')
                    .meta({ ui: { column: 1 } }),
                requests: count('Requests').meta({ ui: { column: 2 } }),
                bytes: count('Bytes sent')
                    .unit('byte')
                    .meta({ ui: { column: 3 } })
            })
        ),
        description:
            'Of days in UTC, of which a week is kept. Rare values of a busy day may be missing. Nothing of a query string is kept, and of addresses what `trafficAddresses` says.',
        validate: {
            query: joi.object({
                hostId,
                by: joi
                    .choice({ path: 'Path', address: 'Address', agent: 'Browser', status: 'Status' })
                    .default('path')
                    .label('By'),
                days: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(topDays)
                    .default(1)
                    .label('Days')
                    .description('Today, and those before it')
            })
        },
        handler: async ({ query: { hostId, by, days } }) => [
            ...(await traffic.top({ hostId: hostId ?? null, by, days, now: machine.now() }, mostValues))
        ]
    });
}

function viewOf({ at, hostId, counts }: Row) {
    const { requests, bytes, missed, statuses, latencies } = counts;
    return {
        at: new Date(at).toISOString(),
        hostId,
        requests,
        bytes,
        missed,
        statuses: Object.fromEntries(statusClasses.map((each, index) => [named(each), statuses[index] ?? 0])),
        latencyMs: {
            p50: percentile(latencies, 0.5),
            p95: percentile(latencies, 0.95),
            p99: percentile(latencies, 0.99)
        }
    };
}
