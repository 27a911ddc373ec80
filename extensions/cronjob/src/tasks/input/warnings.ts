/** What is odd about a task that is valid: its author should know. */
import { Blackouts } from '../../schedule/blackouts.ts';
import { parseSchedule } from '../../schedule/schedule.ts';
import type { Draft } from '../draft.ts';

/** Something to know about one field. */
export interface TaskWarning {
    readonly path: string;
    readonly message: string;
}

const yearMs = 366 * 86_400_000;
const rarelyPerYear = 2;
/** So many due times are looked at; a schedule that is due more often has no time of day that a clock could skip. */
const most = 800;

/** @param draft - with the blackouts of all tasks beside its own @param now - milliseconds since 1970 */
export function warningsOf(draft: Draft, now: number): readonly TaskWarning[] {
    return [...keptMarks(draft), ...oddTimes(draft, now)];
}

/** Names of parameters where they stay as they are: a value replaces a whole element of the command, and reaches a script by its environment. */
function keptMarks({ command, script, parameters }: Draft): readonly TaskWarning[] {
    return parameters.flatMap(({ name }) => {
        const mark = `{{${name}}}`;
        const inside = command?.findIndex((element) => element !== mark && element.includes(mark)) ?? -1;
        return [
            ...(inside < 0
                ? []
                : [
                      {
                          path: `command.${inside}`,
                          message: `${mark} stays as it is: a value replaces a whole element only`
                      }
                  ]),
            ...(script?.includes(mark) === true
                ? [
                      {
                          path: 'script',
                          message: `${mark} stays as it is: a script reads CRONJOB_PARAM_${name}`
                      }
                  ]
                : [])
        ];
    });
}

function oddTimes(draft: Draft, now: number): readonly TaskWarning[] {
    const { schedule, timezone, enabled } = draft;
    const { reboot, next } = parseSchedule(schedule, timezone);
    if (reboot) {
        return [];
    }
    const times: number[] = [];
    for (let at = next(now); at !== null && at < now + yearMs && times.length < most; at = next(at)) {
        times.push(at);
    }
    return [
        ...(enabled ? [] : [{ path: 'enabled', message: 'It is disabled, and runs by hand only' }]),
        ...(times.length <= rarelyPerYear
            ? [{ path: 'schedule', message: `It is due ${timesInWords(times.length)} within a year` }]
            : []),
        ...skippedTimes(times, timezone),
        ...heldTimes(times, draft)
    ];
}

function heldTimes(
    times: readonly number[],
    { timezone, blackouts, blackoutPolicy }: Draft
): readonly TaskWarning[] {
    const closed = new Blackouts(blackouts, timezone);
    const held = times.filter((at) => closed.firstFree(at) !== at);
    const [first] = held;
    if (first === undefined) {
        return [];
    }
    const what =
        blackoutPolicy === 'skip'
            ? 'are left out'
            : closed.firstFree(first) === null
              ? 'never start, because the blackouts have no end'
              : 'start later';
    const which = held.length === times.length ? 'All' : `${held.length} of the next ${times.length}`;
    return [
        {
            path: 'blackouts',
            message: `${which} due times lie in a blackout and ${what}, first ${new Date(first).toISOString()}`
        }
    ];
}

function timesInWords(count: number): string {
    return count === 0 ? 'not at all' : count === 1 ? 'once' : 'twice';
}

/** Where clocks are put forward, a time of day may not exist; the run is then due right after the gap. */
function skippedTimes(times: readonly number[], timezone: string): readonly TaskWarning[] {
    const format = new Intl.DateTimeFormat('en-GB', {
        timeZone: timezone,
        hour: '2-digit',
        minute: '2-digit',
        day: '2-digit',
        month: '2-digit',
        year: 'numeric'
    });
    const seen = new Map<string, number[]>();
    for (const at of times) {
        const { hour, minute } = partsOf(format, at);
        const time = `${hour}:${minute}`;
        seen.set(time, [...(seen.get(time) ?? []), at]);
    }
    const [usual] = [...seen].sort(([, one], [, other]) => other.length - one.length);
    if (usual === undefined || seen.size > rarelyPerYear || usual[1].length < 10) {
        return [];
    }
    return [...seen]
        .filter(([time, found]) => time !== usual[0] && found.length === 1)
        .map(([time, [at = 0]]) => {
            const { day, month, year } = partsOf(format, at);
            return {
                path: 'schedule',
                message: `On ${year}-${month}-${day} clocks in ${timezone} skip ${usual[0]}: it is then due at ${time}`
            };
        });
}

function partsOf(format: Intl.DateTimeFormat, at: number): Readonly<Record<string, string>> {
    return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
}
