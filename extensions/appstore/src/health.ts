/** The health checks of the plugin. */
import type { Health } from '@portico/sdk';

import { sourceState } from './apps/catalogue.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Registers the checks `sources` and `apps`. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('sources', () => checkSources(services));
    ctx.health('apps', () => checkApps(services));
}

async function checkSources({ sources, machine }: Services): Promise<Health> {
    const all = (await sources.list()).filter(({ enabled }) => enabled);
    const bad = all.filter((source) => ['error', 'expired'].includes(sourceState(source, machine.now())));
    const [first] = bad;
    if (first === undefined) {
        return { state: 'ok', evidence: `${all.length} sources are in order` };
    }
    const why = first.lastError ?? 'its catalogue has expired';
    return {
        state: 'degraded',
        evidence: `${bad.length} of ${all.length} sources cannot be used: ${first.name}: ${why}`,
        remedy: { text: 'Sync the source', route: `/api/plugins/appstore/sources/${first.name}/sync` }
    };
}

async function checkApps({ store }: Services): Promise<Health> {
    const all = await store.list();
    const bad = all.find(({ state }) => state === 'failed');
    return bad === undefined
        ? { state: 'ok', evidence: `${all.length} apps are installed` }
        : { state: 'failed', evidence: `${bad.name}: ${bad.lastError ?? 'it failed'}` };
}
