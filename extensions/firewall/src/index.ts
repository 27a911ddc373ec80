/** nftables rules with a trial that reverts by itself, bans, and a map of what is reachable. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { type Machine, realMachine } from './machine.ts';
import { registerBanRoutes } from './routes/bans.ts';
import { registerDocumentRoutes } from './routes/changes/documents.ts';
import { registerHistoryRoutes } from './routes/changes/history.ts';
import { registerPersistenceRoutes } from './routes/changes/persistence.ts';
import { registerTrialRoutes } from './routes/changes/trial.ts';
import { registerIntrusionRoutes } from './routes/intrusion.ts';
import { registerObjectRoutes } from './routes/objects.ts';
import { registerPolicyRoutes } from './routes/policy.ts';
import { registerReachRoutes } from './routes/reach.ts';
import { registerRuleRoutes } from './routes/rules.ts';
import { registerSetRoutes } from './routes/sets.ts';
import { registerSimulationRoutes } from './routes/simulation.ts';
import { registerStateRoutes } from './routes/state.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** Defines the plugin for one machine; tests pass one whose addresses are those of a network namespace. */
export function defineFirewall(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            const { firewall, bans, lists, persistence } = services;
            registerStateRoutes(ctx, services);
            registerRuleRoutes(ctx, services);
            registerObjectRoutes(ctx, services);
            registerSetRoutes(ctx, services);
            registerPolicyRoutes(ctx, services);
            registerBanRoutes(ctx, services);
            registerTrialRoutes(ctx, services);
            registerHistoryRoutes(ctx, services);
            registerSimulationRoutes(ctx, services);
            registerDocumentRoutes(ctx, services);
            registerReachRoutes(ctx, services);
            registerIntrusionRoutes(ctx, services);
            registerPersistenceRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            let since = machine.now();
            ctx.onStart(async () => {
                await firewall.start();
                await ctx.schedule('expiry', { everySeconds: 2 }, async () => {
                    const now = machine.now();
                    await firewall.expire(since);
                    since = now;
                });
                await ctx.schedule('lists', { everySeconds: 300 }, ({ signal }) => lists.refreshDue(signal));
                await ctx.schedule('boot-file', { everySeconds: 30 }, () => persistence.refresh());
                await ctx.schedule('ended-bans', { everySeconds: 60 }, () => bans.prune());
            });
            ctx.onStop(() => firewall.stop());
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineFirewall(realMachine);
