/** What the programs of a release get by their environment. */
import { deploymentEnvironment } from '../build/builder.ts';
import type { ReleasePlan } from '../build/plan.ts';
import { planOfRow } from '../containers/plans.ts';
import type { Project, Store } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import { environmentOf, type Variable, type Variables } from '../env/variables.ts';
import type { Candidate } from './candidate.ts';

/** The environment of a release. `PORT` is where it listens: in the container of an image, otherwise on this machine. */
export function runEnvironment(
    project: Project,
    deployment: DeploymentRow,
    plan: ReleasePlan,
    vars: readonly Variable[]
): Readonly<Record<string, string>> {
    const port = plan.runtime === 'container' ? plan.port : deployment.port;
    return {
        ...plan.env,
        ...deploymentEnvironment(project, deployment),
        ...(port === null ? {} : { PORT: String(port) }),
        ...environmentOf(vars, 'run')
    };
}

/** The release that serves now, as it was started; null where none does. */
export async function servedCandidate(
    { store, variables }: { readonly store: Store; readonly variables: Variables },
    project: Project
): Promise<Omit<Candidate, 'log' | 'signal'> | null> {
    const { live } = await store.anyProject(project.id);
    const deployment = live === null ? null : await store.deployment(live);
    const plan = deployment === null ? null : planOfRow(deployment);
    return deployment === null || plan === null
        ? null
        : {
              ...{ project, deployment, plan },
              env: runEnvironment(project, deployment, plan, await variables.ofProject(project))
          };
}
