/** The assistant: it reads the panel and proposes changes, with the rights of the user who asks. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { type Machine, realMachine } from './machine.ts';
import { registerAnswerRoutes } from './routes/answers.ts';
import { registerApprovalRoutes } from './routes/approvals.ts';
import { registerConversationRoutes } from './routes/conversations.ts';
import { registerProviderRoutes } from './routes/providers.ts';
import { registerToolRoutes } from './routes/tools.ts';
import { registerUsageRoutes } from './routes/usage.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** Defines the plugin on a machine; tests pass one whose clock they set. */
export function defineAi(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerConversationRoutes(ctx, services);
            registerAnswerRoutes(ctx, services);
            registerApprovalRoutes(ctx, services);
            registerToolRoutes(ctx, services);
            registerProviderRoutes(ctx, services);
            registerUsageRoutes(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(async () => {
                await services.conversations.recover();
                await services.approvals.recover();
                await services.changes.recover();
                await ctx.schedule('retention', { everySeconds: 3_600 }, () =>
                    services.conversations.expire()
                );
            });
            ctx.onStop(() => services.answers.endAll());
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineAi(realMachine);
