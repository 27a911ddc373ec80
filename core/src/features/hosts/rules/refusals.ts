/** Why a change of a host is refused before anything happens: rights, faults, versions, names. */
import type { Draft, HostRow } from '../../../engine/change.ts';
import type { Site } from '../../../engine/site.ts';
import type { Call } from '../../../platform/call.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import { unsafeParts } from './safety.ts';

/** @throws FORBIDDEN when the change is one for `hosts:unsafe` */
export function mayChange(call: Call, before: Site | null, after: Site): void {
    if (unsafeParts(before) !== unsafeParts(after) && !call.actor.can('hosts:unsafe')) {
        throw fail.FORBIDDEN({ permission: 'hosts:unsafe' });
    }
}

/** @throws VALIDATION_FAILED when there is any fault */
export function refuse(faults: readonly Invalid[]): void {
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

/** @throws VERSION_STALE when the caller means another version; `*` means whichever there is (RFC 9110, section 13.1.1) */
export function checkVersion(row: HostRow, ifMatch: string | null, sent: number | undefined): void {
    const stale =
        (ifMatch !== null && ifMatch !== '*' && ifMatch !== String(row.version)) ||
        (sent !== undefined && sent !== row.version);
    if (stale) {
        throw fail.VERSION_STALE({ version: row.version });
    }
}

/** @param going - hosts that give up their names in the same change */
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
