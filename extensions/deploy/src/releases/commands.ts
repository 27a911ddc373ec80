/** Commands in the release that serves: of admins, and of crons. */
import { errors, type ExecResult } from '@portico/sdk';

import { deploymentEnvironment } from '../build/builder.ts';
import type { ReleasePlan } from '../build/plan.ts';
import { isContained } from '../containers/plans.ts';
import type { Stacks } from '../containers/stacks.ts';
import type { Project, Store } from '../deployments/store.ts';
import { environmentOf, type Variables } from '../env/variables.ts';
import type { Sandboxes } from '../sandbox/programs.ts';
import type { Folders } from './folders.ts';
import { groupLimits, releaseBinds, workingFolder } from './processes.ts';

interface Parts {
    readonly store: Store;
    readonly folders: Folders;
    readonly sandboxes: Sandboxes;
    readonly variables: Variables;
    readonly stacks: Stacks;
}

/** Runs commands in a sandbox of their own, with the files, the variables and the shared folders of the release that serves. */
export class Commands {
    readonly #parts: Parts;

    constructor(parts: Parts) {
        this.#parts = parts;
    }

    /** Runs one to its end. @throws NOT_FOUND 40400 where nothing serves; TOOL_MISSING 50302 */
    async run(
        project: Project,
        command: readonly string[],
        timeoutSeconds: number,
        signal: AbortSignal
    ): Promise<ExecResult> {
        const { store, folders, sandboxes, variables } = this.#parts;
        const deployment = project.live === null ? null : await store.deployment(project.live);
        if (deployment === null || deployment.plan === null) {
            throw errors.notFound('Nothing of this project was deployed yet');
        }
        const plan = JSON.parse(deployment.plan) as ReleasePlan;
        if (isContained(plan.runtime)) {
            return this.#parts.stacks.exec(deployment, plan, command, timeoutSeconds, signal);
        }
        const vars = await variables.ofProject(project);
        return sandboxes.exec({
            binds: releaseBinds(folders, project, plan),
            cwd: workingFolder(plan),
            network: true,
            command,
            env: {
                ...plan.env,
                ...deploymentEnvironment(project, deployment),
                ...environmentOf(vars, 'run')
            },
            limits: groupLimits(project),
            timeoutSeconds,
            signal
        });
    }
}
