/** Connections to MySQL and MariaDB. */
import { type Connection, createConnection, type ResultSetHeader } from 'mysql2';

import { fail } from '../errors.ts';
import {
    type ConnectOptions,
    connectSeconds,
    controlSeconds,
    type Flavour,
    type ResultStream,
    type Row,
    type Session
} from '../kinds/kind.ts';
import { within } from '../timing.ts';
import { failureOf } from './failures.ts';
import { parameterOf } from './rows/cells.ts';
import { Results } from './rows/results.ts';

/** Connects and logs in. @throws LOGIN_FAILED 42254, SERVER_OFFLINE 50350 */
export async function connect({ address, login, database, dial }: ConnectOptions): Promise<Session> {
    const { host, port, socket, tls, ca } = address;
    const stream = dial(socket === null ? { host: host ?? 'localhost', port } : { path: socket });
    const connection = createConnection({
        stream: () => stream,
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
    const session = new MysqlSession(connection, () => stream.destroy());
    // The driver does not tell the rows of a statement that the connection was lost.
    connection.on('error', () => session.destroy());
    try {
        connection.once('connect', ({ serverVersion }: { readonly serverVersion: string }) =>
            session.greet(serverVersion)
        );
        const connected = new Promise<void>((resolve, reject) => {
            connection.connect((error) => (error === null ? resolve() : reject(error)));
        });
        await within(connectSeconds, connected, {
            late: () => fail.SERVER_OFFLINE({ message: `no answer within ${connectSeconds} s` })
        });
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
    /** The driver only says that nothing more comes from this side: a server that sends a result would go on. */
    readonly #cut: () => void;
    /** Rejects when the session is destroyed: the driver does not tell the work that waits. */
    readonly #gone = Promise.withResolvers<never>();
    #results: Results | null = null;

    constructor(connection: Connection, cut: () => void) {
        this.#connection = connection;
        this.#cut = cut;
        this.#gone.promise.catch(() => undefined);
    }

    get id(): string {
        return String(this.#connection.threadId);
    }

    /** Takes what the server says before the login. MariaDB puts a version of MySQL before its own. */
    greet(version: string): void {
        this.flavour = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
        this.serverVersion = /\d+(\.\d+)+/.exec(version.replace(/^5\.5\.5-(?=\d)/, ''))?.[0] ?? '';
    }

    async all(sql: string, parameters: readonly unknown[] = []): Promise<readonly Row[]> {
        const rows = await this.#control(sql, parameters);
        return Array.isArray(rows) ? (rows as Row[]) : [];
    }

    async run(sql: string, parameters: readonly unknown[] = []): Promise<number> {
        return ((await this.#control(sql, parameters)) as ResultSetHeader).affectedRows;
    }

    stream(sql: string, parameters: readonly unknown[]): Promise<ResultStream> {
        const options = { sql, rowsAsArray: true };
        // A statement with parameters is prepared, so that its values are never part of the text.
        const command =
            parameters.length === 0
                ? this.#connection.query(options)
                : this.#connection.execute({ ...options, values: parameters.map(parameterOf) });
        this.#results = new Results(this.#connection, command);
        return this.#results.begun();
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
        this.#results?.fail(gone);
        this.#connection.destroy();
        this.#cut();
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
