/** The engine service's answers as plain data, masked for callers that may not see secrets. */
import type { Caller } from '../../platform/call.ts';
import type { HostRow } from '../change.ts';
import { at } from '../control/differences.ts';
import type { EngineConfig } from '../port.ts';
import type { RevisionDetail, RevisionSummary } from '../revisions/revisions.ts';
import type { Drift, EngineStatus } from '../service.ts';
import { maskConfig, maskRow, maskSettings, maskText } from './mask.ts';

/** Whether a caller sees hashes, header values, keys, EAB and `advanced`. */
export const seesSecrets = (actor: Caller): boolean => actor.fresh && actor.can('engine:secrets');

/** @param advanced - from `advancedOf`, called only where something is masked */
export const configView = (
    config: EngineConfig | null,
    actor: Caller,
    advanced: () => ReadonlySet<string>
): EngineConfig | null => (config === null || seesSecrets(actor) ? config : maskConfig(config, advanced()));

/** The status as JSON. */
export const statusView = (status: EngineStatus) => ({
    ...status,
    startedAt: status.startedAt?.toISOString() ?? null,
    refused: [...status.refused],
    lastApply:
        status.lastApply === null ? null : { ...status.lastApply, at: status.lastApply.at.toISOString() }
});

/** A revision of a list as JSON. */
export const summaryView = ({ number, at: time, applied, reloaded, hash, by, changed }: RevisionSummary) => ({
    number,
    at: time.toISOString(),
    applied,
    reloaded,
    hash,
    by: [...by],
    changed
});

/** A revision as JSON, masked for callers that may not see secrets. */
export const revisionView = (revision: RevisionDetail, actor: Caller) => {
    const open = seesSecrets(actor);
    const rowView = (row: HostRow | null) => (row === null ? null : hostView(open ? row : maskRow(row)));
    return {
        ...summaryView(revision),
        changes: revision.changes.map(({ id, before, after }) => ({
            id,
            before: rowView(before),
            after: rowView(after)
        })),
        hosts: revision.hosts.map((row) => hostView(open ? row : maskRow(row))),
        settings: { ...(open ? revision.settings : maskSettings(revision.settings)) }
    };
};

/** A drift as JSON, each difference masked as at its place in the configuration. */
export const driftView = (drift: Drift, actor: Caller, advanced: () => ReadonlySet<string>) => {
    const open = seesSecrets(actor);
    const handlers = open ? new Set<string>() : advanced();
    return {
        drifted: drift.drifted,
        config: drift.config.map((difference) => (open ? difference : maskDifference(difference, handlers))),
        table: [...drift.table],
        more: drift.more
    };
};

/** Puts the value back at its place, masks it there and takes it out again: whether a text is masked depends on the keys above it. */
const maskDifference = (
    difference: Drift['config'][number],
    advanced: ReadonlySet<string>
): Drift['config'][number] => {
    const masked = (value: unknown): unknown => {
        const keys = difference.path.split('/').slice(1);
        const whole = keys.reduceRight<unknown>(
            (inner, key) => ({ [key.replaceAll('~1', '/').replaceAll('~0', '~')]: inner }),
            value
        );
        return typeof whole === 'object' && whole !== null && !Array.isArray(whole)
            ? (at(maskConfig(whole as EngineConfig, advanced), difference.path) ?? maskText)
            : maskText;
    };
    return {
        path: difference.path,
        ...('wanted' in difference ? { wanted: masked(difference.wanted) } : {}),
        ...('running' in difference ? { running: masked(difference.running) } : {})
    };
};

const hostView = ({ site, version, owner, tags, notes, createdAt, updatedAt }: HostRow) => ({
    ...site,
    upstream: site.upstreams[0]?.address ?? null,
    version,
    owner,
    tags: [...tags],
    notes,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString()
});
