/** The rules that a document's hosts must keep, as those that come through the API. */
import type { Ground, Reading } from '../../../engine/section.ts';
import type { Site, SiteCertificate } from '../../../engine/site.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import { mayChange } from '../rules/refusals.ts';
import { checkSite, type SafetyContext } from '../rules/safety.ts';
import type { Placed } from './plan.ts';

/** @throws VALIDATION_FAILED for each name of a host that is not in the document and stays */
export function checkNames(placed: readonly Placed[], { draft, mode }: Ground, { path }: Reading): void {
    if (mode === 'replace') {
        return;
    }
    const moving = new Set(placed.map(({ row }) => row.site.id));
    const faults = placed.flatMap(({ at, row: { site } }) =>
        [site.domain, ...site.aliases].flatMap((name, which): Invalid[] => {
            const owner = draft.hostOf(name);
            return owner === undefined || moving.has(owner)
                ? []
                : [
                      {
                          path: `${path}.${at}.${which === 0 ? 'domain' : `aliases.${which - 1}`}`,
                          message: `${name} is a name of host ${owner}, which the document does not have`
                      }
                  ];
        })
    );
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

/**
 * Holds every host against the safety rules.
 * @param checked - by place in the document, what a host was held against when it passed: it is not checked a second time inside the queue
 * @throws VALIDATION_FAILED, FORBIDDEN (`hosts:unsafe`; `plugins:manage` for another owner)
 */
export function checkSafety(
    placed: readonly Placed[],
    { call }: Ground,
    context: SafetyContext,
    { path }: Reading,
    checked: Map<number, string>
): void {
    const faults: Invalid[] = [];
    const settings = JSON.stringify(context.settings);
    for (const {
        at,
        before,
        row: { site, owner }
    } of placed) {
        // An import that changes anything wants a fresh session in any case.
        mayChange(call, before?.site ?? null, site, { dry: true });
        // The owner may change the host on its own: to choose one is to grant a plugin something.
        if (owner !== (before?.owner ?? null) && !call.actor.can('plugins:manage')) {
            throw fail.FORBIDDEN(
                { permission: 'plugins:manage' },
                {
                    message: `${path}.${at}.owner: only an admin of plugins gives or takes the owner of a host`
                }
            );
        }
        // A plan also changes ids, hashes and `enabled`, but no rule depends on them.
        const against = `${settings} ${site.certificateId} ${fingerprintOf(context.certificates, site)}`;
        if (checked.get(at) !== against) {
            const found = checkSite(site, context);
            faults.push(
                ...found.map((fault) => ({ path: `${path}.${at}.${fault.path}`, message: fault.message }))
            );
            checked.set(at, against);
        }
    }
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

function fingerprintOf(certificates: ReadonlyMap<number, SiteCertificate>, { certificateId }: Site): string {
    return certificateId === null ? '' : (certificates.get(certificateId)?.fingerprint ?? 'none');
}
