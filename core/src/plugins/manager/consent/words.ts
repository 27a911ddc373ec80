/** Capabilities in the words of the manifest's schema, for the admin who is asked for them. */
import { manifestSchema } from '@portico/registry';

import type { Capabilities } from '../../runtime/generation/generation.ts';

/** One capability in words. */
export interface CapabilityWords {
    readonly capability: string;
    /** What it allows. */
    readonly title: string;
    /** What of that is asked for, such as `git, tar`; empty for a capability that is either there or not. */
    readonly scope: string;
}

/** Joi types the keys of a description as `any`. */
const { keys: described } = manifestSchema.extract('capabilities').describe() as {
    readonly keys: Readonly<Record<string, { readonly flags?: { readonly description?: string } }>>;
};
const star = /; `\*` means (.*)$/;
const quiet = /[\p{C}\s]+/gu;

/** Says what each capability allows. */
export function wordsOf(capabilities: Capabilities): readonly CapabilityWords[] {
    return Object.entries(capabilities).map(([capability, value]) => {
        const said = described[capability]?.flags?.description ?? capability;
        const any = star.exec(said)?.[1]?.replace(/^any$/, 'anything') ?? 'anything';
        return {
            capability,
            title: said.replace(star, ''),
            scope: value === true ? '' : scopeOf(value, any)
        };
    });
}

function scopeOf(value: unknown, any: string): string {
    if (Array.isArray(value)) {
        return value.map((entry) => (entry === '*' ? any : String(entry).replace(quiet, ' '))).join(', ');
    }
    if (typeof value === 'object' && value !== null) {
        return Object.entries(value)
            .map(([side, list]) => `${side} ${scopeOf(list, any)}`)
            .join('; ');
    }
    return String(value);
}
