/** Routes that say when a schedule is due. They change nothing. */
import { errors, joi, messageOf } from '@portico/sdk';

import { describeSchedule } from '../schedule/describe.ts';
import { timetableOfRow } from '../schedule/planning.ts';
import { isZone, machineZone } from '../schedule/schedule.ts';
import { type Timetable, timetableOf, type TimetableOptions } from '../schedule/timetable.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { blackoutsField } from '../tasks/input/times-input.ts';
import { idParams } from './id-params.ts';

const countSchema = joi.number().integer().min(1).max(100).default(10).label('How many times');
const timesSchema = joi.object({
    times: joi
        .array()
        .items(joi.string().isoDate())
        .required()
        .label('Times')
        .description('In order; fewer than asked for when the schedule ends, none for @reboot')
});

/** Registers the routes that preview a schedule and the next times of a task. */
export function registerScheduleRoutes(ctx: Ctx, { tasks, now }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/schedule/preview',
        id: 'previewSchedule',
        access: 'read',
        summary: 'When a schedule would be due',
        effect: 'read',
        returns: timesSchema.keys({
            text: joi
                .string()
                .allow(null)
                .required()
                .label('In words')
                .description('In English; null where it cannot be said')
        }),
        description: 'The next times after `from`, or after now. Nothing is stored.',
        validate: {
            payload: joi.object({
                schedule: joi
                    .string()
                    .trim(true)
                    .max(200)
                    .required()
                    .label('Schedule')
                    .meta({ ui: { widget: 'cron' } }),
                timezone: joi
                    .string()
                    .max(64)
                    .label('Time zone')
                    .description('IANA name; default: the setting `timezone`'),
                count: countSchema,
                from: joi.string().isoDate().label('After').description('Default: now'),
                blackouts: blackoutsField
                    .default([])
                    .description('Times in them are left out, as those in the blackouts of all tasks are')
            })
        },
        handler({ payload }) {
            const { schedule, timezone = ctx.settings.timezone ?? machineZone(), count, from } = payload;
            const after = from === undefined ? now() : Date.parse(from);
            const blackouts = [...payload.blackouts, ...ctx.settings.blackouts];
            const starts = parseInput({ schedule, timezone, blackouts, blackoutPolicy: 'skip' });
            return { text: describeSchedule(schedule), times: nextTimes(starts, after, count) };
        }
    });
    ctx.route({
        method: 'GET',
        path: '/tasks/{id}/next',
        id: 'nextTimes',
        access: 'read',
        summary: 'When a task is due next',
        returns: timesSchema,
        description: 'By its schedule and its blackouts, without jitter; also while it is disabled.',
        validate: { params: idParams, query: joi.object({ count: countSchema }) },
        async handler({ params, query }) {
            const { task } = await tasks.get(params.id);
            return { times: nextTimes(timetableOfRow(task, ctx.settings), now(), query.count) };
        }
    });
}

/** @throws VALIDATION_FAILED 40001 */
function parseInput(options: TimetableOptions): Timetable {
    if (!isZone(options.timezone)) {
        throw errors.invalid([
            { path: 'timezone', message: 'timezone is not a time zone that this machine knows' }
        ]);
    }
    try {
        return timetableOf(options);
    } catch (error) {
        const why = messageOf(error);
        throw errors.invalid([{ path: 'schedule', message: `schedule cannot be understood: ${why}` }]);
    }
}

function nextTimes(schedule: Timetable, after: number, count: number): string[] {
    const times: string[] = [];
    for (let at = schedule.next(after); at !== null; at = times.length < count ? schedule.next(at) : null) {
        times.push(new Date(at).toISOString());
    }
    return times;
}
