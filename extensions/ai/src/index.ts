/** The assistant: it reads the panel and proposes changes, with the rights of the user who asks. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { type Machine, realMachine } from './machine.ts';
import { registerAnswerRoutes } from './routes/answers.ts';
import { registerApprovalRoutes } from './routes/approvals.ts';
import { registerConversationRoutes } from './routes/conversations.ts';
import { registerDocumentRoutes } from './routes/documents.ts';
import { registerInspectionRoutes } from './routes/inspections.ts';
import { registerMemoryRoutes } from './routes/memories.ts';
import { registerPolicyRoutes } from './routes/policies.ts';
import { registerProviderRoutes } from './routes/providers.ts';
import { registerToolRoutes } from './routes/tools.ts';
import { registerUsageRoutes } from './routes/usage.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { start } from './start.ts';

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
            registerMemoryRoutes(ctx, services);
            registerDocumentRoutes(ctx, services);
            registerInspectionRoutes(ctx, services);
            registerPolicyRoutes(ctx, services);
            registerToolRoutes(ctx, services);
            registerProviderRoutes(ctx, services);
            registerUsageRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onStart(() => start(ctx, services, machine));
            ctx.onStop(() => services.answers.endAll());
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineAi(realMachine);
