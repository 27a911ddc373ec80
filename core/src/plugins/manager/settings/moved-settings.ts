/**
 * Settings with their secrets apart from them, as they move from panel to panel. The key of a secret is a JSON pointer (RFC 6901) to its place in
 * the settings; a key without a leading slash is the name of a setting.
 */
import { isDeepStrictEqual } from 'node:util';

import { isFields, labelOf } from '@portico/sdk/host';

import type { Keyring } from '../../../platform/keys/keyring.ts';

type Values = Readonly<Record<string, unknown>>;
type Place = readonly string[];

/** Settings without their secrets, and the secrets by their places. */
export interface MovedSettings {
    readonly settings: Values;
    readonly secrets: Readonly<Record<string, string>>;
}

/** Takes the sealed secrets out of a record's settings, and opens them. @throws Error when they were sealed for another plugin */
export function openMoved(
    kept: Values,
    owner: { readonly name: string; readonly package: string },
    keyring: Pick<Keyring, 'open'>
): MovedSettings {
    const label = labelOf(owner.name, owner.package);
    return apart(kept, (value) => (isSealed(value) ? keyring.open(label, value['~sealed']) : null));
}

/** Puts settings and secrets into the form of a record: secrets are sealed. @throws Misplaced */
export function sealMoved(
    { settings, secrets }: MovedSettings,
    owner: { readonly name: string; readonly package: string },
    keyring: Pick<Keyring, 'seal'>
): Values {
    const label = labelOf(owner.name, owner.package);
    return together(settings, secrets, (secret) => ({ '~sealed': keyring.seal(label, secret) }));
}

/** Puts the secrets back into the settings, as plain text. @throws Misplaced */
export function joinMoved({ settings, secrets }: MovedSettings): Values {
    return together(settings, secrets, (secret) => secret);
}

/** Takes the secrets out of settings. @param patterns - dotted, as `DefinitionDocument.secrets` has them: `*` stands for any index and any name */
export function splitMoved(values: Values, patterns: readonly string[]): MovedSettings {
    const parts = patterns.map((pattern) => pattern.split('.'));
    return apart(values, (value, place) =>
        typeof value === 'string' &&
        value !== '' &&
        parts.some(
            (each) =>
                each.length === place.length && each.every((part, at) => part === '*' || part === place[at])
        )
            ? value
            : null
    );
}

/** Adds the present secrets that moved settings lack. A secret in a list is added only when the lists are equal; otherwise it could belong to another item. */
export function withPresent({ settings, secrets }: MovedSettings, here: MovedSettings): MovedSettings {
    const present = Object.entries(here.secrets).filter(([pointer]) => {
        const place = placeOf(pointer);
        const depth = place.findIndex((_part, at) =>
            Array.isArray(valueAt(here.settings, place.slice(0, at)))
        );
        const whole = place.slice(0, depth < 0 ? -1 : depth);
        const there = valueAt(settings, whole);
        return (
            !Object.hasOwn(secrets, pointer) &&
            (depth < 0
                ? isContainer(there) && !Object.hasOwn(there, place.at(-1) ?? '')
                : isDeepStrictEqual(there, valueAt(here.settings, whole)))
        );
    });
    return { settings, secrets: { ...Object.fromEntries(present), ...secrets } };
}

/** A secret whose place does not exist in the settings. */
export class Misplaced extends Error {}

function apart(values: Values, secretOf: (value: unknown, place: Place) => string | null): MovedSettings {
    const secrets: Record<string, string> = {};
    const visit = (value: unknown, place: Place): unknown => {
        if (Array.isArray(value)) {
            return value.map((item, at) => take(item, [...place, String(at)], null));
        }
        return isFields(value)
            ? Object.fromEntries(
                  Object.entries(value).flatMap(([key, item]) => {
                      const rest = take(item, [...place, key], undefined);
                      return rest === undefined ? [] : [[key, rest]];
                  })
              )
            : value;
    };
    /** In a list, null stands in place of a secret, so that the other items keep their index. */
    const take = (value: unknown, place: Place, instead: unknown): unknown => {
        const secret = secretOf(value, place);
        if (secret === null) {
            return visit(value, place);
        }
        secrets[pointerOf(place)] = secret;
        return instead;
    };
    return { settings: visit(values, []) as Values, secrets };
}

function together(
    settings: Values,
    secrets: Readonly<Record<string, string>>,
    put: (secret: string) => unknown
): Values {
    const copy = structuredClone(settings);
    for (const [pointer, secret] of Object.entries(secrets)) {
        const place = placeOf(pointer);
        const container = valueAt(copy, place.slice(0, -1));
        const key = place.at(-1) ?? '';
        if (
            !isContainer(container) ||
            (Array.isArray(container) && !(/^\d+$/.test(key) && Object.hasOwn(container, key)))
        ) {
            throw new Misplaced(`the secret ${pointer} has no place in them`);
        }
        Object.defineProperty(container, key, {
            value: put(secret),
            configurable: true,
            enumerable: true,
            writable: true
        });
    }
    return copy;
}

function valueAt(value: unknown, place: Place): unknown {
    return place.reduce<unknown>(
        (at, part) => (isContainer(at) && Object.hasOwn(at, part) ? (at as Values)[part] : undefined),
        value
    );
}

function pointerOf(place: Place): string {
    return place.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function placeOf(pointer: string): Place {
    return pointer.startsWith('/')
        ? pointer
              .slice(1)
              .split('/')
              .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
        : [pointer];
}

function isSealed(value: unknown): value is { readonly '~sealed': string } {
    return isFields(value) && typeof value['~sealed'] === 'string';
}

function isContainer(value: unknown): value is object {
    return typeof value === 'object' && value !== null;
}
