/** The rows of hosts in the database: written by the engine's queue, loaded at boot. */
import { domainToUnicode } from 'node:url';

import type { HostRow, HostStore } from '../../engine/change.ts';
import type { Site } from '../../engine/site.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { readRow } from '../../platform/database/rows.ts';
import { Writer } from '../../platform/database/writer.ts';
import { openHeaders, sealHeaders } from '../../platform/header-secrets.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import { HostEntity } from './entities.ts';
import { storedView } from './view.ts';

type Change = Parameters<HostStore['write']>[1][number];

const columns = [
    'domain',
    'type',
    'enabled',
    'owner',
    'tags',
    'notes',
    'version',
    'created_at',
    'updated_at',
    'applied',
    'search',
    'site',
    'document'
] as const;
/** Writes a row under its id. Through the mapper a row costs ten times as much. */
const put = `insert into host (id, ${columns.join(', ')}) values (?${', ?'.repeat(columns.length)}) on conflict (id) do update set ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`;

/** The table of hosts behind the engine's queue. */
export class DatabaseHostStore implements HostStore {
    readonly #db: Database;
    readonly #keyring: Pick<Keyring, 'seal' | 'open'>;
    #changes = 0;
    readonly #writer = new Writer();

    /** @param keyring - seals the credentials in headers */
    constructor(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>) {
        this.#db = db;
        this.#keyring = keyring;
    }

    /** A number that grows with every commit that touched a host. */
    get changes(): number {
        return this.#changes;
    }

    async load(): Promise<HostRow[]> {
        const statement = this.#db.prepare<[], StoredRow>(
            'select id, site, version, owner, tags, notes, created_at as createdAt, updated_at as updatedAt from host order by id'
        );
        // A host that is left out would lose its site: the panel rather does not start.
        return statement.all().map((row) => readRow('host', row.id, () => fromStored(row, this.#keyring)));
    }

    async write(
        tx: Transaction,
        rows: readonly { readonly id: number; readonly row: HostRow | null }[],
        applied: boolean
    ): Promise<void> {
        const removed = rows.filter(({ row }) => row === null).map(({ id }) => id);
        const kept = rows.flatMap(({ row }) => (row === null ? [] : [row]));
        // Removed first, so that two hosts can swap a name in one transaction.
        const moved = await movedAside(tx, this.#writer, rows);
        if (removed.length > 0 || moved.length > 0) {
            await tx.em.nativeDelete(HostEntity, { id: { $in: [...removed, ...moved] } });
        }
        if (kept.length > 0) {
            const statement = await this.#writer.statement(tx, put);
            for (const row of kept) {
                statement.run(...toStored(row, applied, this.#keyring));
            }
        }
        this.#changed(tx);
    }

    async markApplied(tx: Transaction, ids: readonly number[]): Promise<void> {
        await tx.em.nativeUpdate(HostEntity, { id: { $in: [...ids] } }, { applied: true });
        this.#changed(tx);
    }

    /** Ids of the rows that the engine did not serve as they are when they were last written. */
    async unapplied(): Promise<readonly number[]> {
        return this.#db
            .prepare<[], { id: number }>('select id from host where applied = 0 order by id')
            .all()
            .map(({ id }) => id);
    }

    #changed(tx: Transaction): void {
        tx.afterCommit(() => {
            this.#changes += 1;
        });
    }
}

/** Of several rows that are written at once, the ids of those whose domain another one takes over. */
async function movedAside(
    tx: Transaction,
    writer: Writer,
    rows: readonly Change[]
): Promise<readonly number[]> {
    if (rows.length < 2) {
        return [];
    }
    const written = new Set(rows.map(({ id }) => id));
    const holder = await writer.statement(tx, 'select id from host where domain = ?');
    return rows.flatMap(({ id, row }) => {
        const held =
            row === null ? undefined : (holder.get(row.site.domain) as { readonly id: number } | undefined);
        return held === undefined || held.id === id || !written.has(held.id) ? [] : [held.id];
    });
}

interface StoredRow {
    readonly id: number;
    readonly site: string;
    readonly version: number;
    readonly owner: string | null;
    readonly tags: string;
    readonly notes: string;
    readonly createdAt: string;
    readonly updatedAt: string;
}

function fromStored(stored: StoredRow, keyring: Pick<Keyring, 'open'>): HostRow {
    return {
        site: openHeaders(JSON.parse(stored.site) as Site, keyring),
        version: stored.version,
        owner: stored.owner,
        tags: JSON.parse(stored.tags) as string[],
        notes: stored.notes,
        createdAt: new Date(stored.createdAt),
        updatedAt: new Date(stored.updatedAt)
    };
}

/** The values of `put`. */
function toStored(row: HostRow, applied: boolean, keyring: Pick<Keyring, 'seal'>): readonly unknown[] {
    const { site } = row;
    return [
        site.id,
        site.domain,
        site.type,
        site.enabled ? 1 : 0,
        row.owner,
        JSON.stringify(row.tags),
        row.notes,
        row.version,
        row.createdAt.toISOString(),
        row.updatedAt.toISOString(),
        applied ? 1 : 0,
        searchText(row),
        JSON.stringify(sealHeaders(site, keyring)),
        JSON.stringify(storedView(row))
    ];
}

/** The text that the filter `q` searches. International names are in it as people write them, too. */
function searchText(row: HostRow): string {
    const names = [row.site.domain, ...row.site.aliases];
    const international = names.filter((name) => name.includes('xn--')).map((name) => domainToUnicode(name));
    return [
        ...names,
        ...international,
        ...row.site.upstreams.map(({ address }) => address),
        ...row.tags,
        row.notes
    ]
        .join('\n')
        .toLowerCase();
}
