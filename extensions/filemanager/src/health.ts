/** The health checks of the plugin. */
import { errors, type Health, isFailure } from '@portico/sdk';

import { type Converter, installCommand } from './archives/converter.ts';
import type { Roots } from './roots/roots.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';
import type { Terminals } from './terminals/terminals.ts';

/** Registers the checks `roots`, `archives` and `terminal`. */
export function registerHealthChecks(ctx: Ctx, { converter, roots, terminals }: Services): void {
    ctx.health('roots', () => checkRoots(roots));
    ctx.health('archives', () => checkConverter(converter));
    ctx.health('terminal', () => checkTerminals(ctx, terminals));
}

async function checkRoots(roots: Roots): Promise<Health> {
    const all = roots.all();
    if (all.length === 0) {
        return {
            state: 'degraded',
            evidence: 'No root is set, so no files can be seen',
            remedy: {
                text: "Name the folders that people may reach in the plugin's settings",
                route: '/api/plugins/filemanager'
            }
        };
    }
    const missing: string[] = [];
    for (const { name, files } of all) {
        await files.stat('').catch(() => missing.push(name));
    }
    return missing.length === 0
        ? { state: 'ok', evidence: `${all.length} roots` }
        : {
              state: 'degraded',
              evidence: `These roots cannot be opened: ${missing.join(', ')}`,
              remedy: { text: 'Make the folders, grant them to the plugin, or remove the roots' }
          };
}

async function checkConverter(converter: Converter): Promise<Health> {
    const missing = await converter.missing();
    return missing.length === 0
        ? { state: 'ok', evidence: 'All formats of archives can be read and made' }
        : {
              state: 'degraded',
              evidence: `Without ${missing.join(', ')}, only tar, tar.gz, tar.zst and zip can be made, and tar, tar.gz and zip be read`,
              remedy: {
                  text: 'Install what is missing; files work without it',
                  command: installCommand
              }
          };
}

async function checkTerminals({ settings }: Ctx, terminals: Terminals): Promise<Health> {
    if (settings.terminals === 0) {
        return { state: 'ok', evidence: 'Terminals are switched off' };
    }
    try {
        await terminals.check();
        return { state: 'ok', evidence: `${terminals.openCount} terminals are open` };
    } catch (error) {
        const { code, reason, data, message } = isFailure(error)
            ? error
            : errors.toolMissing(settings.terminalShell, '');
        if (reason === 'TOO_MANY_TERMINALS') {
            return { state: 'ok', evidence: message };
        }
        const install = data?.['install'];
        return {
            state: 'degraded',
            evidence: `Terminals do not work: ${message} (${code})`,
            remedy: {
                text: 'Install what is missing; files work without it',
                ...(typeof install === 'string' && install !== '' ? { command: install } : {})
            }
        };
    }
}
