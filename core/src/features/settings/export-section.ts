/** The settings in an export: those that are stored, by their keys. A setting that the environment decides belongs to the machine and stays out. */
import { isDeepStrictEqual } from 'node:util';

import { isFailure } from '@portico/sdk';

import type { Entry, Ground, Incoming, Reading, Section, Step } from '../../engine/section.ts';
import type { Invalid } from '../../platform/errors.ts';
import { definitionOf, isEngineKey, isSettingKey, type SettingKey, settingKeys } from './definitions.ts';
import type { Settings } from './settings.ts';
import { secretMask } from './state.ts';

/** Builds the section `settings`. */
export function createSettingsSection(settings: Settings): Section {
    return {
        name: 'settings',
        permissions: { read: 'settings:read', write: 'settings:write', secrets: 'engine:secrets' },
        collect(sink) {
            const stored = settingKeys.filter((key) => settings.read(key).source === 'stored');
            return Object.fromEntries(
                stored.map((key) => {
                    const value: unknown = settings.get(key);
                    if (!definitionOf(key).secret || value === null) {
                        return [key, value];
                    }
                    sink?.put(key, JSON.stringify(value));
                    return [key, secretMask];
                })
            );
        },
        read: (part, reading) => readSettings(part, reading, settings)
    };
}

function readSettings(part: unknown, { path, faults, secrets }: Reading, settings: Settings): Incoming {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) {
        faults.add(path, `${path} must be an object of settings by their keys`);
        return { plan: () => ({ entries: [] }) };
    }
    const wanted = new Map<SettingKey, unknown>();
    const without = new Set<SettingKey>();
    for (const [key, value] of Object.entries(part)) {
        if (!isSettingKey(key)) {
            faults.add(`${path}.${key}`, `there is no setting ${key}`);
        } else if (definitionOf(key).secret && isDeepStrictEqual(value, { ...secretMask })) {
            const secret = secrets?.json(key);
            if (secret === undefined) {
                without.add(key);
            } else {
                wanted.set(key, secret);
            }
        } else {
            wanted.set(key, value);
        }
    }
    for (const fault of faultsOf(wanted, settings)) {
        faults.add(`${path}.${fault.path}`, fault.message);
    }
    return { plan: (ground) => plan(ground, wanted, without, settings) };
}

/** What the table of definitions refuses. */
function faultsOf(wanted: ReadonlyMap<SettingKey, unknown>, settings: Settings): readonly Invalid[] {
    try {
        settings.incoming(Object.fromEntries(wanted));
        return [];
    } catch (error) {
        if (isFailure(error) && error.reason === 'VALIDATION_FAILED') {
            return (error.data as { readonly errors?: readonly Invalid[] } | null)?.errors ?? [];
        }
        throw error;
    }
}

function plan(
    ground: Ground,
    wanted: ReadonlyMap<SettingKey, unknown>,
    without: ReadonlySet<SettingKey>,
    settings: Settings
): Step {
    const stored = settingKeys.filter((key) => settings.read(key).source === 'stored');
    const back =
        ground.mode === 'replace' ? stored.filter((key) => !wanted.has(key) && !without.has(key)) : [];
    const incoming = settings.incoming(
        Object.fromEntries([...wanted, ...back.map((key) => [key, null] as const)])
    );
    const entries = [...wanted.keys(), ...without, ...back].map((name): Entry => {
        if (incoming.fixed.has(name)) {
            return { effect: 'unchanged', name, notes: ['kept: the environment of this machine decides it'] };
        }
        if (without.has(name)) {
            return { effect: 'unchanged', name, notes: ['left out: the document has no secrets'] };
        }
        return {
            effect: !incoming.changed.has(name)
                ? 'unchanged'
                : back.includes(name)
                  ? 'delete'
                  : stored.includes(name)
                    ? 'update'
                    : 'create',
            name
        };
    });
    ground.settings = incoming.engine(ground.draft.settings);
    return {
        entries,
        ...([...incoming.changed].some(isEngineKey) ? { engine: { settings: ground.settings } } : {}),
        commit: (tx) => incoming.store(tx)
    };
}
