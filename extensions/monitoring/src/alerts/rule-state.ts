/**
 * How a rule moves with its metric. It fires when the value has been beyond the threshold for `forSeconds`, and recovers when it has been on
 * the good side of `recoverThreshold` as long: what goes to and fro between the two changes nothing.
 */

export type Operator = '>' | '>=' | '<' | '<=';

/** What a rule demands. */
export interface Condition {
    readonly operator: Operator;
    readonly threshold: number;
    readonly recoverThreshold: number;
    readonly forSeconds: number;
}

/** `pending`: beyond the threshold, not long enough yet. `recovering`: fires, and looks better. */
export type Phase = 'ok' | 'pending' | 'firing' | 'recovering';

export interface State {
    readonly phase: Phase;
    /** How long the value has been where this phase waits for it to stay. */
    readonly heldMs: number;
    /** How long there has been no value. */
    readonly missingMs: number;
}

/** What came of a value: it fires, it is over, or nobody measures it any more. */
export type Turn = 'fired' | 'recovered' | 'gone' | null;

export const calm: State = { phase: 'ok', heldMs: 0, missingMs: 0 };

/** A gap of more than this breaks what was held: nobody knows what was in between. */
const gapMs = 60_000;
const gapIntervals = 3;
/** An alert without a value for so long is about something that is no more: a disk that was unmounted, a container that was removed. */
const goneMs = 3_600_000;

/**
 * One value later.
 *
 * @param value - null: not known
 * @param elapsed - milliseconds since the value before; by a clock that does not jump
 * @param interval - milliseconds between two values, usually
 */
export function advance(
    state: State,
    condition: Condition,
    value: number | null,
    { elapsed, interval }: { readonly elapsed: number; readonly interval: number }
): { readonly state: State; readonly turn: Turn } {
    if (value === null) {
        return missing(state, elapsed, Math.max(gapMs, gapIntervals * interval));
    }
    const gap = state.missingMs + elapsed > Math.max(gapMs, gapIntervals * interval);
    const held = gap ? 0 : state.heldMs + state.missingMs + elapsed;
    const fires = state.phase === 'firing' || state.phase === 'recovering';
    const moved = fires
        ? !isBeyond(condition.operator, value, condition.recoverThreshold)
        : isBeyond(condition.operator, value, condition.threshold);
    if (!moved) {
        return { state: { phase: fires ? 'firing' : 'ok', heldMs: 0, missingMs: 0 }, turn: null };
    }
    const waiting: Phase = fires ? 'recovering' : 'pending';
    const heldMs = state.phase === waiting ? held : 0;
    if (heldMs < condition.forSeconds * 1000) {
        return { state: { phase: waiting, heldMs, missingMs: 0 }, turn: null };
    }
    return {
        state: { phase: fires ? 'ok' : 'firing', heldMs: 0, missingMs: 0 },
        turn: fires ? 'recovered' : 'fired'
    };
}

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
    }
}

/** A gap neither fires nor recovers anything. */
function missing(
    state: State,
    elapsed: number,
    longest: number
): { readonly state: State; readonly turn: Turn } {
    const missingMs = state.missingMs + elapsed;
    if (state.phase === 'ok' || (state.phase === 'pending' && missingMs > longest)) {
        return { state: calm, turn: null };
    }
    if (state.phase !== 'pending' && missingMs >= goneMs) {
        return { state: calm, turn: 'gone' };
    }
    return { state: { ...state, missingMs }, turn: null };
}
