/** Timers of systemd as tasks. */
import type { CrontabLine } from '../tasks/crontab.ts';
import { scheduleOfCalendar, secondsOfSpan } from './calendar.ts';

/** A timer as `systemctl show` prints it. */
export interface Timer {
    /** Such as `logrotate.timer`. */
    readonly id: string;
    /** What it starts. */
    readonly unit: string;
    readonly path: string;
    readonly description: string;
    /** Expressions of `OnCalendar`. */
    readonly calendars: readonly string[];
    /** Whether it also counts from a boot, a start or an end. */
    readonly isMonotonic: boolean;
    readonly isPersistent: boolean;
    /** A time span. */
    readonly delay: string;
}

/** Properties that {@link readTimers} needs. */
export const timerProperties = [
    'Id',
    'Unit',
    'FragmentPath',
    'Description',
    'TimersCalendar',
    'TimersMonotonic',
    'Persistent',
    'RandomizedDelayUSec'
] as const;

const mostJitter = 3_600;
const longestName = 100;

/** Reads the answer of `systemctl show` for timers: blocks of properties, with an empty line between two. */
export function readTimers(text: string): readonly Timer[] {
    return text
        .split(/\n\s*\n/)
        .map((block) => {
            const lines = block.split('\n').map((line) => {
                const at = line.indexOf('=');
                return [line.slice(0, at), line.slice(at + 1)] as const;
            });
            const all = (name: (typeof timerProperties)[number]): string[] =>
                lines.flatMap(([key, value]) => (key === name && value !== '' ? [value] : []));
            return {
                id: all('Id')[0] ?? '',
                unit: all('Unit')[0] ?? '',
                path: all('FragmentPath')[0] ?? '',
                description: all('Description')[0] ?? '',
                calendars: all('TimersCalendar').flatMap((value) =>
                    [...value.matchAll(/OnCalendar=(.*?) (?:;|\})/g)].map(([, expression = '']) => expression)
                ),
                isMonotonic: all('TimersMonotonic').length > 0,
                isPersistent: all('Persistent')[0] === 'yes',
                delay: all('RandomizedDelayUSec')[0] ?? '0'
            };
        })
        .filter(({ id, unit }) => id.endsWith('.timer') && unit !== '');
}

/** The tasks of a timer: each starts the unit as the timer does, so that the unit stays as it is. */
export function tasksOfTimer({
    unit,
    description,
    calendars,
    isMonotonic,
    isPersistent,
    delay
}: Timer): readonly CrontabLine[] {
    const name = (description === '' ? unit : description).replace(/\p{C}/gu, ' ').slice(0, longestName);
    const jitter = Math.round(secondsOfSpan(delay) ?? 0);
    const tasks = calendars.map((expression): Omit<CrontabLine, 'line'> => {
        const converted = scheduleOfCalendar(expression);
        if (converted === null) {
            return { task: null, problem: `A schedule cannot say ${expression}` };
        }
        const { schedule, timezone } = converted;
        return {
            task: {
                name,
                schedule,
                ...(timezone === null ? {} : { timezone }),
                command: ['systemctl', 'start', unit],
                missed: isPersistent ? 'run-once' : 'skip',
                jitterSeconds: Math.min(jitter, mostJitter)
            },
            problem:
                jitter > mostJitter ? `It starts by ${mostJitter} s later at most, not by ${jitter} s` : null
        };
    });
    const monotonic: Omit<CrontabLine, 'line'> = {
        task: null,
        problem: 'It counts from a boot, a start or an end, and a schedule follows the clock'
    };
    return [...tasks, ...(isMonotonic ? [monotonic] : [])].map((each, index) => ({
        ...each,
        line: index + 1
    }));
}
