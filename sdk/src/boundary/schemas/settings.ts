/** Stores the settings of plugins with their secrets sealed under a label of the plugin's name and package. */
import { errors } from '../../plugin-errors.ts';
import { isFields } from '../plain.ts';
import { mapSecrets } from './secrets.ts';

/** Seals texts under a label, and opens them under the same label. */
export interface Sealer {
    seal(label: string, plain: string): string;
    /** @throws Error when it was sealed under another label or key */
    open(label: string, sealed: string): string;
}

type Values = Readonly<Record<string, unknown>>;
interface Sealed {
    readonly '~sealed': string;
}

/** The label under which a plugin's secrets are sealed: another package of the same name opens nothing. */
export const labelOf = (name: string, packageName: string): string => `plugin ${name} ${packageName}`;

/** Values with their secrets opened. @throws Error when one was sealed under another label or key */
export function openSettings(kept: Values, label: string, keyring: Pick<Sealer, 'open'>): Values {
    return mapSealed(kept, ({ '~sealed': text }) => keyring.open(label, text)) as Values;
}

/** Values with their secrets sealed; one that did not change stays as it was kept. */
export function sealSettings(
    values: Values,
    paths: readonly string[],
    label: string,
    keyring: Pick<Sealer, 'seal'>
): Values {
    return mapSecrets(values, paths, (value) => ({
        '~sealed': keyring.seal(label, String(value))
    })) as Values;
}

/** Values as an API answer may show them: a secret only says that it is set. */
export function viewSettings(kept: Values): Values {
    return mapSealed(kept, () => ({ set: true })) as Values;
}

/**
 * Merges a change into the present settings: null resets a setting to its default, and the mask that a read shows for a secret keeps the secret.
 *
 * @throws VALIDATION_FAILED 40001 when a value of the change looks sealed
 */
export function mergeSettings(before: Values, change: Values): Values {
    const merged = new Map(Object.entries(before));
    for (const [key, value] of Object.entries(change)) {
        if (value === null) {
            merged.delete(key);
        } else {
            merged.set(key, withKept(value, ownOf(before, key), key));
        }
    }
    return Object.fromEntries(merged);
}

/** An own property only: an empty object has no setting `constructor`. */
function ownOf(value: unknown, key: string): unknown {
    return isFields(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function withKept(value: unknown, before: unknown, path: string): unknown {
    if (isMask(value)) {
        return before;
    }
    if (Array.isArray(value)) {
        return value.map((item, index) =>
            withKept(
                item,
                Array.isArray(before) ? (before as readonly unknown[])[index] : undefined,
                `${path}.${index}`
            )
        );
    }
    if (isFields(value)) {
        if (Object.hasOwn(value, '~sealed')) {
            throw errors.invalid([
                { path, message: `${path} has a value that only the panel could have sealed` }
            ]);
        }
        return Object.fromEntries(
            Object.entries(value).map(([key, item]) => [
                key,
                withKept(item, ownOf(before, key), `${path}.${key}`)
            ])
        );
    }
    return value;
}

function mapSealed(value: unknown, change: (sealed: Sealed) => unknown): unknown {
    if (Array.isArray(value)) {
        return value.map((item) => mapSealed(item, change));
    }
    if (isSealed(value)) {
        return change(value);
    }
    return isFields(value)
        ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapSealed(item, change)]))
        : value;
}

function isSealed(value: unknown): value is Sealed {
    return isFields(value) && typeof value['~sealed'] === 'string';
}

function isMask(value: unknown): boolean {
    return isFields(value) && value['set'] === true && Object.keys(value).length === 1;
}
