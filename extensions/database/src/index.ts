/** Knows database servers, and lets people work on them. */
import { definePlugin } from '@portico/sdk';

import { createContract } from './contract.ts';
import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
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

const watchSeconds = 60;
const copySeconds = 15;
/** How much later than its end an account may go. */
const expirySeconds = 5;

/** The plugin. */
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
        ctx.onStart(async () => {
            await services.managed.sweep();
            await services.dumps.sweep();
            await services.pointInTime.sweep();
            await services.folder.remove('uploads');
            await services.schedules.refresh();
            // States are known soon, and a server that does not answer delays nothing.
            const watch = async (): Promise<void> => services.servers.watch(await services.managed.resting());
            void watch()
                .then(() => services.unfinished.sweep())
                .catch((error: unknown) => ctx.log.warn('Servers could not be asked', { error }));
            await ctx.schedule('credentials', { everySeconds: expirySeconds, missed: 'run-once' }, () =>
                services.credentials.expire()
            );
            await ctx.schedule('watch', { everySeconds: watchSeconds }, async () => {
                await watch();
                await services.metrics.sample(await services.servers.online());
                await services.unfinished.sweep();
            });
            await ctx.schedule('point-in-time', { everySeconds: copySeconds }, () =>
                services.pointInTime.keep()
            );
            await ctx.schedule('history', { everySeconds: 3_600 }, () => services.history.expire());
        });
        ctx.onStop(async () => {
            await services.console.close();
            services.connections.close();
        });
        return createContract(services);
    }
});
