/** Removes from the engine what a plugin added to it, when an admin disables the plugin. */
import { messageOf } from '@portico/sdk';

import type { Logger } from '../../../../platform/log/log.ts';
import type { FragmentsPort } from '../../../runtime/fragments.ts';

/** Makes the function that does it; it resolves with sentences for the admin. Never rejects: the plugin stays disabled when the engine cannot be changed. */
export function fragmentDrop(
    fragments: FragmentsPort,
    log: Logger
): (plugins: readonly string[]) => Promise<readonly string[]> {
    return async (plugins) => {
        const sentences: string[] = [];
        for (const plugin of plugins) {
            try {
                const slots = await fragments.drop(plugin);
                sentences.push(
                    ...(slots.length === 0
                        ? []
                        : [`The engine serves without what ${plugin} gave it: ${slots.join(', ')}`])
                );
            } catch (error) {
                log.error('What a plugin added to the engine could not be removed', {
                    plugin,
                    error
                });
                sentences.push(
                    `The engine still serves what ${plugin} gave it: ${messageOf(error)}. Disable it again to try once more`
                );
            }
        }
        return sentences;
    };
}
