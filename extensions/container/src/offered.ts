/** The contract on the services of this generation. */
import type { ContainerContract } from './contract.ts';
import { createBuildMethods } from './partners/builds.ts';
import { createDataMethods } from './partners/data.ts';
import { createStackMethods } from './partners/stacks.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** The contract that `setup` returns. */
export function createContract(ctx: Ctx, services: Services): ContainerContract {
    return {
        ...createStackMethods(ctx, services),
        ...createBuildMethods(services),
        ...createDataMethods(ctx, services)
    };
}
