/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Registers the check `engine`: it is there, and answers. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('engine', () => checkEngine(services));
}

async function checkEngine({ engine }: Services): Promise<Health> {
    try {
        const { kind, version } = await engine.info();
        await engine.call('GET', '/version');
        return { state: 'ok', evidence: `${kind === 'docker' ? 'Docker' : 'Podman'} ${version} answers` };
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        return {
            state: 'degraded',
            evidence: error.message,
            remedy:
                error.reason === 'TOOL_MISSING'
                    ? { text: 'Install Docker', command: 'apt-get install docker.io' }
                    : { text: 'Start the engine', command: 'systemctl start docker' }
        };
    }
}
