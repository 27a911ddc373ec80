/** Refuses changes of hosts before anything happens: missing rights, faults, stale versions, taken names. */
import type { Draft } from '../../../engine/change.ts';
import type { Site } from '../../../engine/site.ts';
import type { Call } from '../../../platform/call.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import { isUnsafeChange } from './unsafe.ts';

/**
 * Refuses changes of unsafe parts, and those that open a host which has such parts.
 *
 * @param options - `dry`: nothing will be changed, so a session that is not fresh is enough
 * @throws FORBIDDEN 40300 when the actor lacks `hosts:unsafe`, STEP_UP_REQUIRED 40301 without a fresh session
 */
export function mayChange(
    { actor }: Call,
    before: Site | null,
    after: Site,
    { dry = false }: { readonly dry?: boolean } = {}
): void {
    if (!isUnsafeChange(before, after)) {
        return;
    }
    if (!actor.can('hosts:unsafe')) {
        throw fail.FORBIDDEN({ permission: 'hosts:unsafe' });
    }
    if (!dry && !actor.fresh) {
        throw fail.STEP_UP_REQUIRED();
    }
}

/** Refuses faults. @throws VALIDATION_FAILED 40001 when there is any */
export function refuse(faults: readonly Invalid[]): void {
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

/**
 * Refuses names that another host has.
 * @param going - ids of hosts that give up their names in the same change
 * @throws CONFLICT 40900 with `data.field`
 */
export function checkNames(draft: Draft, site: Site, going: ReadonlySet<number>): void {
    [site.domain, ...site.aliases].forEach((name, at) => {
        const owner = draft.hostOf(name);
        if (owner !== undefined && owner !== site.id && !going.has(owner)) {
            throw fail.CONFLICT(
                { field: at === 0 ? 'domain' : `aliases.${at - 1}`, value: name },
                { message: `${name} is a name of host ${owner} already` }
            );
        }
    });
}
