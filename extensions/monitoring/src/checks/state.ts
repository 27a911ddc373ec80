/** How a check is after its tries: one that fails is tried again a few times before the check is down. */
import type { CheckFields } from './input.ts';
import type { Outcome, SeenCertificate } from './probes/outcome.ts';

/** How a check is. Times are milliseconds since 1970. */
export interface CheckStatus {
    readonly state: 'up' | 'down' | 'degraded' | 'unknown';
    readonly since: number;
    /** When it was tried last; 0: never. */
    readonly at: number;
    readonly latencyMs: number | null;
    readonly code: string | null;
    readonly message: string | null;
    /** Tries in a row that failed. */
    readonly failures: number;
    readonly certificate: SeenCertificate | null;
}

/** A check with everything that an answer shows of it. */
export interface SeenCheck {
    readonly id: number;
    readonly fields: CheckFields;
    readonly version: number;
    readonly createdAt: number;
    readonly updatedAt: number;
    readonly status: CheckStatus;
}

/** The state of a check that was never tried. */
export function untried(now: number): CheckStatus {
    return {
        state: 'unknown',
        since: now,
        at: 0,
        latencyMs: null,
        code: null,
        message: null,
        failures: 0,
        certificate: null
    };
}

/** Moves a state by one try. A try that fails changes nothing until it was repeated `retries` times. */
export function advance(before: CheckStatus, outcome: Outcome, retries: number, now: number): CheckStatus {
    const failures = outcome.state === 'down' ? before.failures + 1 : 0;
    const isOpen = outcome.state === 'down' && failures <= retries && before.state !== 'down';
    const state = isOpen ? before.state : outcome.state;
    return {
        state,
        since: state === before.state ? before.since : now,
        at: now,
        latencyMs: outcome.latencyMs,
        code: outcome.code,
        message: outcome.message,
        failures,
        certificate: outcome.certificate ?? (outcome.state === 'down' ? before.certificate : null)
    };
}

/** Whether the check waits to be tried again before it is down. */
export function isPending({ state, failures }: CheckStatus): boolean {
    return failures > 0 && state !== 'down';
}
