/** The health checks of the plugin. */
import type { Health } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Names that one message shows at most. */
const maxNames = 10;

/** Registers the check `servers`: degraded when a server does not answer. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('servers', () => checkServers(services));
}

async function checkServers({ servers, connections }: Services): Promise<Health> {
    const all = await servers.list();
    const offline = all.filter(({ id }) => connections.reached(id).state === 'offline');
    if (offline.length > 0) {
        const names = offline
            .slice(0, maxNames)
            .map(({ id, name }) => `${name} (${connections.reached(id).message ?? 'no answer'})`);
        return {
            state: 'degraded',
            evidence: `These servers do not answer: ${names.join(', ')}`,
            remedy: {
                text: 'See whether they run, and whether their login is right',
                route: '/api/plugins/database/servers'
            }
        };
    }
    return { state: 'ok', evidence: `${all.length} servers are known` };
}
