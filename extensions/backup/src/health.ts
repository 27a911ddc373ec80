/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import { connectionIn, statusOf } from './repositories/stored.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Programs, the package that brings each, and the types of repositories that need it. */
const programs = [
    { file: 'restic', args: ['version'], install: 'restic', types: null },
    { file: 'ssh', args: ['-V'], install: 'openssh-client', types: ['sftp'] },
    { file: 'rclone', args: ['version'], install: 'rclone', types: ['webdav', 'rclone'] }
] as const;

/** Registers a check for each program, `plans` and `repositories`. */
export function registerHealthChecks(ctx: Ctx, { plans, repositories }: Services): void {
    for (const program of programs) {
        ctx.health(program.file, async () => {
            const used = (await repositories.list()).map((row) => connectionIn(row).type as string);
            const isUsed = program.types === null || program.types.some((type) => used.includes(type));
            return isUsed
                ? checkProgram(ctx, program.file, program.args, program.install)
                : { state: 'ok', evidence: `No repository needs ${program.file}` };
        });
    }
    ctx.health('repositories', async (): Promise<Health> => {
        const rows = await repositories.list();
        const bad = rows.filter((row) => ['unreachable', 'damaged'].includes(statusOf(row).state));
        return bad.length === 0
            ? { state: 'ok', evidence: `${rows.length} repositories` }
            : {
                  state: 'degraded',
                  evidence: bad
                      .slice(0, 5)
                      .map((row) => `${row.name} was ${statusOf(row).state}: ${statusOf(row).message ?? ''}`)
                      .join('; ')
                      .slice(0, 500),
                  remedy: {
                      text: 'See what they say, then refresh them',
                      route: '/api/plugins/backup/repositories'
                  }
              };
    });
    ctx.health('plans', async (): Promise<Health> => {
        const enabled = (await plans.list()).filter((plan) => plan.enabled);
        const stale = await plans.stale();
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

async function checkProgram(
    ctx: Ctx,
    file: string,
    args: readonly string[],
    install: string
): Promise<Health> {
    try {
        const { stdout, stderr } = await ctx.exec(file, args, { timeoutSeconds: 4 });
        return { state: 'ok', evidence: (stdout || stderr).trim().split('\n', 1)[0]?.slice(0, 100) ?? '' };
    } catch (error) {
        if (isFailure(error) && error.reason === 'TOOL_MISSING') {
            return {
                state: 'failed',
                evidence: `The program ${file} is not installed`,
                remedy: { text: 'Install it', command: `apt-get install ${install}` }
            };
        }
        throw error;
    }
}
