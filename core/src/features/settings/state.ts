/** All settings as of one commit. A state is immutable: a change makes a new one. */
import { createHash } from 'node:crypto';

import type { Config } from '../../platform/config.ts';
import {
    definitionOf,
    definitions,
    type SettingKey,
    settingKeys,
    type SettingType,
    type SettingValues
} from './definitions.ts';

/** A stored value; `undefined` when it was reset to its default. */
export interface Stored {
    readonly value: unknown;
    readonly version: number;
}

/** A setting as the API shows it. */
export interface SettingView {
    readonly key: SettingKey;
    /** Of a secret only whether it is set: `{ set: true }` or null. */
    readonly value: unknown;
    readonly default: unknown;
    readonly source: 'default' | 'stored' | 'environment';
    readonly type: SettingType;
    readonly unit: string | null;
    readonly description: string;
    readonly secret: boolean;
    readonly restart: boolean;
    /** Increases by one with each write of this setting. */
    readonly version: number;
}

/** What a read shows of a secret that is set. Sent back, it keeps the secret. */
export const secretMask = Object.freeze({ set: true });

/** The values and versions of all settings. */
export class SettingsState {
    readonly #stored: ReadonlyMap<SettingKey, Stored>;
    readonly #fixed: ReadonlyMap<SettingKey, unknown>;
    /** The sum of the versions, which increases with each write of any setting. */
    readonly version: number;

    constructor(
        stored: ReadonlyMap<SettingKey, Stored>,
        fixed: ReadonlyMap<SettingKey, unknown>,
        version: number
    ) {
        this.#stored = stored;
        this.#fixed = fixed;
        this.version = version;
    }

    /** The value in force: of the environment, stored, or the default. */
    get<K extends SettingKey>(key: K): SettingValues[K] {
        const value = this.#fixed.get(key) ?? this.#stored.get(key)?.value;
        return (value === undefined ? definitions[key].default : value) as SettingValues[K];
    }

    /** The stored value; `undefined` when none is stored. */
    stored(key: SettingKey): unknown {
        return this.#stored.get(key)?.value;
    }

    /** Whether the environment decides it. */
    isFixed(key: SettingKey): boolean {
        return this.#fixed.has(key);
    }

    /** 0 for a setting that was never written. */
    versionOf(key: SettingKey): number {
        return this.#stored.get(key)?.version ?? 0;
    }

    /** The state after a write; `undefined` resets a setting to its default. */
    with(changes: ReadonlyMap<SettingKey, unknown>): SettingsState {
        const stored = new Map(this.#stored);
        for (const [key, value] of changes) {
            stored.set(key, { value, version: this.versionOf(key) + 1 });
        }
        return new SettingsState(stored, this.#fixed, this.version + changes.size);
    }

    /** One setting as the API shows it. */
    view(key: SettingKey): SettingView {
        const definition = definitionOf(key);
        const value = this.get(key);
        const source = this.isFixed(key)
            ? 'environment'
            : this.#stored.get(key)?.value === undefined
              ? 'default'
              : 'stored';
        return {
            key,
            value: definition.secret ? (value === null ? null : secretMask) : value,
            default: definition.default,
            source,
            type: definition.type,
            unit: definition.unit,
            description: definition.description,
            secret: definition.secret,
            restart: definition.restart,
            version: this.versionOf(key)
        };
    }

    /** All settings as the API shows them. */
    views(): SettingView[] {
        return settingKeys.map((key) => this.view(key));
    }

    /** The version of `views`. It also changes when the environment decides other values. */
    get tag(): string {
        return this.#fixed.size === 0
            ? String(this.version)
            : `${this.version}.${createHash('sha256')
                  .update(JSON.stringify([...this.#fixed]))
                  .digest('hex')
                  .slice(0, 8)}`;
    }
}

/** The settings that the environment decides. */
export function fixedBy(config: Config): ReadonlyMap<SettingKey, unknown> {
    const fixed = settingKeys.map(
        (key) => [key, definitionOf(key).environment?.read(config) ?? null] as const
    );
    return new Map(fixed.filter(([, value]) => value !== null));
}
