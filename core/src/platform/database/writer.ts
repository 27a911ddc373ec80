/**
 * Prepared statements on the connection of an open transaction, for what most transactions of the panel write: going through the mapper's
 * query path each time costs more than the insert itself.
 */
import type { Transaction } from './database.ts';
import { assertInTransaction, type TransactionState } from './transaction-guard.ts';

/** A statement on the writing connection. */
export interface Run {
    run(...parameters: readonly unknown[]): { readonly changes: number };
    get(...parameters: readonly unknown[]): unknown;
}

interface Native extends TransactionState {
    prepare(sql: string): Run;
}

interface Connection {
    getNativeClient(): Promise<Native>;
}

/** Statements of one feature, prepared once. */
export class Writer {
    readonly #statements = new Map<string, Run>();
    #native: Native | null = null;

    /** The statement on the writing connection: what it runs belongs to `tx`, and must not be kept longer. */
    async statement(tx: Transaction, sql: string): Promise<Run> {
        let found = this.#statements.get(sql);
        if (found === undefined) {
            // MikroORM's type of a connection does not say that it is SQLite's.
            this.#native ??= await (
                tx.em.getDriver().getConnection('write') as unknown as Connection
            ).getNativeClient();
            found = guardRun(this.#native.prepare(sql), this.#native);
            this.#statements.set(sql, found);
        }
        return found;
    }
}

function guardRun(statement: Run, state: TransactionState): Run {
    return {
        run(...parameters) {
            assertInTransaction(state);
            return statement.run(...parameters);
        },
        get(...parameters) {
            assertInTransaction(state);
            return statement.get(...parameters);
        }
    };
}
