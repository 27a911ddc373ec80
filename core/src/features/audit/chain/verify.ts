/** Checks the chain from its first entry to its head and says where it breaks. Works in chunks, on the panel or on a database file. */
import { setImmediate as breathe } from 'node:timers/promises';

import { type EntryRow, hashOf } from '../entry/row.ts';
import { entriesPerCheckpoint } from './chain.ts';
import { genesis, type StoredHead } from './head.ts';
import { type AuditKeys, type CheckpointRow, isSigned } from './keys.ts';

/**
 * Why the chain does not hold.
 * `CHANGED`: an entry does not have the hash that its content and its place make: changed, swapped or inserted.
 * `REMOVED`: entries are missing at the start or in the middle. `TAIL_CUT`: entries are missing at the end.
 * `ROLLED_BACK`: the whole database is older than the head file. `HEAD_MISSING`, `HEAD_INVALID`: how long the chain should be is unknown.
 * `HEAD_STALE`: the head file is further behind than a crash explains: it was replaced by an older copy.
 * `CHECKPOINT_INVALID`: a signature is wrong, or the chain does not pass through a signed place. `WRONG_KEY`: no entry was hashed with this key.
 */
export type BreakReason =
    | 'CHANGED'
    | 'REMOVED'
    | 'TAIL_CUT'
    | 'ROLLED_BACK'
    | 'HEAD_MISSING'
    | 'HEAD_INVALID'
    | 'HEAD_STALE'
    | 'CHECKPOINT_INVALID'
    | 'WRONG_KEY';

/** Where and how the chain breaks. */
export interface Break {
    /** Number of the first entry that is not as it was written. */
    readonly id: number;
    readonly reason: BreakReason;
    readonly message: string;
}

/** What a check of the chain found. */
export interface Verification {
    readonly holds: boolean;
    /** How many entries were checked. */
    readonly entries: number;
    /** Number of the first entry that is kept; null without entries. */
    readonly first: number | null;
    readonly last: number | null;
    /** How many signed checkpoints were checked. */
    readonly checkpoints: number;
    readonly break: Break | null;
}

/** Where entries are read from: the panel's database, or a file opened for the check. */
export interface AuditSource {
    prepare(sql: string): {
        all(...parameters: unknown[]): unknown[];
        get(...parameters: unknown[]): unknown;
    };
}

/** What a check needs. */
export interface VerifyOptions {
    readonly source: AuditSource;
    readonly keys: AuditKeys;
    /** The last entry that the chain must have. */
    readonly head: StoredHead;
    readonly signal?: AbortSignal;
}

/** Entries that are read and hashed in one turn of the event loop: one or two milliseconds. */
const chunk = 100;
/** When none of so many entries fits the one before it, the chain was made with another key. */
const sample = 50;

/** How far the head file may be behind: a power cut sets it back to the last checkpoint, and one transaction may hold many entries. */
const mostAhead = entriesPerCheckpoint + 1_000;

/** Checks the whole chain: every hash, every gap, the end against the head, every checkpoint. */
export function verifyChain(options: VerifyOptions): Promise<Verification> {
    return new Walk(options).run();
}

class Walk {
    readonly #source: AuditSource;
    readonly #keys: AuditKeys;
    readonly #stored: StoredHead;
    readonly #signal: AbortSignal | undefined;
    #entries = 0;
    #checkpoints = 0;
    #first: number | null = null;
    #previous = genesis;
    #break: Break | null = null;

    constructor({ source, keys, head, signal }: VerifyOptions) {
        this.#source = source;
        this.#keys = keys;
        this.#stored = head;
        this.#signal = signal;
    }

    async run(): Promise<Verification> {
        this.#start();
        const rows = this.#source.prepare('select * from audit_entries where id > ? order by id limit ?');
        const last =
            this.#stored.state === 'valid' && this.#stored.head.sequence > 0
                ? Math.max(this.#stored.head.sequence, this.#lastRow())
                : Infinity;
        for (;;) {
            const page = rows.all(this.#previous.sequence, chunk) as EntryRow[];
            const [front] = page;
            if (front !== undefined && front.id > this.#previous.sequence + 1) {
                this.#start();
            }
            for (const row of page.filter(({ id }) => id > this.#previous.sequence && id <= last)) {
                this.#check(row);
            }
            if (page.length < chunk || this.#previous.sequence >= last) {
                break;
            }
            await breathe();
            this.#signal?.throwIfAborted();
        }
        this.#checkEnd();
        await this.#checkCheckpoints();
        return {
            holds: this.#break === null,
            entries: this.#entries,
            first: this.#first,
            last: this.#entries === 0 ? null : this.#previous.sequence,
            checkpoints: this.#checkpoints,
            break: this.#break
        };
    }

    /** Starts after the newest seal. Pruning may add a seal while the check runs. */
    #start(): void {
        const sealed = this.#source
            .prepare("select * from audit_checkpoints where kind = 'sealed' order by sequence desc limit 1")
            .get() as CheckpointRow | undefined;
        if (sealed === undefined || sealed.sequence <= this.#previous.sequence) {
            return;
        }
        this.#previous = { sequence: sealed.sequence, hash: sealed.hash };
        if (!isSigned(this.#keys.checkpoints, sealed)) {
            this.#found(
                sealed.sequence,
                'CHECKPOINT_INVALID',
                `The seal of the entries up to ${sealed.sequence} is not ours`
            );
        }
    }

    #check(row: EntryRow): void {
        this.#first ??= row.id;
        this.#entries += 1;
        const expected = this.#previous.sequence + 1;
        if (row.id > expected) {
            this.#found(
                expected,
                'REMOVED',
                row.id === expected + 1
                    ? `Entry ${expected} is missing`
                    : `Entries ${expected} to ${row.id - 1} are missing`
            );
        } else if (this.#hash(row, this.#previous.hash) !== row.hash) {
            this.#mismatch(row);
        } else if (row.resource === 'audit' && row.action === 'break') {
            this.#foundEarlier(row);
        }
        this.#previous = { sequence: row.id, hash: row.hash };
    }

    #mismatch(row: EntryRow): void {
        if (this.#break === null && this.#entries === 1 && !this.#fitsAnywhere(row.id)) {
            this.#found(
                row.id,
                'WRONG_KEY',
                'No entry was made with this key: the key file is another one, or the whole log was replaced'
            );
            return;
        }
        this.#found(
            row.id,
            'CHANGED',
            `Entry ${row.id} is not as it was written: changed, swapped or inserted`
        );
    }

    /** Whether any of the next entries was hashed with our key, when the stored hash before it is taken as true. */
    #fitsAnywhere(from: number): boolean {
        const rows = this.#source
            .prepare('select * from audit_entries where id >= ? order by id limit ?')
            .all(from, sample) as EntryRow[];
        if (rows.length === 1) {
            return this.#stored.state === 'valid';
        }
        return rows.some(
            (row, index) => index > 0 && this.#hash(row, rows[index - 1]?.hash ?? '') === row.hash
        );
    }

    /** Reports a break that the panel recorded when it started. The chain goes on behind it, and the finding stays. */
    #foundEarlier(row: EntryRow): void {
        const { after } = JSON.parse(row.changes ?? '{}') as {
            after?: { reason?: BreakReason; message?: string };
        };
        this.#found(
            row.id,
            after?.reason ?? 'ROLLED_BACK',
            after?.message ?? 'A break was found when the panel started'
        );
    }

    #checkEnd(): void {
        const at = this.#previous;
        if (this.#stored.state !== 'valid') {
            this.#found(
                at.sequence + 1,
                this.#stored.state === 'missing' ? 'HEAD_MISSING' : 'HEAD_INVALID',
                `The head file is ${this.#stored.state}: entries after ${at.sequence} may be missing`
            );
            return;
        }
        const finding = compareHead(this.#source, at.sequence, this.#stored.head.sequence);
        if (finding !== null) {
            this.#found(finding.id, finding.reason, finding.message);
        } else if (this.#hashOf(this.#stored.head.sequence) !== this.#stored.head.hash) {
            this.#found(
                this.#stored.head.sequence,
                'CHANGED',
                `Entry ${this.#stored.head.sequence} is not the one that the head file knows`
            );
        }
    }

    async #checkCheckpoints(): Promise<void> {
        const rows = this.#source.prepare(
            'select * from audit_checkpoints where sequence > ? order by sequence limit ?'
        );
        for (let from = -1; ;) {
            const page = rows.all(from, chunk) as CheckpointRow[];
            for (const row of page) {
                this.#checkpoints += 1;
                from = row.sequence;
                if (!isSigned(this.#keys.checkpoints, row)) {
                    this.#found(
                        row.sequence,
                        'CHECKPOINT_INVALID',
                        `The checkpoint at entry ${row.sequence} is not ours`
                    );
                } else if (
                    row.kind === 'regular' &&
                    row.sequence >= (this.#first ?? 0) &&
                    row.sequence <= this.#previous.sequence &&
                    this.#hashOf(row.sequence) !== row.hash
                ) {
                    this.#found(
                        row.sequence,
                        'CHANGED',
                        `Entry ${row.sequence} is not the one that was signed`
                    );
                }
            }
            if (page.length < chunk) {
                return;
            }
            await breathe();
            this.#signal?.throwIfAborted();
        }
    }

    /** The stored hash of an entry. A pruned entry has the hash of its seal, if it has one. */
    #hashOf(sequence: number): string | undefined {
        if (sequence === 0) {
            return genesis.hash;
        }
        const found =
            this.#source.prepare('select hash from audit_entries where id = ?').get(sequence) ??
            this.#source
                .prepare("select hash from audit_checkpoints where sequence = ? and kind = 'sealed'")
                .get(sequence);
        return (found as { hash: string } | undefined)?.hash;
    }

    #lastRow(): number {
        return (
            (this.#source.prepare('select max(id) as id from audit_entries').get() as { id: number | null })
                .id ?? 0
        );
    }

    /** The hash of a row; null when a value has a type that we never write, so that its text cannot be made. */
    #hash(row: EntryRow, previous: string): string | null {
        try {
            return hashOf(this.#keys.entries, row, previous);
        } catch (error) {
            if (error instanceof TypeError || error instanceof RangeError) {
                return null;
            }
            throw error;
        }
    }

    /** Keeps the break with the smallest number. */
    #found(id: number, reason: BreakReason, message: string): void {
        if (this.#break === null || id < this.#break.id) {
            this.#break = { id, reason, message };
        }
    }
}

/** What it means that the chain ends at `last` while the head file knows `head` entries. A crash between a commit and the file leaves the file behind, never ahead. */
export function compareHead(source: AuditSource, last: number, head: number): Break | null {
    if (last > head + mostAhead) {
        return {
            id: head + 1,
            reason: 'HEAD_STALE',
            message: `The head file knows ${head} entries of ${last}: it was put back`
        };
    }
    if (last >= head) {
        return null;
    }
    const { sequence } = source.prepare('select max(sequence) as sequence from audit_checkpoints').get() as {
        sequence: number | null;
    };
    const { facets } = source.prepare('select facets from audit_indexed').get() as { facets: number };
    const gone = head === last + 1 ? `Entry ${head} is` : `Entries ${last + 1} to ${head} are`;
    return Math.max(sequence ?? 0, facets) > last
        ? {
              id: last + 1,
              reason: 'TAIL_CUT',
              message: `${gone} missing at the end, and the rest of the database knows of them`
          }
        : {
              id: last + 1,
              reason: 'ROLLED_BACK',
              message: `${gone} known to the head file only: the database is an older one, or its end was cut off`
          };
}
