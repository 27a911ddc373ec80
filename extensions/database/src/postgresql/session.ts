/** Connections to PostgreSQL. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import pg, { type Client as PgClient, type FieldDef } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import Cursor from 'pg-cursor';

import { fail } from '../errors.ts';
import {
    type Cell,
    type ConnectOptions,
    connectSeconds,
    controlSeconds,
    type Flavour,
    mostKeptBytes,
    mostKeptRows,
    type ResultStream,
    type Row,
    type Session
} from '../kinds/kind.ts';
import { within } from '../timing.ts';
import { cellTypes, columnOf, parameterOf } from './console/cells.ts';
import { failureOf } from './failures.ts';

const { Client } = pg;
/** Commands that say how many rows they changed. */
const changing = /^(INSERT|UPDATE|DELETE|MERGE)$/;
const firstRows = 100;
const mostRows = 2_000;
/** What one batch should hold, in bytes of text. */
const batchBytes = 512 * 1024;

/** Connects and logs in. @throws LOGIN_FAILED 42254, SERVER_OFFLINE 50350 */
export async function connect({ address, login, database, dial }: ConnectOptions): Promise<Session> {
    const { host, port, socket, tls, ca } = address;
    const client = new Client({
        // The socket takes the target that it was made for, whatever the driver asks of it.
        stream: () =>
            dialled(
                dial,
                socket === null ? { host: host ?? 'localhost', port } : { path: socketPath(socket, port) }
            ),
        host: host ?? 'localhost',
        port,
        user: login.username,
        // As a function: for an empty text the driver would look into the environment and files of the panel.
        password: () => login.password,
        database: database ?? 'postgres',
        application_name: 'portico',
        ssl:
            tls === 'disable' || socket !== null
                ? false
                : { rejectUnauthorized: tls === 'verify', ...(ca === null ? {} : { ca }) },
        // Nothing of the panel's own environment, such as PGOPTIONS, has a say.
        options: '-c datestyle=ISO -c intervalstyle=postgres -c client_min_messages=warning'
    });
    const session = new PostgresqlSession(client);
    try {
        await within(connectSeconds, client.connect(), {
            late: () => fail.SERVER_OFFLINE({ message: `no answer within ${connectSeconds} s` })
        });
        await session.greet();
        return session;
    } catch (error) {
        session.destroy();
        throw failureOf(error);
    }
}

/** The file of a socket: its folder is given as often as the file itself. */
function socketPath(socket: string, port: number): string {
    return /\.s\.PGSQL\.\d+$/.test(socket) ? socket : `${socket.replace(/\/$/, '')}/.s.PGSQL.${port}`;
}

type Target = Parameters<ConnectOptions['dial']>[0];

function dialled(dial: ConnectOptions['dial'], target: Target): ReturnType<ConnectOptions['dial']> {
    const stream = dial(target);
    // The driver calls `connect` by itself, and the socket is on its way already.
    return Object.assign(stream, { connect: () => stream });
}

class PostgresqlSession implements Session {
    readonly flavour: Flavour = 'postgresql';
    id = '';
    serverVersion = '';
    readonly #client: PgClient;

    constructor(client: PgClient) {
        this.#client = client;
        // Failures after the connection was made reach the work that is under way, too.
        client.on('error', () => undefined);
    }

    async greet(): Promise<void> {
        const [row] = await this.all(
            "select pg_backend_pid() as id, current_setting('server_version') as version"
        );
        this.id = String(row?.['id']);
        this.serverVersion = /\d+(\.\d+)*/.exec(String(row?.['version']))?.[0] ?? '';
    }

    async all(sql: string, parameters: readonly unknown[] = []): Promise<readonly Row[]> {
        return (await this.#control(sql, parameters)).rows;
    }

    async run(sql: string, parameters: readonly unknown[] = []): Promise<number> {
        return (await this.#control(sql, parameters)).rowCount ?? 0;
    }

    stream(
        sql: string,
        parameters: readonly unknown[],
        { write }: { readonly write: boolean }
    ): Promise<ResultStream> {
        return write ? this.#whole(sql, parameters) : this.#read(sql, parameters);
    }

    /** A cursor does not tell when the server refuses the commit, as it does for deferred constraints; a query does. */
    async #whole(sql: string, parameters: readonly unknown[]): Promise<ResultStream> {
        const options = {
            text: sql,
            values: parameters.map(parameterOf),
            rowMode: 'array',
            types: cellTypes
        };
        // With the extended protocol the server takes one statement only; the driver's types leave `queryMode` out.
        const query = new pg.Query({ ...options, queryMode: 'extended' } as pg.QueryConfig);
        const rows: Cell[][] = [];
        let bytes = 0;
        query.on('row', (row: Cell[]) => {
            if (rows.length < mostKeptRows && bytes <= mostKeptBytes) {
                bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
                rows.push(row);
            }
        });
        const ended = new Promise<pg.QueryResult>((resolve, reject) => {
            query.on('end', resolve);
            query.on('error', reject);
        });
        this.#client.query(query);
        try {
            const { fields, command, rowCount } = await ended;
            return {
                columns: fields.map(columnOf),
                batches: asBatch(rows),
                affected: () => (changing.test(command) ? rowCount : null)
            };
        } catch (error) {
            throw failureOf(error);
        }
    }

    async #read(sql: string, parameters: readonly unknown[]): Promise<ResultStream> {
        const options = { rowMode: 'array' as const, types: cellTypes };
        // A cursor speaks the extended protocol, in which the server takes one statement only.
        const cursor = this.#client.query(new Cursor<Cell[]>(sql, parameters.map(parameterOf), options));
        const reader = new CursorReader(cursor);
        try {
            const first = await reader.read(firstRows);
            return {
                columns: reader.fields.map(columnOf),
                batches: reader.batches(first),
                affected: () => null
            };
        } catch (error) {
            throw failureOf(error);
        }
    }

    async copy(sql: string, data: AsyncIterable<Buffer>): Promise<void> {
        try {
            await pipeline(Readable.from(data, { objectMode: false }), this.#client.query(copyFrom(sql)));
        } catch (error) {
            throw failureOf(error);
        }
    }

    async close(): Promise<void> {
        await within(2, this.#client.end(), {
            late: () => new Error('late'),
            onLate: () => this.destroy()
        }).catch(() => undefined);
    }

    destroy(): void {
        const { connection } = this.#client as unknown as { connection: { stream: { destroy(): void } } }; // the driver's types leave the socket out
        connection.stream.destroy();
    }

    async #control(sql: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
        const query = this.#client.query({
            text: sql,
            values: parameters.map(parameterOf),
            types: cellTypes
        });
        try {
            return await within(controlSeconds, query, {
                late: () => fail.QUERY_TIMEOUT({ seconds: controlSeconds }),
                onLate: () => this.destroy()
            });
        } catch (error) {
            throw failureOf(error);
        }
    }
}

async function* asBatch(rows: readonly Cell[][]): AsyncGenerator<readonly (readonly Cell[])[]> {
    yield rows;
}

/** Reads a cursor in batches whose size follows from how long the rows are. */
class CursorReader {
    fields: readonly FieldDef[] = [];
    readonly #cursor: Cursor<Cell[]>;

    constructor(cursor: Cursor<Cell[]>) {
        this.#cursor = cursor;
    }

    read(count: number): Promise<readonly Cell[][]> {
        return new Promise((resolve, reject) => {
            this.#cursor.read(count, (error: Error | undefined, rows: Cell[][], result: pg.QueryResult) => {
                if (error !== undefined && error !== null) {
                    reject(error);
                    return;
                }
                this.fields = result.fields;
                resolve(rows);
            });
        });
    }

    async *batches(first: readonly Cell[][]): AsyncGenerator<readonly (readonly Cell[])[]> {
        let rows = first;
        let count = firstRows;
        try {
            while (rows.length > 0) {
                yield rows;
                if (rows.length < count) {
                    return;
                }
                const bytes = JSON.stringify(rows[0]).length + 1;
                count = Math.min(mostRows, Math.max(1, Math.floor(batchBytes / bytes)));
                rows = await this.read(count);
            }
        } catch (error) {
            throw failureOf(error);
        }
    }
}
