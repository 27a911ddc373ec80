/** The contract on the services of this generation. */
import type { ContainerContract } from '../contract.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { createBuildMethods } from './builds.ts';
import { createDataMethods } from './data.ts';
import { createStackMethods } from './stacks.ts';

/** The contract that `setup` returns. */
export function createContract(ctx: Ctx, services: Services): ContainerContract {
    return {
        ...createStackMethods(ctx, services),
        ...createBuildMethods(services),
        ...createDataMethods(ctx, services)
    };
}
