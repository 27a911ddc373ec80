/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Programs of the machine, with the command that brings each. */
const tools = [
    { file: 'git', args: ['version'], install: 'apt-get install git' },
    { file: 'bwrap', args: ['--version'], install: 'apt-get install bubblewrap' }
] as const;
/** The first git that connects to an address that it is given. */
const leastGit = [2, 37] as const;

/** Declares the health checks of accounts, tools and projects. */
export function registerHealthChecks(ctx: Ctx, services: Services): void {
    ctx.health('account', async () => accountHealth(services));
    ctx.health('tools', async () => toolsHealth(ctx));
    ctx.health('projects', async () => projectsHealth(services));
}

async function accountHealth({ folders }: Services): Promise<Health> {
    try {
        const { name } = await folders.account();
        return { state: 'ok', evidence: `Builds and releases run as ${name}` };
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        const command = String(error.data?.['install'] ?? '');
        return { state: 'failed', evidence: error.message, remedy: { text: 'Make the account', command } };
    }
}

async function toolsHealth(ctx: Ctx): Promise<Health> {
    for (const { file, args, install } of tools) {
        const result = await ctx.exec(file, args, { cwd: '/', timeoutSeconds: 4 }).catch(() => null);
        if (result === null) {
            return {
                state: 'failed',
                evidence: `${file} is missing`,
                remedy: { text: 'Install it', command: install }
            };
        }
        const [, major = 0, minor = 0] = /(\d+)\.(\d+)/.exec(result.stdout)?.map(Number) ?? [];
        if (file === 'git' && (major < leastGit[0] || (major === leastGit[0] && minor < leastGit[1]))) {
            return {
                state: 'failed',
                evidence: `git ${major}.${minor} is older than ${leastGit.join('.')}`,
                remedy: { text: 'Install a newer one', command: install }
            };
        }
    }
    return { state: 'ok', evidence: 'git and bubblewrap are there' };
}

async function projectsHealth({ store, views }: Services): Promise<Health> {
    const all = await Promise.all((await store.projects()).map((project) => views.view(project)));
    const failed = all.filter(({ state }) => state === 'failed').map(({ name }) => name);
    return failed.length === 0
        ? { state: 'ok', evidence: `${all.length} projects` }
        : {
              state: 'degraded',
              evidence: `These do not serve: ${failed.join(', ')}`,
              remedy: { text: 'Look at the logs of their programs, or roll back' }
          };
}
