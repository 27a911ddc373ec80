/** What several routes say about places: two ends of a move or copy, taken names, and URLs. */
import { type Actor, errors, joi } from '@portico/sdk';

import { requireFile } from '../files/content/content.ts';
import { allowMissing, filesystem } from '../files/filesystem.ts';
import { parseInner, pathSchema, rootName } from '../roots/path.ts';
import type { Place, Root, Roots } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';

/** The schema of what happens when a name is taken. */
export const onConflictSchema = joi
    .choice({
        fail: 'Nothing is done, and the answer is 40900',
        skip: 'It is left out',
        rename: 'The new one is called `name (2).ext`',
        replace: 'The old one gives way, into the trash or as a version'
    })
    .default('fail')
    .label('When the name is taken');

/** The body of a move or copy. */
export const fromToSchema = joi.object({
    root: rootName.required(),
    from: pathSchema.required().label('From').description('Path below the root'),
    toRoot: rootName.label('To the root').description('Default: the same root'),
    to: pathSchema.required().label('To').description('Path below the root that it goes to'),
    onConflict: onConflictSchema
});

/** Both ends of a move or copy. @throws READ_ONLY 40352, NOT_FOUND 40400, OUTSIDE_ROOT 40350 */
export function parseFromTo(
    roots: Roots,
    actor: Actor,
    payload: {
        readonly root: string;
        readonly from: string;
        readonly toRoot?: string | undefined;
        readonly to: string;
    }
): { readonly from: Place; readonly to: Place } {
    const from = { root: roots.of(actor, payload.root), path: parseInner(payload.from, 'from') };
    const to = {
        root: roots.forChange(actor, payload.toRoot ?? payload.root),
        path: parseInner(payload.to, 'to')
    };
    return { from, to };
}

/** A place as the audit and tasks name it. */
export function nameOfPlace({ root, path }: Place): string {
    return `${root.name}:${path}`;
}

/** Refuses a target that exists. @throws CONFLICT 40900 */
export async function refuseTaken({ files }: Root, to: string, field = 'to'): Promise<void> {
    const existing = await filesystem(() => files.stat(to)).catch(allowMissing);
    if (existing !== undefined) {
        throw errors.conflict(field);
    }
}

/** Refuses a target that exists and must not be replaced, or is no file. @throws CONFLICT 40900, WRONG_TYPE 40950 */
export async function refuseTakenAt(root: Root, path: string, replace: boolean): Promise<void> {
    if (!replace) {
        return refuseTaken(root, path, 'path');
    }
    const existing = await filesystem(() => root.files.stat(path)).catch(allowMissing);
    if (existing !== undefined) {
        requireFile(existing, path);
    }
}

/** The URL of an entry (`files`) or of what a file contains (`content`). */
export function urlOf(ctx: Ctx, route: 'files' | 'content', root: Root, path: string): string {
    return `/api/plugins/${ctx.name}/${route}?root=${encodeURIComponent(root.name)}&path=${encodeURIComponent(path)}`;
}
