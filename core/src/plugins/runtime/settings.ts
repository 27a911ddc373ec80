/** The settings of one generation: opened from what is stored, checked by the plugin's code, sealed again. */
import { isFailure, messageOf } from '@portico/sdk';
import { type Guest, mergeSettings, openSettings, sealSettings } from '@portico/sdk/host';

import type { Keyring } from '../../platform/keys/keyring.ts';
import { GenerationFault } from './generation/generation.ts';

type Values = Readonly<Record<string, unknown>>;

/** Reads, checks and seals the settings of one generation. */
export class GenerationSettings {
    readonly #label: string;
    readonly #keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly #stored: Values;
    /** The accepted settings as they were given, without defaults. */
    #raw: Values | null = null;
    #values: Values = {};

    /** @param stored - settings with sealed secrets. @param label - names the key under which they are sealed */
    constructor(stored: Values, label: string, keyring: Pick<Keyring, 'seal' | 'open'>) {
        this.#stored = stored;
        this.#label = label;
        this.#keyring = keyring;
    }

    /** The accepted settings with defaults. */
    get values(): Values {
        return this.#values;
    }

    /** Reads the stored settings. @throws GenerationFault SETTINGS_REQUIRED or SETTINGS_INVALID */
    async read(guest: Guest): Promise<void> {
        this.#raw = openSettings(this.#stored, this.#label, this.#keyring);
        try {
            this.#values = (await guest.readSettings({ values: this.#raw })).values;
        } catch (error) {
            throw settingsFault(error);
        }
    }

    /** Takes other settings. @param sealed - as `seal` answered them. @throws VALIDATION_FAILED 40001 */
    async accept(guest: Guest, sealed: Values): Promise<Values> {
        this.#raw = openSettings(sealed, this.#label, this.#keyring);
        this.#values = (await guest.readSettings({ values: this.#raw })).values;
        return this.#values;
    }

    /** Checks a change on top of the accepted settings, and seals the result. @throws VALIDATION_FAILED 40001 */
    async seal(guest: Guest, change: Values, secrets: readonly string[]): Promise<Values> {
        const now = this.#raw ?? openSettings(this.#stored, this.#label, this.#keyring);
        const merged = mergeSettings(now, change);
        await guest.readSettings({ values: merged });
        return sealSettings(merged, secrets, this.#label, this.#keyring);
    }
}

function settingsFault(error: unknown): GenerationFault {
    const faults = (isFailure(error) ? (error.data?.['errors'] ?? []) : []) as readonly {
        readonly path: string;
        readonly message: string;
    }[];
    const isMissing = faults.length > 0 && faults.every(({ message }) => message.endsWith('is required'));
    return new GenerationFault(
        'loaded',
        isMissing ? 'SETTINGS_REQUIRED' : 'SETTINGS_INVALID',
        faults.map(({ message }) => message).join('; ') || messageOf(error),
        { cause: error, data: { errors: faults } }
    );
}
