/** The writing end of the chain: gives each entry its number and its hash, in the transaction of the change that the entry records. */
import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { type Run, Writer } from '../../../platform/database/writer.ts';
import { columns, type Draft, type EntryRow, hashOf } from '../entry/row.ts';
import { genesis, type Head, type HeadFile } from './head.ts';
import { type AuditKeys, signCheckpoint } from './keys.ts';

/** A checkpoint is signed after so many entries. The head file is synced then, so a power cut sets it back by at most so many. */
export const entriesPerCheckpoint = 100;
/** When the clock is set back by less than this, entries keep the time of the one before them. */
const smallStepMs = 10_000;

const insertSql = `insert into audit_entries (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;
const checkpointSql =
    'insert or replace into audit_checkpoints (sequence, kind, hash, at, removed, signature) values (?, ?, ?, ?, ?, ?)';

/** Where a chain stands. */
export interface ChainState {
    readonly head: Head;
    /** The latest time of any entry, in milliseconds since 1970. */
    readonly latest: number;
    /** Number of the entry at the last checkpoint. */
    readonly checkpoint: number;
}

interface Statements {
    readonly insert: Run;
    readonly checkpoint: Run;
    readonly last: Run;
}

/** What a chain is built from. */
export interface ChainOptions {
    readonly keys: AuditKeys;
    readonly headFile: HeadFile;
    readonly clock: Clock;
    /** Where the chain stands in the database. */
    readonly start: ChainState;
    /** Called after each commit, synchronously. */
    readonly advanced: (head: Head) => void;
}

/** Appends entries and signs checkpoints; keeps where the chain stands in memory. */
export class Chain {
    readonly #options: ChainOptions;
    readonly #writer = new Writer();
    #statements: Statements | null = null;
    #state: ChainState;
    /** The state inside the open transaction. Write transactions run one after the other, so there is at most one. */
    #open: { readonly tx: Transaction; state: ChainState } | null = null;
    /** True after a rollback: the commit may have reached the disk all the same, so the database is asked where the chain stands. */
    #unsure = false;

    constructor(options: ChainOptions) {
        this.#options = options;
        this.#state = options.start;
    }

    /** The last committed entry. */
    get head(): Head {
        return this.#state.head;
    }

    /** Adds an entry at the end of the chain. */
    async append(tx: Transaction, draft: Draft): Promise<EntryRow> {
        const statements = await this.#prepare(tx);
        // No await from here on: two appends at once in one transaction would get the same number.
        const open = this.#open?.tx === tx ? this.#open : this.#begin(tx, statements);
        const { head, latest, checkpoint } = open.state;
        const now = this.#options.clock.now();
        const at = now < latest && latest - now < smallStepMs ? latest : now;
        const placed = { ...draft, id: head.sequence + 1, at };
        const row: EntryRow = {
            ...placed,
            late: at < latest ? 1 : 0,
            hash: hashOf(this.#options.keys.entries, placed, head.hash)
        };
        statements.insert.run(...columns.map((column) => row[column]));
        const due = row.id - checkpoint >= entriesPerCheckpoint;
        open.state = {
            head: { sequence: row.id, hash: row.hash },
            latest: Math.max(latest, at),
            checkpoint: due ? row.id : checkpoint
        };
        if (due) {
            sign(statements.checkpoint, this.#options.keys, open.state.head, at);
        }
        return row;
    }

    /** Signs the last entry, unless it is signed already. */
    async checkpoint(tx: Transaction): Promise<void> {
        const statements = await this.#prepare(tx);
        const open = this.#open?.tx === tx ? this.#open : this.#begin(tx, statements);
        const { head } = open.state;
        if (head.sequence > open.state.checkpoint) {
            sign(statements.checkpoint, this.#options.keys, head, this.#options.clock.now());
            open.state = { ...open.state, checkpoint: head.sequence };
        }
    }

    /** Signs that the entries up to `sequence` were pruned. */
    async seal(tx: Transaction, sequence: number, hash: string, removed: number): Promise<void> {
        const row = signCheckpoint(this.#options.keys.checkpoints, {
            sequence,
            kind: 'sealed',
            hash,
            at: this.#options.clock.now(),
            removed
        });
        (await this.#prepare(tx)).checkpoint.run(
            row.sequence,
            row.kind,
            row.hash,
            row.at,
            row.removed,
            row.signature
        );
    }

    /** Whether there are entries after the last checkpoint. */
    get unsigned(): boolean {
        return this.#state.head.sequence > this.#state.checkpoint;
    }

    async #prepare(tx: Transaction): Promise<Statements> {
        this.#statements ??= {
            insert: await this.#writer.statement(tx, insertSql),
            checkpoint: await this.#writer.statement(tx, checkpointSql),
            last: await this.#writer.statement(
                tx,
                'select id as sequence, hash from audit_entries order by id desc limit 1'
            )
        };
        return this.#statements;
    }

    #begin(tx: Transaction, statements: Statements): { readonly tx: Transaction; state: ChainState } {
        if (this.#unsure) {
            this.#resume(statements);
        }
        const open = { tx, state: this.#state };
        this.#open = open;
        tx.afterCommit(() => this.#commit(open.state));
        tx.afterRollback(() => {
            this.#open = null;
            this.#unsure = true;
        });
        return open;
    }

    #commit(state: ChainState): void {
        const signed = state.checkpoint > this.#state.checkpoint;
        this.#open = null;
        this.#state = state;
        this.#options.headFile.write(state.head);
        if (signed) {
            this.#options.headFile.flush();
        }
        this.#options.advanced(state.head);
    }

    /** Continues after entries of a commit that seemed to fail. A shorter chain is not continued: its gap must stay visible. */
    #resume(statements: Statements): void {
        const last = statements.last.get() as Head | undefined;
        if (last !== undefined && last.sequence > this.#state.head.sequence) {
            this.#state = { ...this.#state, head: last };
        }
        this.#unsure = false;
    }
}

function sign(statement: Run, keys: AuditKeys, head: Head, at: number): void {
    const row = signCheckpoint(keys.checkpoints, {
        sequence: head.sequence,
        kind: 'regular',
        hash: head.hash,
        at,
        removed: 0
    });
    statement.run(row.sequence, row.kind, row.hash, row.at, row.removed, row.signature);
}

/** The state of a chain without entries. */
export const emptyChain: ChainState = { head: genesis, latest: 0, checkpoint: 0 };
