/** The route that says what is due in a period. */
import { errors, joi, reply } from '@portico/sdk';

import type { TaskRow } from '../entities.ts';
import { findTasks } from '../queries.ts';
import { timetableOfRow } from '../schedule/planning.ts';
import type { Timetable } from '../schedule/timetable.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { conditionOf } from '../tasks/filter.ts';
import { tag } from '../tasks/input/input.ts';

const dayMs = 86_400_000;
const mostDays = 31;
const mostEntries = 5_000;

interface Entry {
    readonly at: number;
    readonly taskId: number;
    readonly name: string;
}

/** Declares the route of the calendar. */
export function registerCalendarRoute(ctx: Ctx, { now }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/calendar',
        id: 'calendar',
        access: 'read',
        summary: 'What is due in a period',
        description: `Of enabled tasks, in order, by their schedules and blackouts, without jitter. At most ${mostDays} days, and ${mostEntries} entries: \`X-Truncated: entries\` says that there are more.`,
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
            const all = firstStarts(
                tasks.map((task) => ({ task, next: timetableOfRow(task, ctx.settings).next })),
                { from, to, most: mostEntries + 1 }
            );
            return reply.with(
                all
                    .slice(0, mostEntries)
                    .map(({ at, taskId, name }) => ({ at: new Date(at).toISOString(), taskId, name })),
                all.length > mostEntries ? { headers: { 'x-truncated': 'entries' } } : {}
            );
        }
    });
}

interface Due {
    readonly task: TaskRow;
    readonly next: Timetable['next'];
}

/** The first starts of all tasks together. A task that is due each second is not followed farther than the answer goes. */
function firstStarts(
    tasks: readonly Due[],
    { from, to, most }: { readonly from: number; readonly to: number; readonly most: number }
): readonly Entry[] {
    const entries: Entry[] = [];
    const waiting = tasks
        .map((due) => ({ ...due, at: due.next(from - 1, to) ?? Infinity }))
        .sort((one, other) => other.at - one.at || other.task.id - one.task.id);
    for (let due = waiting.pop(); due !== undefined && due.at <= to; due = waiting.pop()) {
        entries.push({ at: due.at, taskId: due.task.id, name: due.task.name });
        if (entries.length >= most) {
            break;
        }
        insert(waiting, { ...due, at: due.next(due.at, to) ?? Infinity });
    }
    return entries;
}

/** Keeps the order, latest first. */
function insert<T extends Due & { readonly at: number }>(waiting: T[], due: T): void {
    let [low, high] = [0, waiting.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        const { at, task } = waiting[middle] as T;
        const isLater = at > due.at || (at === due.at && task.id > due.task.id);
        [low, high] = isLater ? [middle + 1, high] : [low, middle];
    }
    waiting.splice(low, 0, due);
}
