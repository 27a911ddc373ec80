/** What a build is given, and what it gives. */
import type { DeploymentLog } from '../deployments/log.ts';
import type { StepName } from '../deployments/steps.ts';
import type { Project } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import type { Remote } from '../git/git.ts';
import type { Artifact } from './artifacts.ts';
import type { ReleasePlan } from './plan.ts';

/** What one build of a commit is made from. */
export interface Build {
    readonly project: Project;
    readonly deployment: DeploymentRow & { readonly commit: string };
    readonly remote: Remote;
    /** Variables of the project for builds. */
    readonly env: Readonly<Record<string, string>>;
    readonly log: DeploymentLog;
    readonly signal: AbortSignal;
    /** Runs work as a step of the deployment. */
    step<T>(name: StepName, work: () => Promise<T>): Promise<T>;
    skip(...names: readonly StepName[]): Promise<void>;
    /** What the commit says of itself, once it is there. */
    found(commit: { readonly message: string; readonly author: string }): Promise<void>;
}

/** What a build made. */
export interface Built {
    readonly artifact: Artifact;
    readonly plan: ReleasePlan;
}
