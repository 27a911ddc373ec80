/** Makes encrypted snapshots of the panel, of folders and of what plugins give, and proves that they come back. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerPlanRoutes } from './routes/plans.ts';
import { registerRepositoryRoutes } from './routes/repositories.ts';
import { registerRunRoutes } from './routes/runs.ts';
import { registerSnapshotRoutes } from './routes/snapshots.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** The plugin. */
export default definePlugin({
    settings,
    entities,
    migrations,
    setup(ctx) {
        const services = createServices(ctx);
        registerRepositoryRoutes(ctx, services);
        registerSnapshotRoutes(ctx, services);
        registerPlanRoutes(ctx, services);
        registerRunRoutes(ctx, services);
        registerHealthChecks(ctx, services);
        ctx.onStart(async () => {
            await services.runs.recover();
            await services.plans.start();
        });
        ctx.onStop(() => services.runs.close());
    }
});
