/** The panel for agents, over the Model Context Protocol. */
import { definePlugin } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { registerApprovalRoutes } from './routes/approvals.ts';
import { registerCallRoutes } from './routes/calls.ts';
import { registerClientRoutes } from './routes/clients.ts';
import { registerMcpRoute } from './routes/mcp.ts';
import { registerPromptRoutes } from './routes/prompts.ts';
import { registerSessionRoutes } from './routes/sessions.ts';
import { registerStatusRoutes } from './routes/status.ts';
import { registerToolRoutes } from './routes/tools.ts';
import { clean, createServices } from './services.ts';
import { settings } from './settings.ts';

/** The plugin `mcpserver`: what it stores, and what it starts. */
export default definePlugin({
    settings,
    entities,
    migrations,
    setup(ctx) {
        const services = createServices(ctx);
        const { approvals, calls, endpoint, switches } = services;
        registerMcpRoute(ctx, services);
        registerStatusRoutes(ctx, services);
        registerToolRoutes(ctx, services);
        registerApprovalRoutes(ctx, services);
        registerCallRoutes(ctx, services);
        registerSessionRoutes(ctx, services);
        registerClientRoutes(ctx);
        registerPromptRoutes(ctx, services);
        registerHooks(ctx, services);
        registerHealthChecks(ctx);
        ctx.onStart(async () => {
            await switches.load();
            await approvals.recover();
            await ctx.schedule('cleanup', { everySeconds: 60 }, () => clean(ctx, services));
        });
        ctx.onStop(async () => {
            await endpoint.close();
            await approvals.expire({ all: true });
            await calls.save();
        });
    }
});
