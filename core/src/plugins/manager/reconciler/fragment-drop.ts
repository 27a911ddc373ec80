/** What plugins gave for the engine goes when an admin switches them off, and the answer says so. */
import type { Logger } from '../../../platform/log.ts';
import type { FragmentsPort } from '../../runtime/fragments.ts';

/** Never throws: the decision stands, and what stays behind is said. */
export function fragmentDrop(
    fragments: FragmentsPort,
    log: Logger
): (plugins: readonly string[]) => Promise<readonly string[]> {
    return async (plugins) => {
        const said: string[] = [];
        for (const plugin of plugins) {
            try {
                const slots = await fragments.drop(plugin);
                said.push(
                    ...(slots.length === 0
                        ? []
                        : [`The engine serves without what ${plugin} gave it: ${slots.join(', ')}`])
                );
            } catch (error) {
                log.error('What a plugin gave for the engine could not be taken out of it', {
                    plugin,
                    error
                });
                said.push(
                    `The engine still serves what ${plugin} gave it: ${error instanceof Error ? error.message : String(error)}. Disable it again to try once more`
                );
            }
        }
        return said;
    };
}
