/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import { sourceState } from './apps/catalogue.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Registers the checks `engine`, `sources` and `apps`. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('engine', () => checkEngine(ctx));
    ctx.health('sources', () => checkSources(services));
    ctx.health('apps', () => checkApps(services));
}

/** Catalogues can be read without an engine; apps cannot be installed or changed. */
async function checkEngine(ctx: Ctx): Promise<Health> {
    try {
        const { kind, version } = await ctx.plugins.container.engine({});
        return { state: 'ok', evidence: `Apps run on ${kind === 'docker' ? 'Docker' : 'Podman'} ${version}` };
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        const missing = error.reason === 'TOOL_MISSING';
        return {
            state: 'degraded',
            evidence: `No app can be installed or changed: ${error.message}`,
            remedy: missing
                ? { text: 'Install Docker', command: 'apt-get install docker.io' }
                : { text: 'Look at the health of Containers', route: '/api/plugins/container' }
        };
    }
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
