/** The contract on the services of this generation. */
import { errors } from '@portico/sdk';

import type { DeployContract } from './contract.ts';
import { checkProject } from './projects/checks.ts';
import { readProject } from './projects/shapes.ts';
import type { Services } from './services.ts';

/** The contract that `setup` returns. */
export function createContract(services: Services): DeployContract {
    return {
        async createProject({ project }, { actor }) {
            if (actor?.can('write') !== true) {
                throw errors.forbidden('deploy:write');
            }
            const input = readProject(project);
            await checkProject(services, input);
            const { id } = await services.store.addProject(input);
            return { id };
        }
    };
}
