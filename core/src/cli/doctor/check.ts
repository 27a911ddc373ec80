/** What one check of `portico doctor` found. */

export interface Check {
    /** Stable, for programs. */
    readonly id: string;
    readonly state: 'ok' | 'warn' | 'fail';
    /** What the result is based on. */
    readonly evidence: string;
    /** What to do; null when nothing is wrong. */
    readonly remedy: string | null;
}

/** A finding in short: evidence alone is fine, a remedy makes it a warning or a failure. */
export const ok = (id: string, evidence: string): Check => ({ id, state: 'ok', evidence, remedy: null });
export const warn = (id: string, evidence: string, remedy: string): Check => ({
    id,
    state: 'warn',
    evidence,
    remedy
});
export const fault = (id: string, evidence: string, remedy: string): Check => ({
    id,
    state: 'fail',
    evidence,
    remedy
});
