/** The settings of a document of the whole panel: those that somebody set, by their keys. What the environment decides belongs to the machine, not to the panel. */
import { isDeepStrictEqual } from 'node:util';
import type { Entry, Incoming, Reading, Section } from '../engine/section.ts';
import { fail, isFailureOf } from '../errors.ts';
import { definitionOf, isEngineKey, isSettingKey, settingKeys, type SettingKey } from './definitions.ts';
import type { Settings } from './settings.ts';
import { secretMask } from './state.ts';

export function createSettingsSection(settings: Settings): Section {
    return {
        name: 'settings',
        permissions: { read: 'settings:read', write: 'settings:write', secrets: 'engine:secrets' },
        collect(sink) {
            const stored = settingKeys.filter((key) => settings.read(key).source === 'stored');
            return Object.fromEntries(stored.map((key) => {
                const value: unknown = settings.get(key);
                if (!definitionOf(key).secret || value === null) {
                    return [key, value];
                }
                sink?.put(key, JSON.stringify(value));
                return [key, secretMask];
            }));
        },
        read: (part, reading) => readSettings(part, reading, settings)
    };
}
