/** What several routes say about places: two ends of a move or copy, taken names, and URLs. */
import { type Actor, errors, joi } from '@portico/sdk';

import { pluginErrors } from '../errors.ts';
import { filesystem, isMissing } from '../files/filesystem.ts';
import { isWithin, parseInner, pathSchema, rootName } from '../roots/path.ts';
import type { Root, Roots } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';

/** The body of a move or copy within one root. */
export const fromToSchema = joi.object({
    root: rootName.required(),
    from: pathSchema.required().label('From').description('Path below the root'),
    to: pathSchema.required().label('To').description('Free path below the root')
});

/** The root and both paths of a move or copy. @throws INSIDE_ITSELF 40952, NOT_FOUND 40400, OUTSIDE_ROOT 40350 */
export function parseFromTo(
    roots: Roots,
    actor: Actor,
    payload: { readonly root: string; readonly from: string; readonly to: string }
): { readonly root: Root; readonly from: string; readonly to: string } {
    const root = roots.of(actor, payload.root);
    const [from, to] = [parseInner(payload.from, 'from'), parseInner(payload.to, 'to')];
    if (from !== to && isWithin(to, from)) {
        throw pluginErrors.INSIDE_ITSELF({ path: to });
    }
    return { root, from, to };
}

/** Refuses a target that exists. @throws CONFLICT 40900 */
export async function refuseTaken({ files }: Root, to: string): Promise<void> {
    const existing = await filesystem(() => files.stat(to)).catch((error: unknown) => {
        if (!isMissing(error)) {
            throw error;
        }
        return null;
    });
    if (existing !== null) {
        throw errors.conflict('to');
    }
}

/** The URL of an entry (`files`) or of what a file contains (`content`). */
export function urlOf(ctx: Ctx, route: 'files' | 'content', root: Root, path: string): string {
    return `/api/plugins/${ctx.name}/${route}?root=${encodeURIComponent(root.name)}&path=${encodeURIComponent(path)}`;
}
