/** Containers, images and compose stacks of one Docker or Podman engine, under one policy. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { type Machine, realMachine } from './machine.ts';
import { createContract } from './offered.ts';
import { registerContainerRoutes } from './routes/containers/containers.ts';
import { registerContentRoutes } from './routes/containers/contents.ts';
import { registerExecRoutes } from './routes/containers/exec.ts';
import { registerSessionRoutes } from './routes/containers/sessions.ts';
import { registerStreamRoutes } from './routes/containers/streams.ts';
import { registerDaemonRoutes } from './routes/daemon.ts';
import { registerEngineRoutes } from './routes/engine.ts';
import { registerBuildRoutes } from './routes/objects/builds.ts';
import { registerImageRoutes } from './routes/objects/images.ts';
import { registerNetworkRoutes } from './routes/objects/networks.ts';
import { registerPruneRoutes } from './routes/objects/prune.ts';
import { registerVolumeRoutes } from './routes/objects/volumes.ts';
import { registerAdoptionRoutes } from './routes/stacks/adoption.ts';
import { registerComposeRoutes } from './routes/stacks/compose.ts';
import { registerHookRoutes } from './routes/stacks/hooks.ts';
import { registerHostRoutes } from './routes/stacks/hosts.ts';
import { registerStackRoutes } from './routes/stacks/stacks.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { start } from './start.ts';

/** The plugin on a machine; tests have one of their own. */
export function defineContainer(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerContainerRoutes(ctx, services);
            registerComposeRoutes(ctx, services);
            registerStackRoutes(ctx, services);
            registerAdoptionRoutes(ctx, services);
            registerHookRoutes(ctx, services);
            registerHostRoutes(ctx, services);
            registerStreamRoutes(ctx, services);
            registerImageRoutes(ctx, services);
            registerBuildRoutes(ctx, services);
            registerNetworkRoutes(ctx, services);
            registerVolumeRoutes(ctx, services);
            registerContentRoutes(ctx, services);
            registerPruneRoutes(ctx, services);
            registerExecRoutes(ctx, services);
            registerSessionRoutes(ctx, services);
            registerEngineRoutes(ctx, services);
            registerDaemonRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(() => start(ctx, services));
            ctx.onStop(() => services.stats.close());
            return createContract(ctx, services);
        }
    });
}

/** The plugin `container`, on the machine that it runs on. */
export default defineContainer(realMachine);
