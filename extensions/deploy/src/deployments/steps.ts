/** The steps of a deployment, in their order. */
import type { Reason } from '../errors.ts';

/** Names of the steps. */
export const stepNames = [
    'fetch',
    'install',
    'build',
    'pack',
    'hooks',
    'start',
    'check',
    'switch',
    'drain'
] as const;

/** The name of a step. */
export type StepName = (typeof stepNames)[number];
/** Why a deployment fails in a step that does not say so itself. */
export const stepReasons: Readonly<Record<StepName, Reason>> = {
    fetch: 'FETCH_FAILED',
    install: 'BUILD_FAILED',
    build: 'BUILD_FAILED',
    pack: 'BUILD_FAILED',
    hooks: 'HOOK_FAILED',
    start: 'START_FAILED',
    check: 'UNHEALTHY',
    switch: 'SWITCH_FAILED',
    drain: 'SWITCH_FAILED'
};
/** Where a step stands. */
export type StepState = 'waiting' | 'running' | 'done' | 'failed' | 'skipped';

/** One step as it is shown. */
export interface Step {
    readonly name: StepName;
    readonly state: StepState;
    /** How long it took; null until it ended. */
    readonly seconds: number | null;
}

/** All steps before the first of them. */
export function firstSteps(): readonly Step[] {
    return stepNames.map((name) => ({ name, state: 'waiting', seconds: null }));
}
