/** Statements of users: one at a time in a session of its own, with a time limit, which the user can cancel. */
import { type Actor, errors, isFailure } from '@portico/sdk';

import type { ServerRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { type Access, type Cell, type Column, mostKeptBytes, type Session } from '../kinds/kind.ts';
import { kinds } from '../kinds/kinds.ts';
import type { Connections } from '../servers/connections.ts';
import type { Readers } from '../servers/readers.ts';
import { within } from '../timing.ts';
import type { History } from './history.ts';
import { mustRead } from './statement.ts';

/** A statement to run. */
export interface Statement {
    readonly database: string;
    readonly sql: string;
    readonly parameters: readonly unknown[];
    readonly maxRows: number;
    readonly timeoutSeconds: number;
    /** Runs as the panel's own account, and may change things. */
    readonly write: boolean;
    /** The user's name for it, to cancel it; null: it cannot be cancelled by a request. */
    readonly queryId: string | null;
}

/** What a statement gave. */
export interface Result {
    readonly columns: readonly Column[];
    readonly rows: readonly (readonly Cell[])[];
    /** Null for a statement that reads. */
    readonly affected: number | null;
    /** There are more rows than these. */
    readonly truncated: boolean;
    readonly durationMs: number;
}

/** What runs now. */
interface Running {
    readonly actor: string;
    readonly serverId: number;
    readonly queryId: string | null;
    readonly stop: AbortController;
}

const mostOfActor = 4;
/** The server stops a statement at its limit; this much later the panel does. */
const graceSeconds = 1;
/** How long a server may take to stop a statement before its connection is cut. */
const stopSeconds = 2;

/** Runs statements of users. */
export class Console {
    readonly #connections: Connections;
    readonly #readers: Readers;
    readonly #history: History;
    readonly #running = new Set<Running>();
    /** Statements that servers are told to stop. */
    readonly #stopping = new Set<Promise<void>>();

    constructor(connections: Connections, readers: Readers, history: History) {
        this.#connections = connections;
        this.#readers = readers;
        this.#history = history;
    }

    /**
     * Runs one statement.
     *
     * @throws READ_ONLY 42251, SQL_FAILED 42250, CANCELLED 40951, QUERY_TIMEOUT 50450, SERVER_OFFLINE 50350; IN_USE 40901 beyond four at once
     */
    async run(server: ServerRow, actor: Actor, statement: Statement, signal: AbortSignal): Promise<Result> {
        const { database, sql, write } = statement;
        if (!write) {
            mustRead(sql, kinds[server.kind].console.reading);
        }
        const running = this.#enter(server, actor, statement);
        const started = performance.now();
        const remember = (rows: number | null, failure: string | null): Promise<void> =>
            this.#history.add({
                serverId: server.id,
                actor: actor.key,
                database,
                sql,
                write,
                durationMs: Math.round(performance.now() - started),
                rows,
                failure
            });
        try {
            const result = await this.#execute(
                server,
                statement,
                AbortSignal.any([running.stop.signal, signal])
            );
            await remember(result.rows.length, null);
            return result;
        } catch (error) {
            await remember(null, isFailure(error) ? error.reason : 'FAILED');
            throw error;
        } finally {
            this.#running.delete(running);
        }
    }

    /** Reads for the panel itself, such as one page of a table: as the reader, and without history. */
    read(
        server: ServerRow,
        statement: Omit<Statement, 'write' | 'queryId'>,
        signal: AbortSignal
    ): Promise<Result> {
        return this.#execute(server, { ...statement, write: false, queryId: null }, signal);
    }

    /** Cancels a statement of the same user. @throws NOT_FOUND 40400 */
    cancel(serverId: number, actor: Actor, queryId: string): void {
        const found = [...this.#running].find(
            (each) => each.actor === actor.key && each.serverId === serverId && each.queryId === queryId
        );
        if (found === undefined) {
            throw errors.notFound('No statement of that name runs');
        }
        found.stop.abort(fail.CANCELLED());
    }

    /** Stops all that runs. Resolves when the servers know: one would go on with a statement whose connection is cut. */
    async close(): Promise<void> {
        this.#running.forEach(({ stop }) => stop.abort(fail.CANCELLED()));
        await Promise.all(this.#stopping);
    }

    #enter(server: ServerRow, actor: Actor, { queryId }: Statement): Running {
        const own = [...this.#running].filter((each) => each.actor === actor.key);
        if (own.length >= mostOfActor) {
            throw errors.inUse(`${mostOfActor} statements of this user`);
        }
        if (queryId !== null && own.some((each) => each.queryId === queryId && each.serverId === server.id)) {
            throw errors.conflict('queryId');
        }
        const running = { actor: actor.key, serverId: server.id, queryId, stop: new AbortController() };
        this.#running.add(running);
        return running;
    }

    #execute(server: ServerRow, statement: Statement, signal: AbortSignal): Promise<Result> {
        const { database, write } = statement;
        const work = (access: Access): Promise<Result> =>
            access.use(database, (session) =>
                this.#inSession({ server, access, session }, statement, signal)
            );
        return write ? work(this.#connections.admin(server)) : this.#readers.use(server, database, work);
    }

    async #inSession(
        { server, access, session }: { server: ServerRow; access: Access; session: Session },
        statement: Statement,
        signal: AbortSignal
    ): Promise<Result> {
        const kind = kinds[server.kind];
        const { sql, parameters, timeoutSeconds: seconds, write } = statement;
        await kind.console.begin(session, { seconds, readOnly: !write });
        const started = performance.now();
        const stop = (): void => {
            const order = access.use(null, (other) => kind.sessions.end(other, session.id, 'cancel'));
            const stopped = within(stopSeconds, order, { late: () => new Error('late') })
                .catch(() => session.destroy())
                .finally(() => this.#stopping.delete(stopped));
            this.#stopping.add(stopped);
        };
        const work = async (): Promise<Result> => {
            const stream = await session.stream(sql, parameters, { write });
            const { rows, truncated } = await readRows(stream.batches, statement);
            if (truncated && !write) {
                // The rest of the result is not wanted, and the connection is of no other use.
                session.destroy();
            } else if (!write) {
                await session.run('rollback');
            }
            return {
                columns: stream.columns,
                rows,
                affected: write ? stream.affected() : null,
                truncated,
                durationMs: Math.round(performance.now() - started)
            };
        };
        try {
            return await within(seconds + graceSeconds, work(), {
                late: () => fail.QUERY_TIMEOUT({ seconds }),
                onLate: stop,
                signal
            });
        } catch (error) {
            throw explained(error, { started, seconds, signal });
        }
    }
}

/** A server says of a statement only that it was stopped; why, the panel knows. */
function explained(
    error: unknown,
    { started, seconds, signal }: { started: number; seconds: number; signal: AbortSignal }
): unknown {
    if (signal.aborted) {
        return isFailure(signal.reason) ? signal.reason : fail.CANCELLED(null, { cause: error });
    }
    const isStopped = isFailure(error) && error.reason === 'CANCELLED';
    return isStopped && performance.now() - started >= seconds * 950
        ? fail.QUERY_TIMEOUT({ seconds })
        : error;
}

/** Reads rows up to the limits. What changes things is read to its end: it counts only when the server has finished it. */
async function readRows(
    batches: AsyncIterable<readonly (readonly Cell[])[]>,
    { maxRows, write }: Statement
): Promise<{ readonly rows: (readonly Cell[])[]; readonly truncated: boolean }> {
    const rows: (readonly Cell[])[] = [];
    let bytes = 0;
    let truncated = false;
    for await (const batch of batches) {
        const batchBytes = bytesOf(batch);
        if (!truncated && rows.length + batch.length <= maxRows && bytes + batchBytes <= mostKeptBytes) {
            rows.push(...batch);
            bytes += batchBytes;
            continue;
        }
        for (const row of truncated ? [] : batch) {
            bytes += bytesOf(row);
            if (rows.length >= maxRows || bytes > mostKeptBytes) {
                truncated = true;
                break;
            }
            rows.push(row);
        }
        if (truncated && !write) {
            break;
        }
    }
    return { rows, truncated };
}

/** What a value takes in an answer, with a comma. */
function bytesOf(value: readonly unknown[]): number {
    return Buffer.byteLength(JSON.stringify(value)) + 1;
}
