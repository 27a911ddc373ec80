/** When a certificate is worked on: renewed in time, tried again with patience, and spoken of before it ends. Pure but for the chance. */

const day = 86_400_000;
const firstPauseMs = 5 * 60_000;
const longestPauseMs = day;
/** How much of a pause is left to chance, so that many do not come at once. */
const jitter = 0.2;
/** Days before the end of which somebody is told, once each. */
const warnings = [1, 3, 7, 14] as const;

/**
 * When it is renewed: after two thirds of its life, up to a fiftieth of it earlier. A clock that runs ahead, or a CA that gives very short
 * lives, does not make one order after the other: half of what is left passes at least.
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
 * When an attempt is made again after so many that failed.
 * @param retryAt - what the CA says; it is never tried before
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

/** The warning that is due: the smallest number of days that the end is within, unless it was given. */
export function warningDue(notAfter: string, warnedDays: number | null, now: number): number | null {
    const left = (Date.parse(notAfter) - now) / day;
    const due = left <= 0 ? 0 : warnings.find((days) => left <= days);
    return due === undefined || (warnedDays !== null && warnedDays <= due) ? null : due;
}

/** Whole days that are left; 0 when there are none. */
export function daysLeft(notAfter: string, now: number): number {
    return Math.max(0, Math.floor((Date.parse(notAfter) - now) / day));
}
