/** When certificates are renewed, when a failed attempt is repeated, and when a warning is due. Pure, except for a random share of the times. */

const day = 86_400_000;
const firstPauseMs = 5 * 60_000;
const longestPauseMs = day;
/** The share of a pause that is random, so that many certificates are not renewed at once. */
const jitter = 0.2;
/** The days before the end of a certificate on which a warning is sent, each once. */
const warnings = [1, 3, 7, 14] as const;

/**
 * The time of renewal: after two thirds of the lifetime, up to a fiftieth of it earlier. At least half of the remaining time passes first, so
 * that a clock that runs ahead or a very short lifetime does not cause one order after another.
 */
export function renewalTime(
    notBefore: string,
    notAfter: string,
    now: number,
    chance = Math.random()
): number {
    const [from, to] = [Date.parse(notBefore), Date.parse(notAfter)];
    const usual = from + (to - from) * (2 / 3 - chance / 50);
    return Math.round(usual > now ? usual : now + Math.max(firstPauseMs, (to - now) / 2));
}

/**
 * The time of the next attempt after so many failures in a row.
 * @param retryAt - the time that the CA named; no attempt is made before it
 */
export function retryAfter(
    failures: number,
    now: number,
    retryAt: number | null = null,
    chance = Math.random()
): number {
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(20, Math.max(0, failures - 1)));
    return Math.round(
        Math.max(
            now + pause * (1 + jitter * (2 * chance - 1)),
            retryAt === null ? 0 : retryAt + pause * jitter * chance
        )
    );
}

/** The warning that is due, as its number of days; null when none is due or it was already sent. */
export function warningDue(notAfter: string, warnedDays: number | null, now: number): number | null {
    const left = (Date.parse(notAfter) - now) / day;
    const due = left <= 0 ? 0 : warnings.find((days) => left <= days);
    return due === undefined || (warnedDays !== null && warnedDays <= due) ? null : due;
}

/** Whole days that are left; 0 when there are none. */
export function daysLeft(notAfter: string, now: number): number {
    return Math.max(0, Math.floor((Date.parse(notAfter) - now) / day));
}
