/** Decides where a command about plugins does its work, and says in words why that refuses. */
import type { Config } from '../../../platform/config.ts';
import type { Capabilities } from '../../../plugins/runtime/generation.ts';
import { Complaint, Refusal } from '../../command/command-error.ts';
import { reach } from '../../panel/with-panel.ts';
import type { PluginAdmin } from './plugin-admin.ts';

/**
 * Works with the plugins of the panel that runs, or of the folder of one that does not.
 *
 * @param command - what would be typed to agree to what is missing, up to the grants
 * @throws Complaint in words for whoever sits at the console
 */
export async function atDesk<T>(
    config: Config,
    command: string,
    work: (desk: PluginAdmin) => Promise<T>
): Promise<T> {
    try {
        return await reach<T>(config, {
            async online(client) {
                const { createPanelAdmin: createPanelDesk } = await import('./panel-plugin-admin.ts');
                return work(createPanelDesk(client));
            },
            offline: async (offline) => work(await offline.plugins())
        });
    } catch (error) {
        throw error instanceof Refusal ? await worded(error, command) : error;
    }
}

async function worded(refusal: Refusal, command: string): Promise<Complaint> {
    const { data, message, reason } = refusal;
    switch (reason) {
        case 'CONSENT_REQUIRED': {
            const { consentScreen } = await import('./consent.ts');
            return new Complaint(
                `${message}. ${consentScreen(data['missing'] as Capabilities, command)}`,
                1,
                { cause: refusal }
            );
        }
        case 'IN_USE':
            return Array.isArray(data['by']) && message.includes(' is required by ')
                ? new Complaint(
                      `${message}. With --cascade ${data['by'].length === 1 ? 'that is' : 'those are'} disabled first`,
                      1,
                      { cause: refusal }
                  )
                : refusal;
        case 'PLUGIN_FAILED':
        case 'PACKAGE_REFUSED':
            return typeof data['cause'] === 'string' && !message.includes(data['cause'])
                ? new Complaint(`${message.replaceAll(/\s+/g, ' ')} (${data['cause']})`, 1, {
                      cause: refusal
                  })
                : refusal;
        case 'DATA_AHEAD':
            return new Complaint(message.replace('restoreData: true', '--restore-data'), 1, {
                cause: refusal
            });
        case 'TOOL_MISSING':
            return new Complaint(`${message}: ${String(data['install'])}`, 1, { cause: refusal });
        default:
            return refusal;
    }
}
