/** Schedules in words. */
import cronstrue from 'cronstrue';

/** A schedule in English, such as *At 03:00 AM*; null where it cannot be said. */
export function describeSchedule(schedule: string): string | null {
    if (schedule.toLowerCase() === '@reboot') {
        return 'After each boot of the machine';
    }
    try {
        return cronstrue.toString(schedule, { use24HourTimeFormat: true });
    } catch {
        return null;
    }
}
