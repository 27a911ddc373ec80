/** Decides where a command about plugins does its work, and explains refusals. */
import { isAbsolute } from 'node:path';

import type { Config } from '../../../platform/config.ts';
import type { Capabilities } from '../../../plugins/runtime/generation/generation.ts';
import { CommandError, RequestRefused } from '../../command/command-error.ts';
import { withPanel } from '../../panel/with-panel.ts';
import type { PluginAdmin } from './plugin-admin.ts';

/**
 * Works with the plugins of the running panel, or of the data folder when no panel runs.
 *
 * @param command - the command that agrees to missing capabilities, without the grants
 * @throws CommandError
 */
export async function withPluginAdmin<T>(
    config: Config,
    command: string,
    work: (admin: PluginAdmin) => Promise<T>
): Promise<T> {
    try {
        return await withPanel<T>(config, {
            async online(client) {
                const { PanelPluginAdmin } = await import('./panel-plugin-admin.ts');
                return work(new PanelPluginAdmin(client));
            },
            offline: async (offline) => work(await offline.plugins())
        });
    } catch (error) {
        throw error instanceof RequestRefused ? await explainRefusal(error, command) : error;
    }
}

async function explainRefusal(refusal: RequestRefused, command: string): Promise<CommandError> {
    const { data, message, reason } = refusal;
    switch (reason) {
        case 'CONSENT_REQUIRED': {
            const { consentScreen } = await import('./consent.ts');
            return new CommandError(
                `${message}. ${consentScreen(data['missing'] as Capabilities, command)}`,
                1,
                { cause: refusal }
            );
        }
        case 'IN_USE':
            return isListOfPlugins(data['by'])
                ? new CommandError(
                      `${message}. With --cascade ${data['by'].length === 1 ? 'that is' : 'those are'} disabled first`,
                      1,
                      { cause: refusal }
                  )
                : refusal;
        case 'PLUGIN_FAILED':
        case 'PACKAGE_REFUSED':
            return typeof data['cause'] === 'string' && !message.includes(data['cause'])
                ? new CommandError(`${message.replaceAll(/\s+/g, ' ')} (${data['cause']})`, 1, {
                      cause: refusal
                  })
                : refusal;
        case 'DATA_AHEAD':
            return new CommandError(message.replace('restoreData: true', '--restore-data'), 1, {
                cause: refusal
            });
        case 'TOOL_MISSING':
            return new CommandError(`${message}: ${String(data['install'])}`, 1, { cause: refusal });
        default:
            return refusal;
    }
}

/** What keeps a plugin: the plugins that require it by name, or the folder that the panel did not install. */
function isListOfPlugins(by: unknown): by is readonly string[] {
    return Array.isArray(by) && !by.some((each) => isAbsolute(String(each)));
}
