/** Apps from signed catalogues, tried before they stay and taken back with their data. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { type Machine, realMachine } from './machine.ts';
import { partners } from './partners.ts';
import { registerAppRoutes } from './routes/apps.ts';
import { registerBackupRoutes } from './routes/backups.ts';
import { registerImportRoutes } from './routes/imports.ts';
import { registerInstalledRoutes } from './routes/installed.ts';
import { registerSourceRoutes } from './routes/sources.ts';
import { registerUpdateRoutes } from './routes/updates.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { planRounds, startSchedules } from './updates/schedules.ts';

/** Defines the plugin on a machine; tests pass one whose clock they set. */
export function defineAppstore(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        ...partners,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerAppRoutes(ctx, services);
            registerInstalledRoutes(ctx, services);
            registerUpdateRoutes(ctx, services);
            registerBackupRoutes(ctx, services);
            registerSourceRoutes(ctx, services);
            registerImportRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(() => startSchedules(ctx, services));
            ctx.onSettings(() => planRounds(ctx, services));
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineAppstore(realMachine);
