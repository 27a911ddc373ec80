/** Knows database servers, and lets people work on them. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { createContract } from './offered.ts';
import { partners } from './partners.ts';
import { registerCredentialRoutes } from './routes/accounts/credentials.ts';
import { registerUserRoutes } from './routes/accounts/users.ts';
import { registerCloneRoutes } from './routes/clones.ts';
import { registerConsoleRoutes } from './routes/data/console.ts';
import { registerDataRoutes } from './routes/data/data.ts';
import { registerDumpRoutes } from './routes/data/dumps.ts';
import { registerLoadRoutes } from './routes/data/load.ts';
import { registerTableRoutes } from './routes/data/tables.ts';
import { registerDatabaseRoutes } from './routes/databases.ts';
import { registerManagedRoutes } from './routes/managed.ts';
import { registerPointInTimeRoutes } from './routes/point-in-time.ts';
import { registerServerRoutes } from './routes/servers.ts';
import { registerSessionRoutes } from './routes/sessions.ts';
import { registerUpgradeRoutes } from './routes/upgrades.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { start } from './start.ts';

/** The plugin `database`: what it stores, and what it starts. */
export default definePlugin({
    settings,
    entities,
    migrations,
    ...partners,
    setup(ctx) {
        const services = createServices(ctx);
        registerServerRoutes(ctx, services);
        registerManagedRoutes(ctx, services);
        registerPointInTimeRoutes(ctx, services);
        registerUpgradeRoutes(ctx, services);
        registerLoadRoutes(ctx, services);
        registerDatabaseRoutes(ctx, services);
        registerUserRoutes(ctx, services);
        registerTableRoutes(ctx, services);
        registerConsoleRoutes(ctx, services);
        registerSessionRoutes(ctx, services);
        registerDataRoutes(ctx, services);
        registerCredentialRoutes(ctx, services);
        registerDumpRoutes(ctx, services);
        registerCloneRoutes(ctx, services);
        registerHooks(ctx, services);
        registerHealthChecks(ctx, services);
        ctx.onStart(() => start(ctx, services));
        ctx.onStop(async () => {
            await services.console.close();
            services.connections.close();
        });
        return createContract(services);
    }
});
