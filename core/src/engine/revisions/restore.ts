/** Rows of an earlier time, as an ordinary change. */
import type { Call } from '../../platform/call.ts';
import { canonicalize } from '../../platform/canonical-json.ts';
import { fail } from '../../platform/errors.ts';
import type { Draft, HostRow, Plan, SettingsSource } from '../change.ts';
import { withFragments } from '../fragments/fragments.ts';
import type { EngineSettings } from '../site.ts';
import type { RevisionDetail } from './revisions.ts';

export interface Restore {
    readonly target: RevisionDetail;
    /** The highest version that each host had since. */
    readonly versions: ReadonlyMap<number, number>;
    readonly draft: Draft;
    /** The version that a host, which is gone by now, had at last; undefined: not gone lately. */
    readonly lastVersion: (id: number) => number | undefined;
    readonly call: Call;
    readonly settings: SettingsSource;
    readonly now: number;
    readonly vet: ((call: Call, before: HostRow | null, after: HostRow | null) => void) | undefined;
}

/**
 * What makes the rows those of the revision: hosts of that time come back under their ids, later ones go, versions count up.
 * @throws FORBIDDEN without the right to write hosts, or settings where these differ; CONFLICT when a certificate of that time is gone
 */
export const planRestore = (restore: Restore): Plan => {
    const { target, draft, call } = restore;
    const then = new Map(target.hosts.map((row) => [row.site.id, row]));
    const hosts: { readonly id: number; readonly row: HostRow | null }[] = [];
    for (const id of draft.hosts.keys()) {
        if (!then.has(id)) {
            hosts.push({ id, row: null });
        }
    }

    for (const [id, row] of then) {
        const now = draft.hosts.get(id);
        if (now === undefined || canonicalize(contentOf(now)) !== canonicalize(contentOf(row))) {
            const last = Math.max(
                row.version,
                restore.versions.get(id) ?? 0,
                restore.lastVersion(id) ?? 0,
                now?.version ?? 0
            );
            hosts.push({ id, row: { ...row, version: last + 1, updatedAt: new Date(restore.now) } });
        }
    }

    const settings = settingsOf(restore);
    permit(call, 'hosts:write', hosts.length > 0);
    permit(call, 'settings:write', settings !== null);
    for (const { id, row } of hosts) {
        const certificate = row?.site.certificateId ?? null;
        if (certificate !== null && !draft.certificates.has(certificate)) {
            throw fail.CONFLICT(
                { field: 'certificateId', host: id, certificate },
                {
                    message: `Host ${id} of revision ${target.number} needs the certificate ${certificate}, which is gone`
                }
            );
        }

        restore.vet?.(call, draft.hosts.get(id) ?? null, row);
    }

    return { hosts, ...(settings === null ? {} : { settings }) };
};

const contentOf = ({ site, owner, tags, notes }: HostRow): unknown => ({ site, owner, tags, notes });

const settingsOf = ({ target, draft, settings }: Restore): EngineSettings | null => {
    if (settings.write === undefined) {
        return null;
    }

    // What plugins have in the configuration stays as it is: a revision of before would serve sites without their protection.
    const wanted = withFragments(
        { ...target.settings, ...settings.fixed?.() },
        draft.settings.fragments ?? {}
    );
    return canonicalize(wanted) === canonicalize(draft.settings) ? null : wanted;
};

const permit = (call: Call, permission: string, needed: boolean): void => {
    if (needed && !call.actor.can(permission)) {
        throw fail.FORBIDDEN({ permission });
    }
};
