/** Connections to MySQL and MariaDB. */
import { once } from 'node:events';
import type { Readable } from 'node:stream';

import { type Connection, createConnection, type FieldPacket, type ResultSetHeader } from 'mysql2';

import { fail } from '../errors.ts';
import {
    type Cell,
    type ConnectOptions,
    connectSeconds,
    controlSeconds,
    type Flavour,
    type ResultStream,
    type Row,
    type Session
} from '../kinds/kind.ts';
import { within } from '../timing.ts';
import { cellOf, columnOf, parameterOf } from './cells.ts';
import { failureOf } from './failures.ts';

const batchRows = 200;

/** Connects and logs in. @throws LOGIN_FAILED 42254, SERVER_OFFLINE 50350 */
export async function connect({ address, login, database, dial }: ConnectOptions): Promise<Session> {
    const { host, port, socket, tls, ca } = address;
    const connection = createConnection({
        stream: () => dial(socket === null ? { host: host ?? 'localhost', port } : { path: socket }),
        host: host ?? 'localhost',
        user: login.username,
        password: login.password,
        ...(database === null ? {} : { database }),
        ...(tls === 'disable' || socket !== null
            ? {}
            : {
                  ssl: {
                      rejectUnauthorized: tls === 'verify',
                      verifyIdentity: tls === 'verify',
                      ...(ca === null ? {} : { ca })
                  }
              }),
        charset: 'UTF8MB4_GENERAL_CI',
        connectTimeout: connectSeconds * 1_000,
        dateStrings: true,
        supportBigNumbers: true,
        jsonStrings: true,
        multipleStatements: false,
        // The driver writes no value into a text: a statement with parameters is prepared. So it need not look for places of values either.
        queryFormat: (sql: string) => sql,
        // A server could ask for any file of this machine otherwise.
        flags: ['-LOCAL_FILES'],
        connectAttributes: { program_name: 'portico' }
    });
    const session = new MysqlSession(connection);
    // The driver does not tell a stream of rows that the connection was lost.
    connection.on('error', () => session.destroy());
    try {
        const connected = new Promise<void>((resolve, reject) => {
            connection.connect((error) => (error === null ? resolve() : reject(error)));
        });
        await within(connectSeconds, connected, {
            late: () => fail.SERVER_OFFLINE({ message: `no answer within ${connectSeconds} s` })
        });
        await session.greet();
        return session;
    } catch (error) {
        session.destroy();
        throw failureOf(error);
    }
}

class MysqlSession implements Session {
    serverVersion = '';
    flavour: Flavour = 'mysql';
    readonly #connection: Connection;
    /** Rejects when the session is destroyed: the driver does not tell the work that waits. */
    readonly #gone = Promise.withResolvers<never>();
    #rows: Readable | null = null;

    constructor(connection: Connection) {
        this.#connection = connection;
        this.#gone.promise.catch(() => undefined);
    }

    get id(): string {
        return String(this.#connection.threadId);
    }

    async greet(): Promise<void> {
        const [{ version } = {}] = (await this.all('select version() as version')) as { version?: string }[];
        this.flavour = /mariadb/i.test(version ?? '') ? 'mariadb' : 'mysql';
        this.serverVersion = /\d+(\.\d+)+/.exec(version ?? '')?.[0] ?? '';
    }

    async all(sql: string, parameters: readonly unknown[] = []): Promise<readonly Row[]> {
        const rows = await this.#control(sql, parameters);
        return Array.isArray(rows) ? (rows as Row[]) : [];
    }

    async run(sql: string, parameters: readonly unknown[] = []): Promise<number> {
        return ((await this.#control(sql, parameters)) as ResultSetHeader).affectedRows;
    }

    async stream(sql: string, parameters: readonly unknown[]): Promise<ResultStream> {
        const options = { sql, rowsAsArray: true };
        // A statement with parameters is prepared, so that its values are never part of the text.
        const command =
            parameters.length === 0
                ? this.#connection.query(options)
                : this.#connection.execute({ ...options, values: parameters.map(parameterOf) });
        const rows = command.stream({ highWaterMark: batchRows });
        this.#rows = rows;
        const columns: { name: string; type: string }[] = [];
        rows.on('fields', (fields: FieldPacket[] | undefined) => {
            if (columns.length === 0) {
                columns.push(...(fields ?? []).map(columnOf));
            }
        });
        const header: { affected: number | null } = { affected: null };
        try {
            // The first of: a row or a header to read, the end, a failure.
            await Promise.race([once(rows, 'readable'), once(rows, 'end')]);
        } catch (error) {
            throw failureOf(error);
        }
        return { columns, batches: readBatches(rows, columns, header), affected: () => header.affected };
    }

    copy(): Promise<void> {
        return Promise.reject(fail.SQL_FAILED({ sqlState: null, message: 'MySQL has no COPY' }));
    }

    async close(): Promise<void> {
        const ended = new Promise<void>((resolve) => this.#connection.end(() => resolve()));
        await within(2, ended, { late: () => new Error('late'), onLate: () => this.destroy() }).catch(
            () => undefined
        );
    }

    destroy(): void {
        const gone = fail.SERVER_OFFLINE({ message: 'the connection was closed' });
        this.#gone.reject(gone);
        this.#rows?.destroy(gone);
        this.#connection.destroy();
    }

    async #control(sql: string, parameters: readonly unknown[]): Promise<unknown> {
        const { promise, resolve, reject } = Promise.withResolvers<unknown>();
        const done = (error: Error | null, result: unknown): void =>
            error === null ? resolve(result) : reject(error);
        if (parameters.length === 0) {
            this.#connection.query(sql, done);
        } else {
            this.#connection.execute(sql, parameters.map(parameterOf), done);
        }
        try {
            return await within(controlSeconds, Promise.race([promise, this.#gone.promise]), {
                late: () => fail.QUERY_TIMEOUT({ seconds: controlSeconds }),
                onLate: () => this.destroy()
            });
        } catch (error) {
            throw failureOf(error);
        }
    }
}

async function* readBatches(
    rows: Readable,
    columns: readonly { readonly type: string }[],
    header: { affected: number | null }
): AsyncGenerator<readonly (readonly Cell[])[]> {
    let batch: Cell[][] = [];
    try {
        for await (const row of rows) {
            if (!Array.isArray(row)) {
                header.affected = (row as ResultSetHeader).affectedRows;
                continue;
            }
            batch.push(row.map((value, index) => cellOf(value, columns[index]?.type ?? '')));
            if (batch.length >= batchRows) {
                yield batch;
                batch = [];
            }
        }
    } catch (error) {
        throw failureOf(error);
    }
    if (batch.length > 0) {
        yield batch;
    }
}
