/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

const hourMs = 60 * 60_000;

/** Registers the checks `restic` and `plans`. */
export function registerHealthChecks(ctx: Ctx, { plans }: Services): void {
    ctx.health('restic', () => checkRestic(ctx));
    ctx.health('plans', async (): Promise<Health> => {
        const enabled = (await plans.list()).filter((plan) => plan.enabled);
        const limit = Date.now() - ctx.settings.staleHours * hourMs;
        const stale = enabled.filter(({ lastSuccessAt, createdAt }) => (lastSuccessAt ?? createdAt) < limit);
        return stale.length === 0
            ? { state: 'ok', evidence: `${enabled.length} plans are enabled` }
            : {
                  state: 'degraded',
                  evidence: `No success within ${ctx.settings.staleHours} hours: ${stale
                      .slice(0, 10)
                      .map(({ name }) => name)
                      .join(', ')}`,
                  remedy: { text: 'See how their last runs ended', route: '/api/plugins/backup/runs' }
              };
    });
}

async function checkRestic(ctx: Ctx): Promise<Health> {
    try {
        const { stdout } = await ctx.exec('restic', ['version'], { timeoutSeconds: 4 });
        return { state: 'ok', evidence: stdout.trim().slice(0, 100) };
    } catch (error) {
        if (isFailure(error) && error.reason === 'TOOL_MISSING') {
            return {
                state: 'failed',
                evidence: 'The program restic is not installed',
                remedy: { text: 'Install it', command: 'apt-get install restic' }
            };
        }
        throw error;
    }
}
