/** The health checks of the plugin. */
import type { Health } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Registers the check `provider`: degraded when no provider answers. It asks for the list of models, which costs nothing. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('provider', (signal) => check(services, signal));
}

async function check({ models, providers }: Services, signal: AbortSignal): Promise<Health> {
    const enabled = (await providers.list()).filter((each) => each.enabled);
    if (enabled.length === 0) {
        return { state: 'ok', evidence: 'No provider is set up: only what needs no model works' };
    }
    const endpoint = await providers.choose(null);
    try {
        await models.list(endpoint, signal);
        return { state: 'ok', evidence: `${endpoint.name} answers` };
    } catch (error) {
        return {
            state: 'degraded',
            evidence: `${endpoint.name}: ${error instanceof Error ? error.message : 'it failed'}`,
            remedy: {
                text: 'Test the provider, and check its address and key',
                route: `/api/plugins/ai/providers/${endpoint.id}/test`
            }
        };
    }
}
