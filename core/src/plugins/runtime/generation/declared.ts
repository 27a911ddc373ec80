/** What a manifest declares, as a generation is held to it. */
import type { JsonSchema } from '@portico/sdk';
import type { DefinitionDocument, SchemaDescription } from '@portico/sdk/host';

import { jsonSchemaOf } from '../../../server/http/json-schema/json-schema.ts';
import { schemaOf } from '../routes/routes.ts';
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

/**
 * The settings as a JSON Schema. What it cannot express is left out: the plugin's own code checks the values.
 *
 * @throws TypeError for a `ui` of a property that is not in the vocabulary
 */
export function settingsSchemaOf(settings: SchemaDescription): JsonSchema {
    return jsonSchemaOf(schemaOf(settings), { side: 'body', defaults: true, lenient: true });
}

/** The same definition. Refuses settings that no page could show. @throws GenerationFault REGISTRATION_INVALID */
export function checkedSettings(definition: DefinitionDocument): DefinitionDocument {
    try {
        if (definition.settings !== null) {
            settingsSchemaOf(definition.settings);
        }
        return definition;
    } catch (error) {
        throw new GenerationFault(
            'mounted',
            'REGISTRATION_INVALID',
            `settings: ${(error as Error).message}`,
            {
                cause: error
            }
        );
    }
}
