/** Waits for the checks that a project requires of a commit. */
import { setTimeout as wait } from 'node:timers/promises';

import { isFailure } from '@portico/sdk';

import type { Project } from '../deployments/store.ts';
import { DeploymentFailed } from '../errors.ts';
import type { Connections } from '../git/connections.ts';
import type { CheckState, Forges } from '../git/forges.ts';
import { parseAddress } from '../git/remote/address.ts';

const lookMs = 5_000;

/** Asks the forge for the checks of commits. */
export class RequiredChecks {
    readonly #connections: Connections;
    readonly #forges: Forges;

    constructor(connections: Connections, forges: Forges) {
        this.#connections = connections;
        this.#forges = forges;
    }

    /**
     * Resolves when all checks are good; at once for a project that requires none.
     *
     * @throws DeploymentFailed CHECKS_FAILED when one failed, or does not end in the time of a build
     */
    async wait(
        { config }: Project,
        commit: string,
        say: (text: string) => void,
        signal: AbortSignal
    ): Promise<void> {
        const { requiredChecks } = config.triggers;
        if (requiredChecks.length === 0) {
            return;
        }
        const access = await this.#connections.forgeOf(config.source);
        if (access === null) {
            throw new DeploymentFailed('CHECKS_FAILED', 'Nothing says which forge has the checks');
        }
        const address = parseAddress(config.source.url);
        const end = performance.now() + config.build.timeoutSeconds * 1_000;
        let told = '';
        for (;;) {
            const states = await this.#forges.checks(access, address, commit).catch((error: unknown) => {
                if (!isFailure(error)) {
                    throw error;
                }
                return error.message;
            });
            const open = this.#open(requiredChecks, states);
            if (open === null) {
                say('The required checks are good');
                return;
            }
            if (open !== told) {
                say(open);
                told = open;
            }
            if (performance.now() > end) {
                throw new DeploymentFailed('CHECKS_FAILED', open);
            }
            await wait(lookMs, undefined, { signal });
        }
    }

    /** What is waited for; null when nothing is. @throws DeploymentFailed CHECKS_FAILED */
    #open(required: readonly string[], states: ReadonlyMap<string, CheckState> | string): string | null {
        if (typeof states === 'string') {
            return states;
        }
        const failed = required.find((name) => states.get(name) === 'failure');
        if (failed !== undefined) {
            throw new DeploymentFailed('CHECKS_FAILED', `The check ${failed} failed`);
        }
        const open = required.filter((name) => states.get(name) !== 'success');
        return open.length === 0 ? null : `Waiting for the checks ${open.join(', ')}`;
    }
}
