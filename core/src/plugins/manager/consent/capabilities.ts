/** Compares the capabilities that a plugin asks for with those that it was granted. */
import type { Manifest } from '@portico/registry';
import { coversProgram } from '@portico/sdk/host';

import type { Capabilities } from '../../runtime/generation/generation.ts';

const lists = [
    'exec',
    'users',
    'files',
    'network',
    'sockets',
    'collect',
    'taps',
    'public',
    'logs',
    'panel',
    'direct'
] as const;
/** What each value of `hosts` includes. */
const hostsCover: Readonly<Record<string, readonly string[]>> = {
    own: ['own'],
    read: ['read'],
    write: ['own', 'read', 'write']
};
const certificatesCover: Readonly<Record<string, readonly string[]>> = {
    read: ['read'],
    write: ['read', 'write']
};

/** The capabilities that a manifest asks for; empty when it names none. */
export const askedOf = ({ capabilities = {} }: Pick<Manifest, 'capabilities'>): Capabilities => capabilities;

/** The part of `asked` that is in none of `covers`; null when all of it is covered. */
export function beyond(asked: Capabilities, ...covers: readonly Capabilities[]): Capabilities | null {
    const rest: Record<string, unknown> = {};
    for (const name of lists) {
        const left = entriesBeyond(
            asked[name],
            covers.map((cover) => cover[name]),
            name === 'exec' ? coversProgram : undefined
        );
        if (left.length > 0) {
            rest[name] = left;
        }
    }
    const api = Object.fromEntries(
        (['read', 'write'] as const)
            .map((side) => [
                side,
                entriesBeyond(
                    asked.api?.[side],
                    covers.map((cover) => cover.api?.[side])
                )
            ])
            .filter(([, left]) => (left?.length ?? 0) > 0)
    );
    if (Object.keys(api).length > 0) {
        rest['api'] = api;
    }
    if (
        asked.hosts !== undefined &&
        !covers.some(({ hosts = '' }) => hostsCover[hosts]?.includes(asked.hosts ?? '') === true)
    ) {
        rest['hosts'] = asked.hosts;
    }
    if (
        asked.certificates !== undefined &&
        !covers.some(
            ({ certificates = '' }) =>
                certificatesCover[certificates]?.includes(asked.certificates ?? '') === true
        )
    ) {
        rest['certificates'] = asked.certificates;
    }
    for (const flag of ['services', 'pages'] as const) {
        if (asked[flag] === true && !covers.some((cover) => cover[flag] === true)) {
            rest[flag] = true;
        }
    }
    return Object.keys(rest).length === 0 ? null : rest;
}

/** Whether a change of grants needs a new `setup`, because `setup` checks taps, public routes and pages against them, and the document says what pages in frames may call. */
export function bindsSetup(before: Capabilities, after: Capabilities): boolean {
    const part = ({ taps = [], public: reasons = [], pages, api = {} }: Capabilities): string =>
        JSON.stringify([
            [...taps].sort(),
            [...reasons].sort(),
            pages === true,
            [...(api.read ?? []), ...(api.write ?? [])].sort()
        ]);
    return part(before) !== part(after);
}

function entriesBeyond(
    asked: readonly string[] = [],
    covers: readonly (readonly string[] | undefined)[],
    isCovered = (held: string, entry: string): boolean => held === '*' || held === entry
): readonly string[] {
    const held = [...new Set(covers.flatMap((cover) => cover ?? []))];
    return asked.filter((entry) => !held.some((each) => isCovered(each, entry)));
}
