/** In which steps history is kept, and for how long: the older, the coarser. */

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

/** A round of slots; a slot is written again when the round is over, so the space never grows. Milliseconds. */
export interface Tier {
    readonly step: number;
    readonly slots: number;
}

/** Each step is a multiple of the one before. */
const steps: readonly { readonly step: number; readonly span: number }[] = [
    { step: 10_000, span: hour },
    { step: minute, span: day },
    { step: 10 * minute, span: 30 * day },
    { step: 2 * hour, span: Infinity }
];

/** The tiers of a retention, finest first. */
export function tiersOf(retentionDays: number): readonly Tier[] {
    return steps.map(({ step, span }) => ({
        step,
        slots: Math.ceil(Math.min(span, retentionDays * day) / step)
    }));
}

/** What a request for history becomes. */
export interface Plan {
    readonly tier: number;
    /** Milliseconds; a multiple of the tier's. */
    readonly step: number;
    /** A multiple of the step. */
    readonly from: number;
    readonly to: number;
}

/** Points that an answer has when nobody asks for a step. */
const usualPoints = 500;

/**
 * Takes the coarsest tier that is fine enough for the step asked for, of those that reach back far enough; without a step, the finest that does.
 *
 * @param interval - milliseconds between samples: no step is shorter
 */
export function planOf(
    tiers: readonly Tier[],
    {
        from,
        to,
        step,
        now,
        interval
    }: {
        readonly from: number;
        readonly to: number;
        readonly step: number | null;
        readonly now: number;
        readonly interval: number;
    }
): Plan {
    const reaching = tiers.findIndex((each) => from >= now - each.step * each.slots);
    const finest = reaching < 0 ? tiers.length - 1 : reaching;
    const wanted = Math.max(step ?? (to - from) / usualPoints, interval);
    const fitting = step === null ? finest : tiers.findLastIndex((each) => each.step <= wanted);
    const tier = Math.max(finest, fitting);
    const unit = tiers[tier]?.step ?? minute;
    const length = Math.max(1, Math.ceil(wanted / unit)) * unit;
    return { tier, step: length, from: Math.floor(from / length) * length, to };
}
