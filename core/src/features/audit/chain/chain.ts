/** The writing end of the chain: gives each entry its place and its hash, inside the transaction of the change that it speaks of. */
import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { type Run, Writer } from '../../../platform/database/writer.ts';
import { columns, type Draft, type EntryRow, hashOf } from '../entry/row.ts';
import { genesis, type Head, type HeadFile } from './head.ts';
import { type AuditKeys, signCheckpoint } from './keys.ts';

/** A checkpoint is signed after so many entries; a power cut takes back at most these from the head file. */
export const entriesPerCheckpoint = 100;
/** A clock that is put back by less than this does not make entries go back in time. */
const smallStepMs = 10_000;

const insertSql = `insert into audit_entries (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;
const checkpointSql =
    'insert or replace into audit_checkpoints (sequence, kind, hash, at, removed, signature) values (?, ?, ?, ?, ?, ?)';

interface State {
    readonly head: Head;
    /** Time of the newest entry by its time. */
    readonly latest: number;
    /** Number at the last checkpoint. */
    readonly checkpoint: number;
}

interface Statements {
    readonly insert: Run;
    readonly checkpoint: Run;
    readonly last: Run;
}

export interface ChainOptions {
    readonly keys: AuditKeys;
    readonly headFile: HeadFile;
    readonly clock: Clock;
    /** Where the chain stands in the database. */
    readonly start: State;
    /** Called after each commit, synchronously. */
    readonly advanced: (head: Head) => void;
}

export class Chain {
    readonly #options: ChainOptions;
    readonly #writer = new Writer();
    #statements: Statements | null = null;
    #state: State;
    /** What the open transaction has made of the state; write transactions run one after the other, so there is at most one. */
    #open: { readonly tx: Transaction; state: State } | null = null;
    /** After a commit of unknown end the database says where the chain stands. */
    #unsure = false;

    constructor(options: ChainOptions) {
        this.#options = options;
        this.#state = options.start;
    }

    /** The last committed entry. */
    get head(): Head {
        return this.#state.head;
    }

    async append(tx: Transaction, draft: Draft): Promise<EntryRow> {
        const statements = await this.#prepare(tx);
        // From here on without a pause: two entries of one transaction that are written at once get two places.
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

    /** Signs where the chain stands, when that is not signed yet. */
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

    #begin(tx: Transaction, statements: Statements): { readonly tx: Transaction; state: State } {
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

    #commit(state: State): void {
        const signed = state.checkpoint > this.#state.checkpoint;
        this.#open = null;
        this.#state = state;
        this.#options.headFile.write(state.head);
        if (signed) {
            this.#options.headFile.flush();
        }
        this.#options.advanced(state.head);
    }

    /** A chain that got longer by a commit that seemed to fail is taken on; a shorter one is not: the gap is to be seen. */
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
export const emptyChain: State = { head: genesis, latest: 0, checkpoint: 0 };
