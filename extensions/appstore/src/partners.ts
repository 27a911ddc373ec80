/** The plugins that this one works with. */
import type { ContainerContract } from '@portico/plugin-container/contract';
import { contract } from '@portico/sdk';

/** What `deploy` is asked for. */
export interface DeployContract {
    /** Makes a project. */
    createProject(
        input: { readonly project: Readonly<Record<string, unknown>> },
        call: import('@portico/sdk').Call
    ): Promise<{ readonly id: number }>;
}

/** The partners of the definition. */
export const partners = {
    requires: { container: contract<ContainerContract>() },
    optional: { deploy: contract<DeployContract>() }
};
