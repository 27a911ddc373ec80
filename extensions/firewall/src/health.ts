/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import { install } from './kernel/nft.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Registers the check `nft`: the program is there, and may change the rules of the kernel. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('nft', () => checkNft(services));
}

async function checkNft({ nft, store, firewall }: Services): Promise<Health> {
    try {
        await nft.check({ nftables: [] });
        const { applied, trial } = await store.read();
        if (trial === null && applied !== null && (await firewall.hasDrifted())) {
            return {
                state: 'degraded',
                evidence: 'Another program changed the table inet portico',
                remedy: {
                    text: 'Apply the rules again, or see what is there',
                    route: '/api/plugins/firewall/ruleset'
                }
            };
        }
        return {
            state: 'ok',
            evidence:
                trial !== null
                    ? 'A ruleset is on trial'
                    : applied === null
                      ? 'The firewall is off'
                      : 'The rules are applied'
        };
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        return {
            state: 'failed',
            evidence: error.message,
            remedy:
                error.reason === 'TOOL_MISSING'
                    ? { text: 'Install nftables', command: install }
                    : { text: 'Run the panel as root, or give its unit AmbientCapabilities=CAP_NET_ADMIN' }
        };
    }
}
