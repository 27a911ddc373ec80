/**
 * Watches the transactions of a connection. When the disk is full or fails, SQLite may roll a transaction back by itself. The driver does not
 * notice: later statements would each be committed alone, and its own `rollback` fails, after which it never gives the connection back.
 */

/** The part of better-sqlite3's database that tells whether a transaction is open. */
export interface TransactionState {
    readonly inTransaction: boolean;
}

/** The part of Kysely's connection through which every statement of the mapper goes. */
export interface QueryConnection {
    executeQuery(query: { readonly sql: string }): Promise<{ readonly rows: readonly unknown[] }>;
}

/** Throws unless a transaction is open: SQLite has rolled it back, so a statement would be committed by itself. */
export function assertInTransaction(state: TransactionState, cause?: unknown): void {
    if (!state.inTransaction) {
        throw new Error('SQLite has rolled this transaction back', { cause });
    }
}

/**
 * Makes `rollback` succeed where SQLite has rolled back already, and every other statement of such a transaction fail, with the first error as
 * the cause.
 *
 * @param state - of the same connection
 */
export function guardTransactions(connection: QueryConnection, state: () => TransactionState): void {
    const execute = connection.executeQuery.bind(connection);
    let open = false;
    let cause: unknown;
    connection.executeQuery = async (query) => {
        if (query.sql === 'rollback') {
            open = false;
            return state().inTransaction ? execute(query) : { rows: [] };
        }
        if (open) {
            assertInTransaction(state(), cause);
        }
        try {
            const result = await execute(query);
            open = query.sql === 'begin' || (open && query.sql !== 'commit');
            return result;
        } catch (error) {
            cause = error;
            throw error;
        }
    };
}
