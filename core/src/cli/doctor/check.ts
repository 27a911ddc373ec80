/** The checks of `portico doctor`. */

/** The result of one check. */
export interface Check {
    /** Stable, for programs. */
    readonly id: string;
    readonly state: 'ok' | 'warn' | 'fail';
    /** The facts that the result is based on. */
    readonly evidence: string;
    /** What the admin can do; null when nothing is wrong. */
    readonly remedy: string | null;
}

/** A check that found nothing wrong. */
export const ok = (id: string, evidence: string): Check => ({ id, state: 'ok', evidence, remedy: null });
/** A check that found something that may become a problem. */
export const warn = (id: string, evidence: string, remedy: string): Check => ({
    id,
    state: 'warn',
    evidence,
    remedy
});
/** A check that found a problem. */
export const fault = (id: string, evidence: string, remedy: string): Check => ({
    id,
    state: 'fail',
    evidence,
    remedy
});
