/** The steps in which history is kept, and for how long: old history has longer steps. */

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

/** A ring of slots of `step` milliseconds. When the ring is full, the oldest slot is written again, so the space never grows. */
export interface Tier {
    readonly step: number;
    readonly slots: number;
}

/** Each step is a multiple of the step before. */
const steps: readonly { readonly step: number; readonly span: number }[] = [
    { step: 10_000, span: hour },
    { step: minute, span: day },
    { step: 10 * minute, span: 30 * day },
    { step: 2 * hour, span: Infinity }
];

/** Chooses the tiers for a retention, finest first. */
export function chooseTiers(retentionDays: number): readonly Tier[] {
    return steps.map(({ step, span }) => ({
        step,
        slots: Math.ceil(Math.min(span, retentionDays * day) / step)
    }));
}

/** How a query is answered: the tier to read, and the steps of the answer. */
export interface Plan {
    readonly tier: number;
    /** Milliseconds; a multiple of the tier's. */
    readonly step: number;
    /** A multiple of the step. */
    readonly from: number;
    readonly to: number;
}

/** About how many points an answer has when the query names no step. */
const usualPoints = 500;

/** A query for the history of a series. Times are milliseconds since 1970. */
export interface HistoryQuery {
    readonly from: number;
    readonly to: number;
    /** Milliseconds; null for a step that suits the span. */
    readonly step: number | null;
    readonly now: number;
    /** Milliseconds between samples: no step is shorter. */
    readonly interval: number;
}

/**
 * Chooses among the tiers that reach back to `from`: the coarsest one that is fine enough for the step, or the finest one when the query names no step.
 */
export function planQuery(tiers: readonly Tier[], { from, to, step, now, interval }: HistoryQuery): Plan {
    const reaching = tiers.findIndex((each) => from >= now - each.step * each.slots);
    const finest = reaching < 0 ? tiers.length - 1 : reaching;
    const wanted = Math.max(step ?? (to - from) / usualPoints, interval);
    const fitting = step === null ? finest : tiers.findLastIndex((each) => each.step <= wanted);
    const tier = Math.max(finest, fitting);
    const unit = tiers[tier]?.step ?? minute;
    const length = Math.max(1, Math.ceil(wanted / unit)) * unit;
    return { tier, step: length, from: Math.floor(from / length) * length, to };
}
