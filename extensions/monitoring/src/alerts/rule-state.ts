/**
 * The state of a rule for one series. The rule fires when the value has been beyond `threshold` for `forSeconds`, and recovers when the value has
 * been on the good side of `recoverThreshold` just as long. A value that moves between the two thresholds changes nothing.
 */

/** How a value that is too much compares to the threshold; `absent`: there is none. */
export type Operator = Comparison | 'absent';
/** How a value compares to a threshold. */
export type Comparison = '>' | '>=' | '<' | '<=';

/** What a rule compares values with. */
export interface Condition {
    readonly operator: Operator;
    readonly threshold: number;
    readonly recoverThreshold: number;
    readonly forSeconds: number;
}

/** `pending`: beyond the threshold, but not long enough yet. `recovering`: still firing, but the value is good again. */
export type Phase = 'ok' | 'pending' | 'firing' | 'recovering';

/** The state of a rule for one series. */
export interface RuleState {
    readonly phase: Phase;
    /** In `pending` and `recovering`: how long the value has been so. */
    readonly heldMs: number;
    /** For how long no value was measured. */
    readonly missingMs: number;
}

/** What a value changed: the alert begins, the value is good again, or the series is no longer measured. */
export type Transition = 'fired' | 'recovered' | 'gone' | null;

/** The state of a series of which nothing is known. */
export const initialState: RuleState = { phase: 'ok', heldMs: 0, missingMs: 0 };

/** A gap longer than this starts `heldMs` anew, since the value during the gap is unknown. */
const gapMs = 60_000;
const gapIntervals = 3;
/** After this time without a value an alert ends, since its subject is gone: an unmounted disk, a removed container. */
const goneMs = 3_600_000;

/**
 * Moves a state by one value.
 *
 * @param value - null: unknown
 * @param elapsed - milliseconds since the value before, by a clock that does not jump
 * @param interval - usual milliseconds between two values
 */
export function advance(
    state: RuleState,
    condition: Condition,
    value: number | null,
    { elapsed, interval }: { readonly elapsed: number; readonly interval: number }
): { readonly state: RuleState; readonly transition: Transition } {
    if (condition.operator === 'absent') {
        return advanceAbsent(state, condition.forSeconds, value, { elapsed, interval });
    }
    if (value === null) {
        return advanceMissing(state, elapsed, Math.max(gapMs, gapIntervals * interval));
    }
    const gap = state.missingMs + elapsed > Math.max(gapMs, gapIntervals * interval);
    const held = gap ? 0 : state.heldMs + state.missingMs + elapsed;
    const fires = state.phase === 'firing' || state.phase === 'recovering';
    const moved = fires
        ? !isBeyond(condition.operator, value, condition.recoverThreshold)
        : isBeyond(condition.operator, value, condition.threshold);
    if (!moved) {
        return { state: { phase: fires ? 'firing' : 'ok', heldMs: 0, missingMs: 0 }, transition: null };
    }
    const waiting: Phase = fires ? 'recovering' : 'pending';
    const heldMs = state.phase === waiting ? held : 0;
    if (heldMs < condition.forSeconds * 1000) {
        return { state: { phase: waiting, heldMs, missingMs: 0 }, transition: null };
    }
    return {
        state: { phase: fires ? 'ok' : 'firing', heldMs: 0, missingMs: 0 },
        transition: fires ? 'recovered' : 'fired'
    };
}

/** Whether a value is on the bad side of a threshold. */
export function isBeyond(operator: Operator, value: number, threshold: number): boolean {
    switch (operator) {
        case '>':
            return value > threshold;
        case '>=':
            return value >= threshold;
        case '<':
            return value < threshold;
        case '<=':
            return value <= threshold;
        case 'absent':
            return false;
    }
}

/** Moves the state of a rule that waits for values to be absent: it recovers with the first one. */
function advanceAbsent(
    state: RuleState,
    forSeconds: number,
    value: number | null,
    { elapsed, interval }: { readonly elapsed: number; readonly interval: number }
): { readonly state: RuleState; readonly transition: Transition } {
    const fires = state.phase === 'firing';
    if (value !== null) {
        return { state: initialState, transition: fires ? 'recovered' : null };
    }
    if (fires) {
        return { state, transition: null };
    }
    // While nothing was measured at all, it is not known whether there was a value.
    const isGap = elapsed > Math.max(gapMs, gapIntervals * interval);
    const heldMs = state.phase === 'pending' && !isGap ? state.heldMs + elapsed : 0;
    return heldMs < forSeconds * 1000
        ? { state: { phase: 'pending', heldMs, missingMs: 0 }, transition: null }
        : { state: { phase: 'firing', heldMs: 0, missingMs: 0 }, transition: 'fired' };
}

/** Moves a state by a missing value, which neither fires nor recovers. */
function advanceMissing(
    state: RuleState,
    elapsed: number,
    longest: number
): { readonly state: RuleState; readonly transition: Transition } {
    const missingMs = state.missingMs + elapsed;
    if (state.phase === 'ok' || (state.phase === 'pending' && missingMs > longest)) {
        return { state: initialState, transition: null };
    }
    if (state.phase !== 'pending' && missingMs >= goneMs) {
        return { state: initialState, transition: 'gone' };
    }
    return { state: { ...state, missingMs }, transition: null };
}
