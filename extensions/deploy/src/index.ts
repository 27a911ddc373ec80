/** From a git repository to a release that serves. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { recoverDeployments } from './deployments/recovery.ts';
import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { type Machine, realMachine } from './machine.ts';
import { registerDeploymentRoutes } from './routes/deployments.ts';
import { registerLogRoutes } from './routes/logs.ts';
import { registerProcessRoutes } from './routes/processes.ts';
import { registerProjectRoutes } from './routes/projects.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** Defines the plugin on a machine; tests give it another folder. */
export function defineDeploy(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerProjectRoutes(ctx, services);
            registerDeploymentRoutes(ctx, services);
            registerLogRoutes(ctx, services);
            registerProcessRoutes(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(async () => {
                await recoverDeployments({ ctx, ...services });
                services.queue.pump();
            });
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineDeploy(realMachine);
