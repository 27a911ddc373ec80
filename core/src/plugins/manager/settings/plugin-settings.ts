/** Checks and seals the settings of plugins whose code was imported. Of the plugin's code only its schema runs. */
import type { PluginPackage } from '@portico/registry';
import { isFailure, type PluginDefinition } from '@portico/sdk';
import {
    createGuest,
    type DefinitionDocument,
    type Guest,
    labelOf,
    mergeSettings,
    openSettings,
    sealSettings
} from '@portico/sdk/host';

import type { Keyring } from '../../../platform/keys/keyring.ts';
import { joinMoved, type MovedSettings, sealMoved } from './moved-settings.ts';

type Values = Readonly<Record<string, unknown>>;

/** Settings of plugins: described, checked, sealed. */
export class PluginSettings {
    readonly #keyring: Pick<Keyring, 'seal' | 'open'>;

    constructor(keyring: Pick<Keyring, 'seal' | 'open'>) {
        this.#keyring = keyring;
    }

    /** What the code declares in `definePlugin`. */
    describe(plugin: PluginPackage, definition: PluginDefinition): Promise<DefinitionDocument> {
        return guestOf(plugin, definition).define({});
    }

    /** Merges a change into kept settings, checks the result, and seals its secrets. @throws VALIDATION_FAILED 40001 */
    async seal(
        plugin: PluginPackage,
        definition: PluginDefinition,
        kept: Values,
        change: Values
    ): Promise<Values> {
        const guest = guestOf(plugin, definition);
        const { secrets } = await guest.define({});
        const label = labelOf(plugin.manifest.name, plugin.package);
        const merged = mergeSettings(openSettings(kept, label, this.#keyring), change);
        await guest.readSettings({ values: merged });
        return sealSettings(merged, secrets, label, this.#keyring);
    }

    /**
     * Merges settings that came before the code into kept settings. Code that may not be loaded yet (`definition` null) checks them when it starts.
     *
     * @returns `refused`: why the code does not accept them, so that they are left out; null otherwise. Settings that are only missing can be given later
     */
    async take(
        plugin: PluginPackage,
        definition: PluginDefinition | null,
        kept: Values,
        moved: MovedSettings
    ): Promise<{ readonly settings: Values; readonly refused: string | null }> {
        const owner = { name: plugin.manifest.name, package: plugin.package };
        if (definition === null) {
            return { settings: { ...kept, ...sealMoved(moved, owner, this.#keyring) }, refused: null };
        }
        const label = labelOf(owner.name, owner.package);
        const guest = guestOf(plugin, definition);
        const { secrets } = await guest.define({});
        const values = { ...openSettings(kept, label, this.#keyring), ...joinMoved(moved) };
        try {
            await guest.readSettings({ values });
        } catch (error) {
            const faults =
                ((isFailure(error) ? error.data?.['errors'] : null) as
                    readonly { readonly message: string }[] | null | undefined) ?? [];
            if (!faults.every(({ message }) => message.endsWith('is required'))) {
                return { settings: kept, refused: faults.map(({ message }) => message).join('; ') };
            }
        }
        return { settings: sealSettings(values, secrets, label, this.#keyring), refused: null };
    }

    /** Seals the secrets of one package for another package of the same name. */
    reseal(name: string, kept: Values, from: string, to: string): Values {
        const paths = sealedPaths(kept);
        return sealSettings(
            openSettings(kept, labelOf(name, from), this.#keyring),
            paths,
            labelOf(name, to),
            this.#keyring
        );
    }
}

/** Only `define` and `readSettings` of it are called, so it needs no ports. */
function guestOf({ manifest, version }: PluginPackage, definition: PluginDefinition): Guest {
    return createGuest({
        name: manifest.name,
        version,
        dataDir: '',
        definition,
        checkReturns: false,
        hostApi: { log: () => Promise.resolve() } as never, // only `log` can be called
        local: {} as never // never called
    });
}

/** The places of sealed values, in the form of `DefinitionDocument.secrets`. */
function sealedPaths(value: unknown, path: readonly string[] = []): readonly string[] {
    if (typeof value !== 'object' || value === null) {
        return [];
    }
    if (typeof (value as { '~sealed'?: unknown })['~sealed'] === 'string') {
        return [path.join('.')];
    }
    return Object.entries(value).flatMap(([key, inner]) =>
        sealedPaths(inner, [...path, Array.isArray(value) ? '*' : key])
    );
}
