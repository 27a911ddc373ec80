import { canonicalize, type Reply, reply } from '@portico/sdk';

import { authorOf, type Call } from '../../platform/call.ts';
import { fail } from '../../platform/errors.ts';
import type { Draft, Engine, HostRow, Plan, SettingsSource } from '../change.ts';
import { withFragments } from '../fragments/fragments.ts';
import type { EngineOptions, RestoreResult } from '../service.ts';
import type { EngineSettings } from '../site.ts';
import { DraftOverlay } from '../sync/draft-overlay.ts';
import type { RevisionDetail } from './revisions.ts';

/** What a restore needs of the engine service. */
export interface RestoreOptions extends Pick<EngineOptions, 'settings' | 'clock' | 'vet'> {
    readonly engine: Pick<Engine, 'change'>;
}

/** A revision to restore. */
export interface RestoreTarget {
    readonly revision: RevisionDetail;
    /** The highest version that each host had since, by id. */
    readonly versions: ReadonlyMap<number, number>;
}

/** Makes rows and settings those of an earlier revision: an ordinary change through the sync queue. @throws what `planRestore` and any change throw */
export const restoreRevision = async (
    { engine, settings, clock, vet }: RestoreOptions,
    { revision, versions }: RestoreTarget,
    call: Call
): Promise<Reply<RestoreResult>> => {
    let plan: Plan = {};
    const { value } = await engine.change<Reply<RestoreResult>>({
        by: authorOf(call),
        plan(draft) {
            plan = planRestore({
                target: revision,
                versions,
                draft,
                lastVersion: (id) =>
                    draft instanceof DraftOverlay ? draft.deletedVersions.get(id) : undefined,
                call,
                settings,
                now: clock.now(),
                vet
            });
            return plan;
        },
        async commit(tx, outcome) {
            if (plan.settings !== undefined) {
                const { fragments: _kept, ...own } = plan.settings;
                await settings.write?.(tx, own);
            }

            const data: RestoreResult = {
                revision: outcome.revision,
                applied: outcome.applied,
                reload: outcome.reloaded,
                changed: plan.hosts?.length ?? 0
            };
            return call.complete(tx, {
                action: 'restore',
                resource: 'proxyengine',
                resourceId: revision.number,
                after: { ...data },
                reply: reply.with(data, {
                    message: `The hosts are those of revision ${revision.number}`,
                    headers: { 'x-engine-reload': String(outcome.reloaded) }
                })
            });
        }
    });
    return value;
};

interface Restore {
    readonly target: RevisionDetail;
    /** The highest version that each host had since. */
    readonly versions: ReadonlyMap<number, number>;
    readonly draft: Draft;
    /** The last version of a deleted host; undefined when it was not deleted since the panel started. */
    readonly lastVersion: (id: number) => number | undefined;
    readonly call: Call;
    readonly settings: SettingsSource;
    readonly now: number;
    readonly vet: ((call: Call, before: HostRow | null, after: HostRow | null) => void) | undefined;
}

/**
 * Plans what makes the rows those of the revision: hosts of that time come back under their ids, later ones are removed, versions count up.
 * @throws FORBIDDEN 40300 without `hosts:write`, or `settings:write` where settings differ; CONFLICT 40900 when a certificate of that time is gone
 */
const planRestore = (restore: Restore): Plan => {
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

    // Fragments stay as they are: those of an earlier revision could leave sites without the protection of a plugin.
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
