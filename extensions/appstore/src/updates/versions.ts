/** Compares versions: of semver where they are, else as different ones. */
import semver from 'semver';

/** When an app updates by itself. */
export type AutoUpdate = 'off' | 'patch' | 'minor' | 'all';

const parse = (version: string): semver.SemVer | null => semver.parse(version) ?? semver.coerce(version);

/** Whether the second version is newer. Those that are no versions of semver are newer when they differ. */
export function isNewer(from: string, to: string): boolean {
    const [before, after] = [parse(from), parse(to)];
    if (from === to) {
        return false;
    }
    if (before === null || after === null) {
        return true;
    }
    const order = semver.compare(after, before);
    // What follows a version that is no semver, such as a build number, tells the same versions apart.
    return (
        order > 0 ||
        (order === 0 && semver.compareBuild(after, before) > 0) ||
        (order === 0 && semver.valid(to) === null)
    );
}

/** Whether a step is as small as an app takes by itself. */
export function isWithin(level: AutoUpdate, from: string, to: string): boolean {
    const [before, after] = [parse(from), parse(to)];
    if (level === 'off') {
        return false;
    }
    if (level === 'all') {
        return true;
    }
    if (before === null || after === null || before.major !== after.major) {
        return false;
    }
    return level === 'minor' || before.minor === after.minor;
}

/** Whether a document takes an update from a version. */
export function accepts(range: string | undefined, from: string): boolean {
    const version = parse(from);
    return (
        range === undefined ||
        (version !== null && semver.satisfies(version, range, { includePrerelease: true }))
    );
}

/** Whether a minute of the day lies in a window such as 23:00-02:00; at any time where there is none. */
export function isInWindow(window: string | null, minute: number): boolean {
    if (window === null) {
        return true;
    }
    const [from = 0, to = 0] = window.split('-').map((time) => {
        const [hours = 0, minutes = 0] = time.split(':').map(Number);
        return hours * 60 + minutes;
    });
    return from <= to ? minute >= from && minute < to : minute >= from || minute < to;
}
