/** A write of settings, held against the table of definitions. */
import { isDeepStrictEqual } from 'node:util';

import type Joi from 'joi';

import type { EngineSettings } from '../../engine/site.ts';
import { fail, type Invalid, invalid } from '../../platform/errors.ts';
import { definitionOf, isSettingKey, type SettingKey } from './definitions.ts';
import { secretMask, type SettingsState } from './state.ts';

/**
 * What a write changes; `undefined` as a value puts a setting back to its default. A secret that is sent back as it was read is kept.
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
        const found = value === null ? [] : faultsOf(key, value);
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

/** @throws VALIDATION_FAILED 40001 */
export function checkPorts({ httpPort, httpsPort }: EngineSettings): void {
    if (httpPort === httpsPort) {
        throw invalid({
            path: 'engine.httpsPort',
            message: 'engine.httpsPort must be another port than engine.httpPort'
        });
    }
}

function faultsOf(key: SettingKey, value: unknown): Invalid[] {
    const definition = definitionOf(key);
    const { error } = (definition.schema as unknown as Joi.Schema)
        .required()
        .label(key)
        .validate(value, { abortEarly: false, convert: false, errors: { wrap: { label: false } } });
    if (error !== undefined) {
        return error.details.map(({ path, message }) => ({ path: [key, ...path].join('.'), message }));
    }
    const fault = definition.check?.(value) ?? null;
    return fault === null ? [] : [{ path: key, message: `${key} ${fault}` }];
}
