/** Makes encrypted snapshots of the panel, of folders and of what plugins give, and proves that they come back. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { registerPlanRoutes } from './routes/plans.ts';
import { registerProtectionRoutes } from './routes/protection.ts';
import { registerRepositoryRoutes } from './routes/repositories.ts';
import { registerRestoreRoute } from './routes/restore.ts';
import { registerRunRoutes } from './routes/runs.ts';
import { registerSnapshotRoutes } from './routes/snapshots.ts';
import { registerUpkeepRoutes } from './routes/upkeep.ts';
import { tellOverdue } from './runs/notices.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** How often plans without a success are looked for. */
const overdueSeconds = 600;

/** The plugin `backup`: what it stores, and what it starts. */
export default definePlugin({
    settings,
    entities,
    migrations,
    setup(ctx) {
        const services = createServices(ctx);
        const { inPlace, plans, runs } = services;
        registerRepositoryRoutes(ctx, services);
        registerUpkeepRoutes(ctx, services);
        registerSnapshotRoutes(ctx, services);
        registerRestoreRoute(ctx, services);
        registerPlanRoutes(ctx, services);
        registerRunRoutes(ctx, services);
        registerProtectionRoutes(ctx, services);
        registerHealthChecks(ctx, services);
        registerHooks(ctx, services);
        ctx.onStart(async () => {
            await inPlace.recover();
            await runs.recover(plans);
            await plans.start();
            await ctx.schedule('overdue', { everySeconds: overdueSeconds }, () => tellOverdue(ctx, plans));
        });
        ctx.onSettings(() => plans.start());
        ctx.onStop(() => runs.close());
    }
});
