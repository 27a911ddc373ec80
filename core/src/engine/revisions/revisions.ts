/**
 * Revisions and the engine's own state row, on the core's database. A revision holds what it changed, before and after: rows of any kept
 * revision are the rows of now with the later deltas undone, so dropping the oldest never breaks the rest.
 */
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Author, HostRow } from '../change.ts';
import { EngineStateEntity, RevisionEntity } from '../entities.ts';
import type { EngineFragments, EngineSettings } from '../site.ts';

/** Seals what the database must not show. The core's keyring fits. */
export interface Sealer {
    seal(label: string, plain: string): string;
    open(label: string, sealed: string): string;
}

export interface HostDelta {
    readonly id: number;
    readonly before: HostRow | null;
    readonly after: HostRow | null;
}

export interface RevisionSummary {
    readonly number: number;
    readonly at: Date;
    /** Whether the engine serves it, or something later. */
    readonly applied: boolean;
    readonly reloaded: boolean;
    /** SHA-256 over what was rendered: configuration and table. */
    readonly hash: string;
    readonly by: readonly Author[];
    /** Number of host rows that it changed. */
    readonly changed: number;
}

export interface RevisionDetail extends RevisionSummary {
    readonly changes: readonly HostDelta[];
    readonly hosts: readonly HostRow[];
    readonly settings: EngineSettings;
}

export interface NewRevision {
    readonly number: number;
    readonly at: number;
    readonly applied: boolean;
    readonly reloaded: boolean;
    readonly hash: string;
    readonly by: readonly Author[];
    readonly deltas: readonly HostDelta[];
    readonly settings: EngineSettings;
}

/** The one row that outlives the process. */
export interface EngineMemory {
    readonly wanted: 'running' | 'stopped';
    /** The last revision; 0: none yet. */
    readonly revision: number;
    /** The last one that the engine served. */
    readonly applied: number;
    /** The highest id that a host ever had. */
    readonly lastHostId: number;
    /** The settings that the engine was last given; null: never. */
    readonly settings: EngineSettings | null;
}

export interface Revisions {
    memory(): EngineMemory;
    remember(tx: Transaction, memory: Partial<EngineMemory>): Promise<void>;
    append(tx: Transaction, revision: NewRevision): Promise<void>;
    /** Says that everything up to this revision is served now. */
    markApplied(tx: Transaction, upTo: number): Promise<void>;
    /** Newest first: the `limit` below `before`. */
    page(before: number | null, limit: number): readonly RevisionSummary[];
    total(): number;
    /** @returns null when it is not kept */
    summary(number: number): RevisionSummary | null;
    changes(number: number): readonly HostDelta[];
    settings(number: number): EngineSettings;
    /**
     * What the rows that changed after revision `from` (up to `to`, the present) were at that time; null: no such host.
     * @returns with each, the highest version that it had since
     */
    undo(
        from: number,
        to: number
    ): ReadonlyMap<number, { readonly row: HostRow | null; readonly version: number }>;
}

/** How many revisions are kept. Those that are not served yet are kept whatever their number. */
export const keptRevisions = 200;

const sealLabel = 'engine-revision';

interface Row {
    readonly number: number;
    readonly at: number;
    readonly applied: number;
    readonly reloaded: number;
    readonly hash: string;
    readonly authors: string;
    readonly changed: number;
}

export const createRevisions = (db: Database, sealer: Sealer): Revisions => {
    const columns = 'number, at, applied, reloaded, hash, authors, changed';
    const memoryOf = db.prepare<
        [],
        {
            wanted: 'running' | 'stopped';
            revision: number;
            applied: number;
            host_id: number;
            settings: string | null;
        }
    >('select wanted, revision, applied, host_id, settings from engine_state where id = 1');
    const newest = db.prepare<[number, number], Row>(
        `select ${columns} from engine_revision where number < ? order by number desc limit ?`
    );
    const one = db.prepare<[number], Row>(`select ${columns} from engine_revision where number = ?`);
    const count = db.prepare<[], { total: number }>('select count(*) as total from engine_revision');
    const deltas = db.prepare<[number, number], { hosts: string }>(
        'select hosts from engine_revision where number > ? and number <= ? order by number desc'
    );
    const deltasOf = db.prepare<[number], { hosts: string }>(
        'select hosts from engine_revision where number = ?'
    );
    const settingsOf = db.prepare<[number], { settings: string }>(
        'select settings from engine_revision where number = ?'
    );

    // Settings change rarely and are part of each revision: sealing the same ones again is saved.
    let lastSealed: { readonly settings: EngineSettings; readonly text: string } | null = null;
    const sealSettings = (settings: EngineSettings): string => {
        if (lastSealed?.settings !== settings) {
            const { acmeEab: eab, fragments } = settings;
            lastSealed = {
                settings,
                text: JSON.stringify({
                    ...settings,
                    ...(eab === null
                        ? {}
                        : { acmeEab: { ...eab, macKey: sealer.seal(sealLabel, eab.macKey) } }),
                    ...(fragments === undefined
                        ? {}
                        : { fragments: sealer.seal(sealLabel, JSON.stringify(fragments)) })
                })
            };
        }

        return lastSealed.text;
    };
    const openSettings = (text: string): EngineSettings => {
        const { fragments, ...settings } = JSON.parse(text) as Omit<EngineSettings, 'fragments'> & {
            readonly fragments?: string;
        };
        const eab = settings.acmeEab;
        return {
            ...settings,
            ...(eab === null ? {} : { acmeEab: { ...eab, macKey: sealer.open(sealLabel, eab.macKey) } }),
            ...(fragments === undefined
                ? {}
                : { fragments: JSON.parse(sealer.open(sealLabel, fragments)) as EngineFragments })
        };
    };

    return {
        memory() {
            const row = memoryOf.get();
            if (row === undefined) {
                throw new Error("The engine's state row is missing: the database is damaged");
            }

            return {
                wanted: row.wanted,
                revision: row.revision,
                applied: row.applied,
                lastHostId: row.host_id,
                settings: row.settings === null ? null : openSettings(row.settings)
            };
        },
        async remember(tx, memory) {
            const { wanted, revision, applied, lastHostId, settings } = memory;
            await tx.em.nativeUpdate(
                EngineStateEntity,
                { id: 1 },
                {
                    ...(wanted === undefined ? {} : { wanted }),
                    ...(revision === undefined ? {} : { revision }),
                    ...(applied === undefined ? {} : { applied }),
                    ...(lastHostId === undefined ? {} : { hostId: lastHostId }),
                    ...(settings === undefined
                        ? {}
                        : { settings: settings === null ? null : sealSettings(settings) })
                }
            );
        },
        async append(tx, revision) {
            const { number, at, applied, reloaded, hash, by } = revision;
            await tx.em.insert(RevisionEntity, {
                number,
                at,
                applied,
                reloaded,
                hash,
                authors: JSON.stringify(by),
                changed: revision.deltas.length,
                settings: sealSettings(revision.settings),
                hosts: JSON.stringify(revision.deltas)
            });
            await tx.em.nativeDelete(RevisionEntity, {
                number: { $lte: number - keptRevisions },
                applied: true
            });
        },
        async markApplied(tx, upTo) {
            await tx.em.nativeUpdate(
                RevisionEntity,
                { applied: false, number: { $lte: upTo } },
                { applied: true }
            );
        },
        page: (before, limit) => newest.all(before ?? Number.MAX_SAFE_INTEGER, limit).map(summaryOf),
        total: () => count.get()?.total ?? 0,
        summary(number) {
            const row = one.get(number);
            return row === undefined ? null : summaryOf(row);
        },
        changes: (number) => deltasIn(deltasOf.get(number)?.hosts ?? '[]'),
        settings: (number) => openSettings(settingsOf.get(number)?.settings ?? 'null'),
        undo(from, to) {
            const found = new Map<number, { readonly row: HostRow | null; readonly version: number }>();
            for (const { hosts } of deltas.all(from, to)) {
                for (const { id, before, after } of deltasIn(hosts)) {
                    found.set(id, {
                        row: before,
                        version: Math.max(
                            found.get(id)?.version ?? 0,
                            before?.version ?? 0,
                            after?.version ?? 0
                        )
                    });
                }
            }

            return found;
        }
    };
};

const summaryOf = (row: Row): RevisionSummary => ({
    number: row.number,
    at: new Date(row.at),
    applied: row.applied === 1,
    reloaded: row.reloaded === 1,
    hash: row.hash,
    by: JSON.parse(row.authors) as readonly Author[],
    changed: row.changed
});

const deltasIn = (text: string): readonly HostDelta[] =>
    (JSON.parse(text) as readonly HostDelta[]).map(({ id, before, after }) => ({
        id,
        before: revive(before),
        after: revive(after)
    }));

const revive = (row: HostRow | null): HostRow | null =>
    row === null ? null : { ...row, createdAt: new Date(row.createdAt), updatedAt: new Date(row.updatedAt) };
