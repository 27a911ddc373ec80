/** The hooks of the core that the plugin taps. */
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Forgets what belonged to a user who is no more, and tells policies of what happens. */
export function registerHooks(ctx: Ctx, { conversations, memories, approvals, policies }: Services): void {
    ctx.hooks.tap('audit.recorded', async ({ action, resource, resourceId, outcome }) => {
        const userId = Number(resourceId);
        if (resource === 'users' && action === 'delete' && outcome === 'success' && userId > 0) {
            await conversations.removeOf(userId);
            await memories.removeAll(userId);
            await approvals.remove({ userId });
        }
    });
    ctx.hooks.tap('notification.raised', (event) => policies.see(event));
}
