/**
 * Removes the oldest entries in small transactions. Each transaction signs a seal for what it removed, so that the rest of the chain can
 * still be verified. Entries that do not verify are never removed: they are the evidence of tampering.
 */
import { setImmediate as breathe } from 'node:timers/promises';

import type { Database } from '../../../platform/database/database.ts';
import { Writer } from '../../../platform/database/writer.ts';
import { type EntryRow, hashOf } from '../entry/row.ts';
import { blockSize } from '../search/indexer.ts';
import type { Chain } from './chain.ts';
import { genesis } from './head.ts';
import type { AuditKeys, CheckpointRow } from './keys.ts';

/** Entries in one transaction: a few milliseconds. */
const chunk = 250;

/** What the removal of old audit entries works with. */
export interface PruneOptions {
    readonly db: Database;
    readonly chain: Chain;
    readonly keys: AuditKeys;
    /** Entries from before this time are removed, in milliseconds since 1970. */
    readonly before: number;
    readonly signal: AbortSignal;
}

/** Returns how many entries were removed. The newest entry always stays, since the next one is hashed with it. @throws Error when the oldest entries do not verify */
export async function pruneAudit({ db, chain, keys, before, signal }: PruneOptions): Promise<number> {
    const oldest = db.prepare<[number, number], EntryRow>(
        'select * from audit_entries where id < ? order by id limit ?'
    );
    const seal = db.prepare<[], CheckpointRow>(
        "select * from audit_checkpoints where kind = 'sealed' order by sequence desc limit 1"
    );
    const writer = new Writer();
    let removed = 0;
    for (;;) {
        const rows = oldest.all(chain.head.sequence, chunk);
        const kept = rows.findIndex(({ at }) => at >= before);
        const going = kept === -1 ? rows : rows.slice(0, kept);
        const last = going.at(-1);
        if (last === undefined || signal.aborted) {
            return removed;
        }
        const sealed = seal.get();
        checkSegment(keys, going, sealed?.hash ?? genesis.hash);
        const total = (sealed?.removed ?? 0) + going.length;
        await db.write(async (tx) => {
            await chain.seal(tx, last.id, last.hash, total);
            for (const sql of [
                'delete from audit_entries where id <= ?',
                'delete from audit_facets where id <= ?',
                'delete from audit_checkpoints where sequence < ?'
            ]) {
                (await writer.statement(tx, sql)).run(last.id);
            }
            (await writer.statement(tx, 'delete from audit_words where rowid < ?')).run(
                Math.floor(last.id / blockSize)
            );
        });
        removed += going.length;
        if (kept !== -1) {
            return removed;
        }
        await breathe();
    }
}

function checkSegment(keys: AuditKeys, rows: readonly EntryRow[], start: string): void {
    let previous = start;
    for (const row of rows) {
        if (hashOf(keys.entries, row, previous) !== row.hash) {
            throw new Error(
                `Entry ${row.id} of the audit log is not as it was written; nothing from there on is pruned`
            );
        }
        previous = row.hash;
    }
}
