/** Removes snapshots that the keep rules of a plan do not name. */
import type { RepositoryRow } from '../entities.ts';
import type { Keep } from '../plans/input.ts';
import type { Plan } from '../plans/plans.ts';
import type { Restic, Target } from '../restic/restic.ts';

/** Tag of snapshots that no rule removes. */
export const pinTag = 'portico-pinned';

/** Arguments of `restic forget` for the rules; null when everything stays. */
export function keepArgs(keep: Keep): readonly string[] | null {
    const rules = Object.entries(keep).filter(([, count]) => count > 0);
    return rules.length === 0
        ? null
        : [...rules.map(([rule, count]) => `--keep-${rule}=${count}`), `--keep-tag=${pinTag}`];
}

/** Applies the rules to the snapshots of one plan. The newest one stays in any case: it was made just now. */
export async function forgetOld(
    restic: Restic,
    target: Target,
    { appendOnly }: RepositoryRow,
    { id, keep }: Plan,
    signal: AbortSignal
): Promise<void> {
    const args = keepArgs({ ...keep, last: Math.max(keep.last, 1) });
    if (!appendOnly && keepArgs(keep) !== null && args !== null) {
        await restic.run(target, ['forget', `--tag=plan-${id}`, '--group-by=', ...args], { signal });
    }
}
