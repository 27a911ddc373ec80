/** Which snapshots of a plan stay: the rules of Proxmox Backup Server, where each rule counts only what the rules before it did not keep. */
import type { Keep } from '../plans/input.ts';
import type { Snapshot } from '../snapshots/documents.ts';

type Moment = Pick<Snapshot, 'id' | 'time' | 'pinned'>;

const periods: readonly (readonly [keyof Keep, (time: string, zone: string | undefined) => string])[] = [
    ['last', (time) => time],
    ['hourly', (time, zone) => dayOf(time, zone) + hourOf(time, zone)],
    ['daily', (time, zone) => dayOf(time, zone)],
    ['weekly', (time, zone) => weekOf(dayOf(time, zone))],
    ['monthly', (time, zone) => dayOf(time, zone).slice(0, 7)],
    ['yearly', (time, zone) => dayOf(time, zone).slice(0, 4)]
];

/**
 * The ids of snapshots that no rule keeps; none when every rule is 0. Pinned ones stay, and so does the newest.
 *
 * @param snapshots - of one plan, newest first
 * @param zone - time zone in which days begin; default: the machine's
 */
export function selectOld(snapshots: readonly Moment[], keep: Keep, zone?: string): readonly string[] {
    if (periods.every(([rule]) => keep[rule] === 0)) {
        return [];
    }
    const kept = new Set<string>();
    const passed = new Set<string>();
    for (const [rule, nameOf] of periods) {
        const covered = new Set(
            snapshots.filter(({ id }) => kept.has(id)).map(({ time }) => nameOf(time, zone))
        );
        const chosen = new Set<string>();
        for (const { id, time, pinned } of snapshots) {
            const name = nameOf(time, zone);
            if (pinned || kept.has(id) || passed.has(id) || covered.has(name)) {
                continue;
            }
            if (chosen.has(name)) {
                passed.add(id);
            } else if (chosen.size >= keep[rule]) {
                break;
            } else {
                chosen.add(name);
                kept.add(id);
            }
        }
    }
    return snapshots
        .filter(({ id, pinned }, index) => index > 0 && !pinned && !kept.has(id))
        .map(({ id }) => id);
}

/** `2026-11-23` */
function dayOf(time: string, zone: string | undefined): string {
    return new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' }).format(new Date(time));
}

function hourOf(time: string, zone: string | undefined): string {
    return new Intl.DateTimeFormat('sv-SE', { timeZone: zone, hour: '2-digit' }).format(new Date(time));
}

/** The week of ISO 8601: it belongs to the year of its Thursday. */
function weekOf(day: string): string {
    const date = new Date(`${day}T00:00:00Z`);
    date.setUTCDate(date.getUTCDate() + 4 - (date.getUTCDay() || 7));
    const first = Date.UTC(date.getUTCFullYear(), 0, 1);
    return `${date.getUTCFullYear()}-${Math.ceil(((date.getTime() - first) / 86_400_000 + 1) / 7)}`;
}
