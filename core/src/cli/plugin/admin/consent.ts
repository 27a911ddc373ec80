/** What a plugin asks for, in the words of the schema of manifests, and how whoever sits at the console agrees to it. */
import { readFileSync } from 'node:fs';

import { manifestSchema } from '@portico/registry';
import type Joi from 'joi';

import type { Capabilities } from '../../../plugins/runtime/generation.ts';
import { misuse } from '../../command/command-error.ts';

interface Described {
    readonly keys: Readonly<Record<string, { readonly flags?: { readonly description?: string } }>>;
}

const schema = (manifestSchema as unknown as Joi.ObjectSchema).extract('capabilities');
const words = (schema.describe() as unknown as Described).keys;
const star = /; `\*` means (.*)$/;
const quiet = /[\p{C}\s]+/gu;
const longest = 64 * 1024;

/** The whole screen: what is asked for, and the command that grants it. @param command - up to the grants */
export function consentScreen(missing: Capabilities, command: string): string {
    return [
        'It asks for this, and no admin has agreed to it yet:',
        ...linesOf(missing).map((line) => `  ${line}`),
        `To agree to all of it: ${command} --grant-all`,
        `To agree to these, or to less: ${command} --grants '${JSON.stringify(missing).replaceAll("'", "'\\''").replace(/\p{C}/gu, '\ufffd')}'`
    ].join('\n');
}

/** One line for each capability. */
export function linesOf(capabilities: Capabilities): readonly string[] {
    return Object.entries(capabilities).map(([name, value]) => {
        const said = words[name]?.flags?.description ?? name;
        const any = star.exec(said)?.[1]?.replace(/^any$/, 'anything') ?? 'anything';
        const label = `${name.padEnd(12)} ${said.replace(star, '')}`;
        return value === true ? label : `${label}: ${valueOf(value, any)}`;
    });
}

/**
 * Reads what was typed after `--grants`: a JSON object of capabilities, or the name of a file with one.
 *
 * @throws Complaint of misuse
 */
export function readGrants(text: string): Capabilities {
    let json = text;
    if (!text.trimStart().startsWith('{')) {
        try {
            json = readFileSync(text, 'utf8');
        } catch (error) {
            throw misuse(
                `--grants is neither a JSON object nor a file that can be read: ${(error as Error).message}`
            );
        }
    }
    let value: unknown;
    try {
        value = JSON.parse(json.length > longest ? '' : json);
    } catch (error) {
        throw misuse(`--grants is no JSON: ${(error as Error).message}`);
    }
    const { error } = schema.validate(value, {
        abortEarly: false,
        convert: false,
        errors: { wrap: { label: false } }
    });
    if (error !== undefined || value === undefined) {
        throw misuse(
            `--grants: ${error?.details.map(({ message }) => message).join('; ') ?? 'there is nothing in it'}`
        );
    }
    return value as Capabilities;
}

/** Both, without a repetition: what was granted before and what came to it. */
export function joined(granted: Capabilities, more: Capabilities): Capabilities {
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

function valueOf(value: unknown, any: string): string {
    if (Array.isArray(value)) {
        return value.map((entry) => (entry === '*' ? any : String(entry).replace(quiet, ' '))).join(', ');
    }
    if (typeof value === 'object' && value !== null) {
        return Object.entries(value)
            .map(([side, list]) => `${side} ${valueOf(list, any)}`)
            .join('; ');
    }
    return String(value);
}
