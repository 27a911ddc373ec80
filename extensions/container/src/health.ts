/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import { storageFolders } from './storage/storage.ts';

/** Registers the checks `engine`: it is there, and answers; and `storage`: the panel may use the folder of stacks. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('engine', () => checkEngine(services));
    ctx.health('storage', () => checkStorage(ctx, services));
}

async function checkStorage({ settings }: Ctx, { storage }: Services): Promise<Health> {
    const { stackFolder } = settings;
    try {
        await Promise.all(storageFolders.map((folder) => storage.list(folder)));
        return { state: 'ok', evidence: `${stackFolder} can be used` };
    } catch (error) {
        return {
            state: 'degraded',
            evidence: `${stackFolder} cannot be used: ${String((error as Error).message)}`,
            remedy: {
                text: 'Let the user that the panel runs as own the folder, or choose another one in the settings',
                command: `ls -ld ${stackFolder}`
            }
        };
    }
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
