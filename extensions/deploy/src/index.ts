/** From a git repository to a release that serves. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import type { DeployContract } from './contract.ts';
import { recoverDeployments } from './deployments/recovery.ts';
import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { type Machine, realMachine } from './machine.ts';
import { createContract } from './offered.ts';
import { partners } from './partners.ts';
import { registerArtifactRoutes } from './routes/artifacts.ts';
import { registerConnectionRoutes } from './routes/connections.ts';
import { registerDeploymentRoutes } from './routes/deployments.ts';
import { registerHookRoutes } from './routes/hooks.ts';
import { registerLogRoutes } from './routes/logs.ts';
import { registerPreviewRoutes } from './routes/previews.ts';
import { registerCronRoutes } from './routes/projects/crons.ts';
import { registerProcessRoutes } from './routes/projects/processes.ts';
import { registerProjectRoutes } from './routes/projects/projects.ts';
import { registerVariableRoutes } from './routes/projects/variables.ts';
import { registerToolRoutes } from './routes/tools.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** Defines the plugin on a machine; tests give it another folder. */
export function defineDeploy(machine: Machine): PluginDefinition<DeployContract> {
    return definePlugin({
        settings,
        ...partners,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerProjectRoutes(ctx, services);
            registerDeploymentRoutes(ctx, services);
            registerLogRoutes(ctx, services);
            registerProcessRoutes(ctx, services);
            registerVariableRoutes(ctx, services);
            registerConnectionRoutes(ctx, services);
            registerHookRoutes(ctx, services);
            registerArtifactRoutes(ctx, services);
            registerToolRoutes(ctx, services);
            registerPreviewRoutes(ctx, services);
            registerCronRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(async () => {
                await recoverDeployments({ ctx, ...services });
                await services.previews.sweep();
                services.queue.pump();
                await services.previews.start();
                await services.strays.start(services.queue);
                await services.crons.start();
                await services.polling.start();
            });
            return createContract(services);
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineDeploy(realMachine);
