/** What an import changes: which checks are made, which are replaced, and which are removed. */
import { isDeepStrictEqual } from 'node:util';

import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import { describeProblem } from '../named.ts';
import { type CheckFields, fieldsOf } from './input.ts';
import type { NewCheck } from './schema.ts';
import type { SeenCheck } from './state.ts';

/** Largest number of checks. */
export const mostChecks = 500;

/** The changes of an import. */
interface RestorePlan {
    /** Null: the check is new. */
    readonly changes: readonly { readonly fields: CheckFields; readonly same: SeenCheck | null }[];
    readonly removed: readonly SeenCheck[];
    /** What is wrong with each that is left out. */
    readonly problems: readonly string[];
}

/** Plans an import. A check takes the place of the one with the same name; with `replace` all others are removed. */
export function planRestore(
    inputs: readonly NewCheck[],
    stored: readonly SeenCheck[],
    mode: 'merge' | 'replace'
): RestorePlan {
    const others = new Map(stored.map((check) => [check.fields.name.toLowerCase(), check]));
    const given = new Set<string>();
    const problems: string[] = [];
    const wanted = inputs.flatMap((input) => {
        const name = input.name.toLowerCase();
        const same = others.get(name) ?? null;
        others.delete(name);
        try {
            if (given.has(name)) {
                throw errors.conflict('name');
            }
            given.add(name);
            return [{ fields: fieldsOf(input, null), same }];
        } catch (error) {
            problems.push(`${input.name}: ${describeProblem(error)}`);
            return [];
        }
    });
    const removed = mode === 'replace' ? [...others.values()] : [];
    const room = Math.max(0, mostChecks - (stored.length - removed.length));
    const tooMany = new Set(wanted.filter(({ same }) => same === null).slice(room));
    for (const { fields } of tooMany) {
        problems.push(`${fields.name}: ${describeProblem(fail.TOO_MANY_CHECKS({ limit: mostChecks }))}`);
    }
    const changes = wanted.filter(
        (each) => !tooMany.has(each) && !isDeepStrictEqual(each.fields, each.same?.fields)
    );
    return { changes, removed, problems };
}
