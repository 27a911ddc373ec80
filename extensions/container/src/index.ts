/** Containers, images and compose stacks of one Docker or Podman engine, under one policy. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { createContract } from './partners/contract.ts';
import { registerComposeRoutes } from './routes/compose.ts';
import { registerContainerRoutes } from './routes/containers.ts';
import { registerEngineRoutes } from './routes/engine.ts';
import { registerExecRoutes } from './routes/exec.ts';
import { registerImageRoutes } from './routes/images.ts';
import { registerResourceRoutes } from './routes/resources.ts';
import { registerStackRoutes } from './routes/stacks.ts';
import { registerStreamRoutes } from './routes/streams.ts';
import { createServices, type Services } from './services.ts';
import { type Ctx, settings } from './settings.ts';

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
        ctx.onStart(() => sweep(ctx, services));
        ctx.onStop(() => services.stats.close());
        return createContract(ctx, services);
    }
});

/** Removes what a panel that was killed left. */
async function sweep(ctx: Ctx, { builds, snapshots, archives }: Services): Promise<void> {
    await builds.sweep();
    await snapshots.sweep();
    await ctx.schedule('builds', { everySeconds: 600 }, () => builds.expire());
    // An engine that does not answer delays no start.
    void archives.sweep().catch((error: unknown) => ctx.log.debug('The engine was not swept', { error }));
}
