/** What the plan of a release says of its containers. */
import type { ReleasePlan, Runtime } from '../build/plan.ts';
import type { DeploymentRow } from '../entities.ts';

/** Whether releases that serve so run in containers. */
export function isContained(runtime: Runtime | undefined): boolean {
    return runtime === 'container' || runtime === 'compose';
}

/** How the release of a deployment runs; null until it is built. */
export function planOfRow({ plan }: Pick<DeploymentRow, 'plan'>): ReleasePlan | null {
    return plan === null ? null : (JSON.parse(plan) as ReleasePlan);
}

/** Ids of the images that the release of a deployment runs. */
export function imagesOf(row: Pick<DeploymentRow, 'plan'>): readonly string[] {
    return Object.values(planOfRow(row)?.digests ?? {});
}
