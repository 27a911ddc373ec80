/** The route that says what is due in a period. */
import { errors, joi, reply } from '@portico/sdk';

import { findTasks } from '../queries.ts';
import { scheduleOf } from '../schedule/planning.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { conditionOf } from '../tasks/filter.ts';
import { tag } from '../tasks/input.ts';

const dayMs = 86_400_000;
const mostDays = 31;
const mostEntries = 5_000;

interface Entry {
    readonly at: number;
    readonly taskId: number;
    readonly name: string;
}

/** Registers it. */
export function registerCalendarRoute(ctx: Ctx, { now }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/calendar',
        id: 'calendar',
        access: 'read',
        summary: 'What is due in a period',
        description: `Of enabled tasks, in order. At most ${mostDays} days, and ${mostEntries} entries: \`X-Truncated: entries\` says that there are more.`,
        ui: { title: 'Calendar', order: 4, empty: 'Nothing is due' },
        returns: joi.array().items(
            joi.object({
                at: joi.string().isoDate().required().label('Due'),
                taskId: joi
                    .number()
                    .integer()
                    .required()
                    .label('Task')
                    .meta({ ui: { ref: 'cronjob.tasks' } }),
                name: joi.string().required().label('Name')
            })
        ),
        validate: {
            query: joi.object({
                from: joi.string().isoDate().label('From').description('Default: now'),
                to: joi.string().isoDate().label('Until').description('Default: a week later'),
                tag: tag()
                    .label('Tag')
                    .meta({ ui: { ref: 'cronjob.tags' } })
            })
        },
        async handler({ query }) {
            const from = query.from === undefined ? now() : Date.parse(query.from);
            const to = query.to === undefined ? from + 7 * dayMs : Date.parse(query.to);
            if (to < from || to - from > mostDays * dayMs) {
                throw errors.invalid([
                    { path: 'to', message: `to is after from, and at most ${mostDays} days later` }
                ]);
            }
            const tasks = await ctx.db.read((em) =>
                findTasks(em, conditionOf({ enabled: true, tag: query.tag }))
            );
            const all = tasks
                .flatMap((task) => entriesOf(task, from, to))
                .sort((one, other) => one.at - other.at || one.taskId - other.taskId);
            return reply.with(
                all
                    .slice(0, mostEntries)
                    .map(({ at, taskId, name }) => ({ at: new Date(at).toISOString(), taskId, name })),
                all.length > mostEntries ? { headers: { 'x-truncated': 'entries' } } : {}
            );
        }
    });
}

/** One more than an answer has at most, so that it is known that there are more. */
function entriesOf(task: Parameters<typeof scheduleOf>[0], from: number, to: number): Entry[] {
    const { next } = scheduleOf(task);
    const entries: Entry[] = [];
    for (let at = next(from - 1); at !== null && at <= to && entries.length <= mostEntries; at = next(at)) {
        entries.push({ at, taskId: task.id, name: task.name });
    }
    return entries;
}
