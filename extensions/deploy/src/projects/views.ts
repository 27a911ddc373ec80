/** How projects and deployments are shown. */
import { joi, type Value } from '@portico/sdk';

import type { ReleasePlan, Runtime } from '../build/plan.ts';
import { type Step, stepNames } from '../deployments/steps.ts';
import { activeStates, type Project, type Store } from '../deployments/store.ts';
import type { DeploymentRow } from '../entities.ts';
import type { Processes } from '../releases/processes.ts';
import type { ProjectState } from './shapes.ts';

const states = {
    queued: 'Waits',
    building: 'Is being built',
    releasing: 'Is being started',
    canary: 'Gets a share of the requests',
    live: 'Serves',
    retired: 'Served before',
    failed: 'Failed',
    cancelled: 'Cancelled',
    superseded: 'A newer one came'
} as const;
const triggers = {
    manual: 'A user',
    push: 'A push',
    poll: 'Asking',
    rollback: 'The way back',
    preview: 'A pull request'
} as const;
const reasons = {
    FETCH_FAILED: 'The commit could not be fetched',
    CHECKS_FAILED: 'A required check failed',
    BUILD_FAILED: 'The build failed',
    BUILD_TIMEOUT: 'The build took too long',
    TOO_LARGE: 'The release is too large',
    HOOK_FAILED: 'A command before the start failed',
    START_FAILED: 'It did not start',
    UNHEALTHY: 'It was not healthy in time',
    SWITCH_FAILED: 'The engine could not be switched',
    CANARY_REVERTED: 'The canary was taken back',
    TOOL_MISSING: 'A program is missing on this machine',
    CANCELLED: 'It was cancelled',
    PANEL_DIED: 'The panel ended meanwhile'
} as const;

/** Choices of the state of a deployment. */
export const deploymentState = () => joi.choice(states).label('State');
/** Choices of what asked for a deployment. */
export const deploymentTrigger = () => joi.choice(triggers).label('Begun by');

const stamp = (label: string) => joi.string().isoDate().allow(null).required().label(label);
const hidden = { ui: { column: false } } as const;

/** A deployment as it is shown. */
export const deploymentSchema = joi.object({
    id: joi.number().integer().required().label('Id').meta(hidden),
    projectId: joi
        .number()
        .integer()
        .required()
        .label('Project')
        .meta({ ui: { column: false, ref: 'deploy.projects' } }),
    number: joi
        .number()
        .integer()
        .required()
        .label('Number')
        .meta({ ui: { column: 1 } }),
    trigger: deploymentTrigger()
        .required()
        .meta({ ui: { column: 3 } }),
    ref: joi.string().allow(null).required().label('Branch or tag').meta(hidden),
    commit: joi
        .string()
        .allow(null)
        .required()
        .label('Commit')
        .meta({ ui: { column: 4 } }),
    message: joi
        .string()
        .allow(null, '')
        .required()
        .label('Message')
        .meta({ ui: { column: 5 } }),
    author: joi.string().allow(null, '').required().label('Author').meta(hidden),
    state: deploymentState()
        .required()
        .meta({
            ui: {
                column: 2,
                tones: {
                    queued: 'neutral',
                    building: 'busy',
                    releasing: 'busy',
                    canary: 'busy',
                    live: 'good',
                    retired: 'neutral',
                    failed: 'bad',
                    cancelled: 'warning',
                    superseded: 'neutral'
                }
            }
        }),
    reason: joi
        .choice(reasons)
        .allow(null)
        .required()
        .label('Why it does not serve')
        .meta({ ui: { column: 6 } }),
    from: joi.number().integer().allow(null).required().label('Release of').meta(hidden),
    artifact: joi
        .object({
            sha256: joi.string().required().label('SHA-256'),
            bytes: joi.number().integer().required().label('Size').unit('byte')
        })
        .allow(null)
        .required()
        .label('Archive'),
    kept: joi.boolean().required().label('Its release is kept').meta(hidden),
    steps: joi
        .array()
        .items(
            joi.object({
                name: joi
                    .valid(...stepNames)
                    .required()
                    .label('Step'),
                state: joi.valid('waiting', 'running', 'done', 'failed', 'skipped').required().label('State'),
                seconds: joi.number().allow(null).required().label('Took').unit('second')
            })
        )
        .required()
        .label('Steps'),
    queuedAt: joi.string().isoDate().required().label('Queued').meta(hidden),
    startedAt: stamp('Began').meta(hidden),
    switchedAt: stamp('Switched').meta(hidden),
    finishedAt: stamp('Ended').meta(hidden),
    taskId: joi.number().integer().allow(null).required().label('Task').meta(hidden)
});

/** A deployment as it is shown. */
export type DeploymentView = Value<typeof deploymentSchema>;

/** A deployment from its row. */
export function deploymentView(row: DeploymentRow): DeploymentView {
    const { id, projectId, number, trigger, ref, commit, message, author, state, from, kept, taskId } = row;
    return {
        ...{ id, projectId, number, trigger, ref, commit, message, author, state, from, kept, taskId },
        reason: row.reason as DeploymentView['reason'],
        artifact:
            row.artifactSha256 === null || row.artifactBytes === null
                ? null
                : { sha256: row.artifactSha256, bytes: row.artifactBytes },
        steps: JSON.parse(row.steps) as Step[],
        queuedAt: new Date(row.queuedAt).toISOString(),
        startedAt: timeOf(row.startedAt),
        switchedAt: timeOf(row.switchedAt),
        finishedAt: timeOf(row.finishedAt)
    };
}

function timeOf(at: number | null): string | null {
    return at === null ? null : new Date(at).toISOString();
}

/** What of a project is not said by an admin. */
export interface ProjectFacts {
    readonly id: number;
    readonly version: number;
    readonly state: ProjectState;
    readonly runtime: Runtime | null;
    readonly live: number | null;
    readonly hostId: number | null;
    readonly hook: boolean;
}

/** Makes what the API shows of projects. */
export class ProjectViews {
    readonly #store: Store;
    readonly #processes: Processes;

    constructor(store: Store, processes: Processes) {
        this.#store = store;
        this.#processes = processes;
    }

    /** A project with its state. */
    async view(project: Project) {
        const { config, name } = project;
        return { name, ...config, ...(await this.#facts(project)) };
    }

    async #facts({ id, version, live, hostId, hookKey, stopped }: Project): Promise<ProjectFacts> {
        const active = (await this.#store.inStates(activeStates)).some(({ projectId }) => projectId === id);
        const served = live === null ? null : await this.#store.deployment(live);
        const plan =
            served === null || served.plan === null ? null : (JSON.parse(served.plan) as ReleasePlan);
        const state = active
            ? 'deploying'
            : served === null
              ? 'empty'
              : stopped
                ? 'stopped'
                : (await this.#processes.isRunning(served))
                  ? 'live'
                  : 'failed';
        return { id, version, state, runtime: plan?.runtime ?? null, live, hostId, hook: hookKey !== null };
    }
}
