/**
 * A revision stores the rows that it changed, before and after. The rows of an earlier revision are the rows of now with the later deltas
 * undone, so old revisions can be removed without harm to the others.
 */
import type { Database, Transaction } from '../../platform/database/database.ts';
import { Writer } from '../../platform/database/writer.ts';
import { openHeaders, sealHeaders } from '../../platform/header-secrets.ts';
import type { Author, HostRow } from '../change.ts';
import { RevisionEntity } from '../entities.ts';
import type { EngineFragments, EngineSettings } from '../site.ts';

/** Encrypts what the database must not show. The core's keyring implements it. */
export interface Sealer {
    seal(label: string, plain: string): string;
    open(label: string, sealed: string): string;
}

/** What a revision did to one host; null: no such host. */
export interface HostDelta {
    readonly id: number;
    readonly before: HostRow | null;
    readonly after: HostRow | null;
}

/** A revision as lists show it. */
export interface RevisionSummary {
    readonly number: number;
    readonly at: Date;
    /** Whether the engine serves it, or served a later one. */
    readonly applied: boolean;
    readonly reloaded: boolean;
    /** SHA-256 over the rendered configuration and table. */
    readonly hash: string;
    readonly by: readonly Author[];
    /** Number of host rows that it changed. */
    readonly changed: number;
}

/** A revision with its changes, and all rows and settings as they were. */
export interface RevisionDetail extends RevisionSummary {
    readonly changes: readonly HostDelta[];
    readonly hosts: readonly HostRow[];
    readonly settings: EngineSettings;
}

/** A revision to be written. `at` is milliseconds since 1970. */
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

/** The engine's state row: what is known about it across restarts of the panel. */
export interface EngineMemory {
    readonly wanted: 'running' | 'stopped';
    /** The last revision; 0: none yet. */
    readonly revision: number;
    /** The last revision that the engine served. */
    readonly applied: number;
    /** The highest id that a host ever had. */
    readonly lastHostId: number;
    /** The settings that the engine was last given; null: none yet. */
    readonly settings: EngineSettings | null;
}

/** Number of revisions that are kept. Revisions that wait are kept beyond it. */
export const keptRevisions = 200;

const sealLabel = 'engine-revision';

const columns = 'number, at, applied, reloaded, hash, authors, changed';
const insertSql = `insert into engine_revision (${columns}, settings, hosts) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const removeSql = 'delete from engine_revision where number <= ? and applied = 1';

interface Row {
    readonly number: number;
    readonly at: number;
    readonly applied: number;
    readonly reloaded: number;
    readonly hash: string;
    readonly authors: string;
    readonly changed: number;
}

/** The revisions and the engine's state row, in the core's database. */
export class Revisions {
    readonly #statements: ReturnType<typeof prepareStatements>;
    readonly #settings: SettingsCodec;
    readonly #sealer: Sealer;
    readonly #writer = new Writer();

    constructor(db: Database, sealer: Sealer) {
        this.#statements = prepareStatements(db);
        this.#settings = new SettingsCodec(sealer);
        this.#sealer = sealer;
    }

    memory(): EngineMemory {
        const row = this.#statements.memory.get();
        if (row === undefined) {
            throw new Error("The engine's state row is missing: the database is damaged");
        }

        return {
            wanted: row.wanted,
            revision: row.revision,
            applied: row.applied,
            lastHostId: row.host_id,
            settings: row.settings === null ? null : this.#settings.open(row.settings)
        };
    }

    /** Writes the given fields of the state row. */
    async remember(tx: Transaction, memory: Partial<EngineMemory>): Promise<void> {
        const { wanted, revision, applied, lastHostId, settings } = memory;
        const values = Object.entries({
            wanted,
            revision,
            applied,
            host_id: lastHostId,
            settings: settings === undefined || settings === null ? settings : this.#settings.seal(settings)
        }).filter(([, value]) => value !== undefined);
        const statement = await this.#writer.statement(
            tx,
            `update engine_state set ${values.map(([column]) => `${column} = ?`).join(', ')} where id = 1`
        );
        statement.run(...values.map(([, value]) => value));
    }

    /** Writes a revision, and removes those that are too old. */
    async append(tx: Transaction, revision: NewRevision): Promise<void> {
        const { number, at, applied, reloaded, hash, by, deltas, settings } = revision;
        const insert = await this.#writer.statement(tx, insertSql);
        insert.run(
            number,
            at,
            Number(applied),
            Number(reloaded),
            hash,
            JSON.stringify(by),
            deltas.length,
            this.#settings.seal(settings),
            JSON.stringify(deltas.map((delta) => this.#delta(delta, sealHeaders)))
        );
        const remove = await this.#writer.statement(tx, removeSql);
        remove.run(number - keptRevisions);
    }

    /** Notes that the engine serves everything up to this revision. */
    async markApplied(tx: Transaction, upTo: number): Promise<void> {
        await tx.em.nativeUpdate(
            RevisionEntity,
            { applied: false, number: { $lte: upTo } },
            { applied: true }
        );
    }

    /** Newest first: the `limit` revisions below `before`. */
    page(before: number | null, limit: number): readonly RevisionSummary[] {
        return this.#statements.newest.all(before ?? Number.MAX_SAFE_INTEGER, limit).map(summaryOf);
    }

    total(): number {
        return this.#statements.count.get()?.total ?? 0;
    }

    /** @returns null when it is not kept */
    summary(number: number): RevisionSummary | null {
        const row = this.#statements.one.get(number);
        return row === undefined ? null : summaryOf(row);
    }

    changes(number: number): readonly HostDelta[] {
        return this.#deltasIn(this.#statements.deltasOf.get(number)?.hosts ?? '[]');
    }

    settings(number: number): EngineSettings {
        return this.#settings.open(this.#statements.settingsOf.get(number)?.settings ?? 'null');
    }

    /**
     * The rows that changed after revision `from` (up to `to`, the present), as they were at `from`; null: no such host.
     * @returns by host id, with the highest version that the host had since
     */
    undo(
        from: number,
        to: number
    ): ReadonlyMap<number, { readonly row: HostRow | null; readonly version: number }> {
        const found = new Map<number, { readonly row: HostRow | null; readonly version: number }>();
        for (const { hosts } of this.#statements.deltas.all(from, to)) {
            for (const { id, before, after } of this.#deltasIn(hosts)) {
                const version = Math.max(
                    found.get(id)?.version ?? 0,
                    before?.version ?? 0,
                    after?.version ?? 0
                );
                found.set(id, { row: before, version });
            }
        }

        return found;
    }

    #deltasIn(text: string): readonly HostDelta[] {
        return (JSON.parse(text) as readonly HostDelta[]).map((delta) => {
            const { id, before, after } = this.#delta(delta, openHeaders);
            return { id, before: revive(before), after: revive(after) };
        });
    }

    /** A delta with the credentials of its rows sealed or opened. */
    #delta({ id, before, after }: HostDelta, change: typeof sealHeaders | typeof openHeaders): HostDelta {
        const row = (each: HostRow | null): HostRow | null =>
            each === null ? null : { ...each, site: change(each.site, this.#sealer) };
        return { id, before: row(before), after: row(after) };
    }
}

/** Engine settings as text for the database, with the EAB key and the fragments sealed. */
class SettingsCodec {
    readonly #sealer: Sealer;
    /** Settings are part of each revision and rarely change: the last ones are not sealed again. */
    #last: { readonly settings: EngineSettings; readonly text: string } | null = null;

    constructor(sealer: Sealer) {
        this.#sealer = sealer;
    }

    seal(settings: EngineSettings): string {
        if (this.#last?.settings !== settings) {
            const { acmeEab: eab, fragments } = settings;
            const sealed = (text: string): string => this.#sealer.seal(sealLabel, text);
            const text = JSON.stringify({
                ...settings,
                ...(eab === null ? {} : { acmeEab: { ...eab, macKey: sealed(eab.macKey) } }),
                ...(fragments === undefined ? {} : { fragments: sealed(JSON.stringify(fragments)) })
            });
            this.#last = { settings, text };
        }

        return this.#last.text;
    }

    open(text: string): EngineSettings {
        const { fragments, ...settings } = JSON.parse(text) as Omit<
            EngineSettings,
            'fragments' | 'accessLog'
        > & { readonly fragments?: string; readonly accessLog?: boolean };
        const eab = settings.acmeEab;
        const opened = (sealed: string): string => this.#sealer.open(sealLabel, sealed);
        return {
            // Older revisions have no such setting.
            accessLog: false,
            ...settings,
            ...(eab === null ? {} : { acmeEab: { ...eab, macKey: opened(eab.macKey) } }),
            ...(fragments === undefined
                ? {}
                : { fragments: JSON.parse(opened(fragments)) as EngineFragments })
        };
    }
}

interface StateRow {
    readonly wanted: 'running' | 'stopped';
    readonly revision: number;
    readonly applied: number;
    readonly host_id: number;
    readonly settings: string | null;
}

const prepareStatements = (db: Database) => {
    return {
        memory: db.prepare<[], StateRow>(
            'select wanted, revision, applied, host_id, settings from engine_state where id = 1'
        ),
        newest: db.prepare<[number, number], Row>(
            `select ${columns} from engine_revision where number < ? order by number desc limit ?`
        ),
        one: db.prepare<[number], Row>(`select ${columns} from engine_revision where number = ?`),
        count: db.prepare<[], { total: number }>('select count(*) as total from engine_revision'),
        deltas: db.prepare<[number, number], { hosts: string }>(
            'select hosts from engine_revision where number > ? and number <= ? order by number desc'
        ),
        deltasOf: db.prepare<[number], { hosts: string }>(
            'select hosts from engine_revision where number = ?'
        ),
        settingsOf: db.prepare<[number], { settings: string }>(
            'select settings from engine_revision where number = ?'
        )
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

const revive = (row: HostRow | null): HostRow | null =>
    row === null ? null : { ...row, createdAt: new Date(row.createdAt), updatedAt: new Date(row.updatedAt) };
