/** What a manifest declares, as a generation is held to it. */
import { GenerationFault, type GenerationOptions } from './generation.ts';

/** Permissions; `read` and `write` always exist. */
export function permissionsOf({ plugin }: Pick<GenerationOptions, 'plugin'>): ReadonlySet<string> {
    return new Set(['read', 'write', ...Object.keys(plugin.manifest.permissions ?? {})]);
}

/** What the code says must be what the manifest says: an admin saw only that. @throws GenerationFault */
export function checkPartners({
    plugin,
    definition
}: Pick<GenerationOptions, 'plugin' | 'definition'>): void {
    for (const side of ['requires', 'optional'] as const) {
        const stray = definition[side].find((name) => !Object.hasOwn(plugin.manifest[side] ?? {}, name));
        if (stray !== undefined) {
            throw new GenerationFault(
                'mounted',
                'REGISTRATION_INVALID',
                `The definition names ${stray} in ${side}, and the manifest does not`
            );
        }
    }
}
