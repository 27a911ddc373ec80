/** Routes that look at many runs: statistics, a search in output, and the removal of old runs. */
import { joi, pages, reply } from '@portico/sdk';

import { searchOutput } from '../runs/output/output-search.ts';
import { removeRunsBefore } from '../runs/results/retention.ts';
import { type Statistics, type StatisticsFilter, statisticsOf } from '../runs/results/statistics.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { tag } from '../tasks/input/input.ts';
import { idParams } from './id-params.ts';

const dayMs = 86_400_000;
const count = (label: string) => joi.number().integer().required().label(label);
const seconds = (label: string) => joi.number().allow(null).required().label(label).unit('second');
const days = joi
    .number()
    .integer()
    .min(1)
    .max(3_650)
    .default(30)
    .label('Days')
    .description('The last so many days')
    .unit('day');
const statisticsSchema = joi.object({
    runs: count('Runs').description('Each due time that was skipped counts'),
    succeeded: count('Succeeded'),
    failed: count('Failed'),
    timeout: count('Took too long'),
    stopped: count('Stopped'),
    skipped: count('Skipped'),
    successRate: joi
        .number()
        .allow(null)
        .required()
        .label('Success')
        .description('0 to 1, of the runs that ended by themselves; null without any'),
    seconds: joi
        .object({ p50: seconds('Half of them'), p95: seconds('95 of 100'), max: seconds('The longest') })
        .required()
        .label('Time'),
    cpuSeconds: joi.number().required().label('Processor time').unit('second'),
    memoryPeakBytes: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Peak of memory')
        .description('Of one run; null where it was not measured')
        .unit('byte'),
    days: joi
        .array()
        .items(
            joi.object({
                day: joi.string().required().label('Day').description('In UTC'),
                succeeded: count('Succeeded'),
                failed: count('Failed')
            })
        )
        .required()
        .label('Days')
});

/** Declares the routes of statistics, and those that search and remove runs. */
export function registerStatisticsRoutes(ctx: Ctx, services: Services): void {
    registerStatistics(ctx, services);
    registerSearch(ctx);
    registerRemoval(ctx, services);
}

function registerStatistics(ctx: Ctx, { tasks, now }: Services): void {
    const answer = async ({ days: last, ...filter }: { days: number } & Omit<StatisticsFilter, 'since'>) => {
        const found: Statistics = await ctx.db.read((em) =>
            statisticsOf(em, { ...filter, since: now() - last * dayMs })
        );
        return { ...found, days: [...found.days] };
    };
    ctx.route({
        method: 'GET',
        path: '/stats',
        id: 'statistics',
        access: 'read',
        summary: 'How runs ended',
        ui: { title: 'Statistics', role: 'card', order: 3 },
        returns: statisticsSchema,
        validate: {
            query: joi.object({
                days,
                tag: tag()
                    .label('Tag')
                    .meta({ ui: { ref: 'cronjob.tags' } })
            })
        },
        handler: ({ query }) => answer(query)
    });
    ctx.route({
        method: 'GET',
        path: '/tasks/{id}/stats',
        id: 'taskStatistics',
        access: 'read',
        summary: 'How runs of a task ended',
        ui: { title: 'Statistics', role: 'card' },
        returns: statisticsSchema,
        validate: { params: idParams, query: joi.object({ days }) },
        async handler({ params, query }) {
            const { task } = await tasks.get(params.id);
            return answer({ ...query, taskId: task.id });
        }
    });
}

function registerSearch(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/output',
        id: 'searchOutput',
        access: 'output',
        summary: 'Find lines that runs printed',
        description:
            'Lines of the newest runs first, whatever the case; all lines of the last run of a page come along, 100 of a run at most.',
        ui: { title: 'Search in output', order: 6, empty: 'No such line' },
        returns: joi.array().items(
            joi.object({
                runId: joi.number().integer().required().label('Run'),
                taskId: joi
                    .number()
                    .integer()
                    .required()
                    .label('Task')
                    .meta({ ui: { ref: 'cronjob.tasks' } }),
                at: joi.string().isoDate().required().label('At'),
                line: joi
                    .number()
                    .integer()
                    .required()
                    .label('Line')
                    .description('1 is the first that was kept'),
                text: joi.string().allow('').required().label('Text')
            })
        ),
        validate: {
            query: joi.object({
                ...pages.query(100),
                q: joi.string().min(2).max(200).required().label('Text').description('A part of a line'),
                taskId: joi
                    .number()
                    .integer()
                    .min(1)
                    .label('Task')
                    .meta({ ui: { ref: 'cronjob.tasks' } }),
                tag: tag()
                    .label('Tag')
                    .meta({ ui: { ref: 'cronjob.tags' } }),
                from: joi.string().isoDate().label('Created from'),
                to: joi.string().isoDate().label('Created until')
            })
        },
        async handler({ query }) {
            const { q, taskId, from, to, limit } = query;
            const before = pages.afterNumber(query);
            const found = await ctx.db.read((em) =>
                searchOutput(em, {
                    ...{ q, taskId, tag: query.tag, limit, before },
                    from: from === undefined ? undefined : Date.parse(from),
                    to: to === undefined ? undefined : Date.parse(to)
                })
            );
            return reply.list(
                found.lines.map((line) => ({ ...line, at: new Date(line.at).toISOString() })),
                { next: found.next === null ? null : pages.cursor(found.next) }
            );
        }
    });
}

function registerRemoval(ctx: Ctx, { tasks }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/tasks/{id}/runs',
        id: 'removeRuns',
        access: 'write',
        summary: 'Remove finished runs of a task',
        description: 'With what they printed.',
        answers: 'done',
        ui: { title: 'Remove runs', confirm: 'Remove these runs and what they printed?' },
        returns: joi.object({ removed: joi.number().integer().required().label('Removed') }),
        audit: { action: 'delete', resource: 'run' },
        validate: {
            params: idParams,
            query: joi.object({
                before: joi.string().isoDate().label('Ended before').description('Default: all')
            })
        },
        async handler({ params, query, audit }) {
            const { task } = await tasks.get(params.id);
            const before = query.before === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(query.before);
            const removed = await removeRunsBefore(ctx, task.id, before);
            audit({ resourceId: task.id, after: { removed } });
            return { removed };
        }
    });
}
