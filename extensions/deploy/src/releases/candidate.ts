/** A release on its way to serve, and its programs as they are shown. */
import type { ReleasePlan } from '../build/plan.ts';
import type { DeploymentLog } from '../deployments/log.ts';
import type { Project } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';

/** A deployment on its way to serve. */
export interface Candidate {
    readonly project: Project;
    readonly deployment: DeploymentRow;
    readonly plan: ReleasePlan;
    readonly env: Readonly<Record<string, string>>;
    readonly log: DeploymentLog;
    readonly signal: AbortSignal;
}

/** One program of a release. */
export interface ProcessView {
    readonly name: string;
    readonly instance: number;
    readonly state: 'running' | 'stopped' | 'failed';
    readonly pid: number | null;
    readonly port: number | null;
    readonly since: string | null;
    readonly restarts: number;
    readonly memoryBytes: number | null;
}
