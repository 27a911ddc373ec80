/** Values of settings as rows store them. */
import type { Keyring } from '../../platform/keys/keyring.ts';
import { definitionOf, type SettingKey } from './definitions.ts';

const label = 'settings';

/** The value that a row stores; undefined for the default. */
export function valueOf(
    key: SettingKey,
    text: string | null | undefined,
    keyring: Pick<Keyring, 'open'>
): unknown {
    return text == null ? undefined : JSON.parse(definitionOf(key).secret ? keyring.open(label, text) : text);
}

/** What a row stores of a value, sealed where that is secret; null for the default. */
export function textOf(key: SettingKey, value: unknown, keyring: Pick<Keyring, 'seal'>): string | null {
    const text = value === undefined ? null : JSON.stringify(value);
    return text !== null && definitionOf(key).secret ? keyring.seal(label, text) : text;
}
