/** Holds a write of settings against the table of definitions. */
import { isDeepStrictEqual } from 'node:util';

import type { EngineSettings } from '../../engine/site.ts';
import { fail, type Invalid, invalid } from '../../platform/errors.ts';
import { faultsOf, joiOf } from '../../platform/validation.ts';
import { definitionOf, isSettingKey, type SettingKey } from './definitions.ts';
import { secretMask, type SettingsState } from './state.ts';

/**
 * What a write changes; `undefined` resets a setting to its default. A secret that is sent back as it was read is kept.
 *
 * @throws VALIDATION_FAILED 40001 with every fault
 */
export function checkChanges(
    wanted: Readonly<Record<string, unknown>>,
    state: SettingsState
): ReadonlyMap<SettingKey, unknown> {
    const faults: Invalid[] = [];
    const changes = new Map<SettingKey, unknown>();
    for (const [key, value] of Object.entries(wanted)) {
        if (!isSettingKey(key)) {
            faults.push({ path: key, message: `${key} is not allowed` });
            continue;
        }
        const definition = definitionOf(key);
        if (definition.secret && isDeepStrictEqual(value, { ...secretMask })) {
            continue;
        }
        const found = value === null ? [] : settingFaults(key, value);
        faults.push(...found);
        if (found.length > 0) {
            continue;
        }
        if (state.isFixed(key)) {
            if (!isDeepStrictEqual(value, state.get(key))) {
                faults.push({
                    path: key,
                    message: `${key} is set by ${definition.environment?.variable ?? 'the environment'}`
                });
            }
            continue;
        }
        changes.set(key, value === null ? undefined : value);
    }
    if (faults.length > 0) {
        throw fail.VALIDATION_FAILED({ errors: faults });
    }
    return changes;
}

/** Requires different ports for HTTP and HTTPS. @throws VALIDATION_FAILED 40001 */
export function checkPorts({ httpPort, httpsPort }: EngineSettings): void {
    if (httpPort === httpsPort) {
        throw invalid({
            path: 'engine.httpsPort',
            message: 'engine.httpsPort must be another port than engine.httpPort'
        });
    }
}

function settingFaults(key: SettingKey, value: unknown): Invalid[] {
    const definition = definitionOf(key);
    const faults = faultsOf(joiOf(definition.schema).label(key), value, key);
    if (faults.length > 0) {
        return faults;
    }
    const fault = definition.check?.(value) ?? null;
    return fault === null ? [] : [{ path: key, message: `${key} ${fault}` }];
}
