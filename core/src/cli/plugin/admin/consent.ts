/** What a plugin asks for, in the words of the manifest's schema, and how a person at the console agrees to it. */
import { readFileSync } from 'node:fs';

import { manifestSchema } from '@portico/registry';

import { wordsOf } from '../../../plugins/manager/consent/words.ts';
import type { Capabilities } from '../../../plugins/runtime/generation/generation.ts';
import { usageError } from '../../command/command-error.ts';

const schema = manifestSchema.extract('capabilities');
const longest = 64 * 1024;

/** Lists what a plugin asks for, and the commands that grant it. @param command - the command without the grants */
export function consentScreen(missing: Capabilities, command: string): string {
    return [
        'The plugin asks for this, and no admin has agreed to it yet:',
        ...describeCapabilities(missing).map((line) => `  ${line}`),
        `To agree to everything: ${command} --grant-all`,
        `To agree to these capabilities, or to fewer: ${command} --grants '${JSON.stringify(missing).replaceAll("'", "'\\''").replace(/\p{C}/gu, '\ufffd')}'`
    ].join('\n');
}

/** Writes one line for each capability. */
function describeCapabilities(capabilities: Capabilities): readonly string[] {
    return wordsOf(capabilities).map(
        ({ capability, title, scope }) =>
            `${capability.padEnd(12)} ${title}${scope === '' ? '' : `: ${scope}`}`
    );
}

/**
 * Reads what was typed after `--grants`: a JSON object of capabilities, or the name of a file with one.
 *
 * @throws CommandError of wrong use
 */
export function readGrants(text: string): Capabilities {
    let json = text;
    if (!text.trimStart().startsWith('{')) {
        try {
            json = readFileSync(text, 'utf8');
        } catch (error) {
            throw usageError(
                `--grants is neither a JSON object nor a file that can be read: ${(error as Error).message}`
            );
        }
    }
    let value: unknown;
    try {
        value = JSON.parse(json.length > longest ? '' : json);
    } catch (error) {
        throw usageError(`--grants is not JSON: ${(error as Error).message}`);
    }
    const { error } = schema.validate(value, {
        abortEarly: false,
        convert: false,
        errors: { wrap: { label: false } }
    });
    if (error !== undefined || value === undefined) {
        throw usageError(
            `--grants: ${error?.details.map(({ message }) => message).join('; ') ?? 'it is empty'}`
        );
    }
    return value as Capabilities;
}

/** Adds capabilities to earlier ones, without repetitions. */
export function mergeGrants(granted: Capabilities, more: Capabilities): Capabilities {
    const lists = (one: unknown, two: unknown): unknown =>
        Array.isArray(one) && Array.isArray(two) ? [...new Set([...one, ...two] as unknown[])] : (two ?? one);
    const all = { ...granted, ...more } as Record<string, unknown>;
    for (const name of Object.keys(all).filter((each) => each !== 'api')) {
        all[name] = lists(granted[name as keyof Capabilities], more[name as keyof Capabilities]);
    }
    if (granted.api !== undefined || more.api !== undefined) {
        all['api'] = Object.fromEntries(
            ['read' as const, 'write' as const].flatMap((side) => {
                const list = lists(granted.api?.[side], more.api?.[side]);
                return list === undefined ? [] : [[side, list]];
            })
        );
    }
    return all as Capabilities;
}
