/** The health checks of the plugin. */
import type { Health } from '@portico/sdk';

import { fail } from './errors.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { supportOf } from './versions/end-of-life.ts';
import { installCommand } from './versions/releases.ts';

/** Registers the checks `php` and `releases`. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('php', () => checkPhp(services));
    ctx.health('releases', () => checkReleases(services));
}

async function checkPhp({ machine, releases }: Services): Promise<Health> {
    if (!machine.isRoot()) {
        return {
            state: 'degraded',
            evidence: `${fail.NOT_ROOT().message} (50350)`,
            remedy: { text: 'Run the panel as root, or serve PHP of other accounts by hosts of the type php' }
        };
    }
    const all = await releases.list();
    return all.length === 0
        ? {
              state: 'degraded',
              evidence: 'There is no PHP-FPM on this machine',
              remedy: { text: 'Install one', command: installCommand }
          }
        : { state: 'ok', evidence: `PHP ${all.map(({ version }) => version).join(', ')}` };
}

async function checkReleases({ releases, store }: Services): Promise<Health> {
    const [all, sites] = [await releases.list(), await store.all()];
    const used = new Set(sites.map(({ release }) => release));
    const gone = [...used].filter((each) => !all.some(({ release }) => release === each));
    if (gone.length > 0) {
        return {
            state: 'failed',
            evidence: `Sites use PHP ${gone.join(', ')}, which is not installed`,
            remedy: {
                text: 'Install it again',
                command: `apt-get install php${gone[0] ?? ''}-fpm php${gone[0] ?? ''}-cli`
            }
        };
    }
    const old = [...used].flatMap((release) => {
        const { status, endOfLife, isNear } = supportOf(release, new Date());
        return status === 'ended' || isNear
            ? [`PHP ${release} gets security fixes until ${endOfLife ?? ''}`]
            : [];
    });
    return old.length === 0
        ? { state: 'ok', evidence: `${sites.length} sites` }
        : {
              state: 'degraded',
              evidence: old.join('; '),
              remedy: { text: 'Install a newer release, and switch the sites to it' }
          };
}
