/** Host rows in the database: how the engine's queue writes them, and how they are loaded at boot. */
import { domainToUnicode } from 'node:url';
import type { Database, Transaction } from '../db/database.ts';
import type { HostRow, HostStore } from '../engine/change.ts';
import type { Site } from '../engine/site.ts';
import { HostEntity } from './entities.ts';
import { storedView } from './view.ts';

export interface Store extends HostStore {
    /** Ids of the rows that the engine did not serve as they are when they were last written. */
    unapplied(): Promise<readonly number[]>;
    /** Counts up with every commit that touched a host. */
    readonly changes: number;
}

type Change = Parameters<HostStore['write']>[1][number];

/** SQLite's default limit of bound values is 32,766; a row binds 14. */
const rowsAtOnce = 500;

export function createHostStore(db: Database): Store {
    let changes = 0;
    const changed = (tx: Transaction): void => tx.afterCommit(() => {
        changes += 1;
    });
    return {
        get changes() {
            return changes;
        },
        async load() {
            const statement = db.prepare<[], StoredRow>('select site, version, owner, tags, notes, created_at as createdAt, updated_at as updatedAt from host order by id');
            return statement.all().map(fromStored);
        },
        async write(tx, rows, applied) {
            const removed = rows.filter(({ row }) => row === null).map(({ id }) => id);
            const kept = rows.flatMap(({ row }) => (row === null ? [] : [toStored(row, applied)]));
            // Away first, so that two hosts can swap a name in one transaction.
            const moved = await movedAside(tx, rows);
            if (removed.length > 0 || moved.length > 0) {
                await tx.em.nativeDelete(HostEntity, { id: { $in: [...removed, ...moved] } });
            }
            for (let at = 0; at < kept.length; at += rowsAtOnce) {
                await tx.em.upsertMany(HostEntity, kept.slice(at, at + rowsAtOnce), { onConflictFields: ['id'], disableIdentityMap: true });
            }
            changed(tx);
        },
        async markApplied(tx, ids) {
            await tx.em.nativeUpdate(HostEntity, { id: { $in: [...ids] } }, { applied: true });
            changed(tx);
        },
        async unapplied() {
            return db.prepare<[], { id: number }>('select id from host where applied = 0 order by id').all().map(({ id }) => id);
        }
    };
}

/** Of several rows written at once, those whose domain another of them takes over. */
async function movedAside(tx: Transaction, rows: readonly Change[]): Promise<readonly number[]> {
    if (rows.length < 2) {
        return [];
    }
    const domains = rows.flatMap(({ row }) => (row === null ? [] : [row.site.domain]));
    const holders = await tx.em.execute<{ id: number }[]>(`select id from host where domain in (select value from json_each(?)) and id in (select value from json_each(?))`, [JSON.stringify(domains), JSON.stringify(rows.map(({ id }) => id))]);
    return holders.map(({ id }) => id);
}

interface StoredRow {
    readonly site: string;
    readonly version: number;
    readonly owner: string | null;
    readonly tags: string;
    readonly notes: string;
    readonly createdAt: string;
    readonly updatedAt: string;
}

function fromStored(stored: StoredRow): HostRow {
    return {
        site: JSON.parse(stored.site) as Site,
        version: stored.version,
        owner: stored.owner,
        tags: JSON.parse(stored.tags) as string[],
        notes: stored.notes,
        createdAt: new Date(stored.createdAt),
        updatedAt: new Date(stored.updatedAt)
    };
}

function toStored(row: HostRow, applied: boolean) {
    const { site } = row;
    return {
        id: site.id,
        domain: site.domain,
        type: site.type,
        enabled: site.enabled,
        owner: row.owner,
        tags: JSON.stringify(row.tags),
        notes: row.notes,
        version: row.version,
        createdAt: row.createdAt.toISOString(),
        updatedAt: row.updatedAt.toISOString(),
        applied,
        search: searchText(row),
        site: JSON.stringify(site),
        document: JSON.stringify(storedView(row))
    };
}

/** Names also as people write them. */
function searchText(row: HostRow): string {
    const names = [row.site.domain, ...row.site.aliases];
    const international = names.filter((name) => name.includes('xn--')).map((name) => domainToUnicode(name));
    return [...names, ...international, ...row.site.upstreams.map(({ address }) => address), ...row.tags, row.notes].join('\n').toLowerCase();
}
