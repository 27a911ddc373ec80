/** The plugins that this one works with. */
import type { ContainerContract } from '@portico/plugin-container/contract';
import type { DeployContract } from '@portico/plugin-deploy/contract';
import { contract } from '@portico/sdk';

/** The partners of the definition. */
export const partners = {
    requires: { container: contract<ContainerContract>() },
    optional: { deploy: contract<DeployContract>() }
};
