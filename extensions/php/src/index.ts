/** PHP sites, each with an account, a folder and a PHP-FPM of its own. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { LogRotation } from './logs/rotation.ts';
import { type Machine, realMachine } from './machine.ts';
import { partners } from './partners.ts';
import { registerLogRoutes } from './routes/logs.ts';
import { registerPackageRoutes } from './routes/packages.ts';
import { registerSandboxRoutes } from './routes/sandbox.ts';
import { registerSettingsRoutes } from './routes/settings.ts';
import { registerSiteRoutes } from './routes/sites.ts';
import { registerStateRoutes } from './routes/state.ts';
import { registerSwitchRoutes } from './routes/switch.ts';
import { registerToolRoutes } from './routes/tools.ts';
import { registerVersionRoutes } from './routes/versions.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { recoverSites } from './sites/recovery.ts';

/** Defines the plugin on a machine; tests pass a double. */
export function definePhp(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        ...partners,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerVersionRoutes(ctx, services);
            registerSiteRoutes(ctx, services);
            registerStateRoutes(ctx, services);
            registerSettingsRoutes(ctx, services);
            registerSwitchRoutes(ctx, services);
            registerPackageRoutes(ctx, services);
            registerToolRoutes(ctx, services);
            registerSandboxRoutes(ctx, services);
            registerLogRoutes(ctx, services);
            registerHealthChecks(ctx, services);
            registerHooks(ctx, services);
            const rotation = new LogRotation(ctx, services);
            ctx.onStart(async () => {
                await recoverSites({ ctx, ...services });
                await rotation.start();
            });
        }
    });
}

/** The plugin on the machine that it runs on. */
export default definePhp(realMachine);
