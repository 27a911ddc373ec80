/** Containers, images and compose stacks of one Docker or Podman engine, under one policy. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerComposeRoutes } from './routes/compose.ts';
import { registerContainerRoutes } from './routes/containers.ts';
import { registerEngineRoutes } from './routes/engine.ts';
import { registerExecRoutes } from './routes/exec.ts';
import { registerImageRoutes } from './routes/images.ts';
import { registerResourceRoutes } from './routes/resources.ts';
import { registerStackRoutes } from './routes/stacks.ts';
import { registerStreamRoutes } from './routes/streams.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** The plugin. */
export default definePlugin({
    settings,
    entities,
    migrations,
    setup(ctx) {
        const services = createServices(ctx);
        registerContainerRoutes(ctx, services);
        registerComposeRoutes(ctx, services);
        registerStackRoutes(ctx, services);
        registerStreamRoutes(ctx, services);
        registerImageRoutes(ctx, services);
        registerResourceRoutes(ctx, services);
        registerExecRoutes(ctx, services);
        registerEngineRoutes(ctx, services);
        registerHealthChecks(ctx, services);
        ctx.onStop(() => services.stats.close());
    }
});
