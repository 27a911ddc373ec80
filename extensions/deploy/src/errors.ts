/** The errors that only this plugin has. */
import { defineErrors, errors } from '@portico/sdk';
import { UniqueConstraintViolationException } from '@portico/sdk/db';

/** The plugin's own error table. */
export const fail = defineErrors({
    SIGNATURE_INVALID: { code: 40150, message: 'The delivery is not signed with the secret of this hook' },
    DEPLOYING: {
        code: 40950,
        message: 'The switch to deployment {number} has begun: it cannot be cancelled any more'
    },
    NOT_KEPT: {
        code: 40951,
        message: 'No release of this deployment is kept: choose another one, or deploy its commit'
    },
    COMMIT_CHANGED: {
        code: 40952,
        message:
            'The head of the pull request is another commit now, or the preview is over: look at it again'
    },
    REPOSITORY_REFUSED: { code: 42250, message: 'This repository is refused: {why}' },
    FORGE_FAILED: { code: 50250, message: 'The API of the forge gave no answer: {why}' },
    QUEUE_FULL: {
        code: 42950,
        message: '{waiting} deployments wait already: try again later, or raise the setting `queue`'
    }
});

/** Writes a row whose name no other has. @throws CONFLICT 40900 for a name that is taken */
export async function uniqueName<T>(work: () => Promise<T>): Promise<T> {
    try {
        return await work();
    } catch (error) {
        throw error instanceof UniqueConstraintViolationException ? errors.conflict('name') : error;
    }
}

/** Why a deployment failed. */
export type Reason =
    | 'FETCH_FAILED'
    | 'CHECKS_FAILED'
    | 'BUILD_FAILED'
    | 'BUILD_TIMEOUT'
    | 'TOO_LARGE'
    | 'HOOK_FAILED'
    | 'START_FAILED'
    | 'UNHEALTHY'
    | 'SWITCH_FAILED'
    | 'CANARY_REVERTED'
    | 'TOOL_MISSING'
    | 'CANCELLED'
    | 'PANEL_DIED';

/** What ends a deployment: the reason that its record shows, and the sentence that its log shows. */
export class DeploymentFailed extends Error {
    readonly reason: Reason;

    constructor(reason: Reason, message: string, options?: ErrorOptions) {
        super(message, options);
        this.name = 'DeploymentFailed';
        this.reason = reason;
    }
}

/** The requests could not be led to another release. */
export const switchFailed = (error: unknown): DeploymentFailed =>
    new DeploymentFailed('SWITCH_FAILED', `The engine could not be switched: ${(error as Error).message}`, {
        cause: error
    });
