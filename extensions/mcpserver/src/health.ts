/** The health checks of the plugin. */
import type { Health } from '@portico/sdk';

import type { Ctx } from './settings.ts';

/** Registers the check `tools`: degraded when no route of the panel is a tool, or when a pattern of the setting names none. */
export function registerHealthChecks(ctx: Ctx): void {
    ctx.health('tools', () => checkTools(ctx));
}

async function checkTools(ctx: Ctx): Promise<Health> {
    const routes = await ctx.api.routes({ tool: true });
    const known = new Set(routes.map(({ id }) => id));
    const gone = ctx.settings.tools.filter((pattern) => !pattern.includes('*') && !known.has(pattern));
    if (gone.length > 0) {
        return {
            state: 'degraded',
            evidence: `The setting tools names routes that are not there: ${gone.slice(0, 10).join(', ')}`,
            remedy: { text: 'Remove them, or start the plugin that they belong to' }
        };
    }
    return { state: 'ok', evidence: `${known.size} routes can be tools` };
}
