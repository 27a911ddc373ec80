/** What a kind of database server is to the rest of the plugin. Each kind is one object of this shape, in a folder of its own. */

/** Names of the kinds. */
export type KindName = 'mysql' | 'postgresql';
/** The server program behind a kind. */
export type Flavour = 'mysql' | 'mariadb' | 'postgresql';
/** What an account may do in one database. */
export type Level = 'read' | 'write' | 'owner';

/** Where a server listens, and how connections to it are protected. */
export interface Address {
    /** Null where `socket` is given. */
    readonly host: string | null;
    readonly port: number;
    /** Path of a unix socket. */
    readonly socket: string | null;
    /** `require` encrypts; `verify` also checks that the certificate is the host's. */
    readonly tls: 'disable' | 'require' | 'verify';
    /** PEM of the authority to trust; null: those of Node. */
    readonly ca: string | null;
}

/** An account and its password. */
export interface Login {
    readonly username: string;
    readonly password: string;
}

/** One cell of a result as JSON: big numbers and dates are texts as the server writes them, bytes are `{ base64 }`. */
export type Cell = string | number | boolean | null | { readonly base64: string } | object;

/** A column of a result. */
export interface Column {
    readonly name: string;
    /** As the server names it. */
    readonly type: string;
}

/** The result of one statement, read as it comes. */
export interface ResultStream {
    /** Empty for a statement without rows. */
    readonly columns: readonly Column[];
    /** Batches of rows. Leaving the loop early leaves the session in the middle of the result: destroy it then. */
    readonly batches: AsyncIterable<readonly (readonly Cell[])[]>;
    /** Rows that the statement changed, once `batches` has ended; null for a statement that reads. */
    affected(): number | null;
}

/** A row of one of the plugin's own statements. */
export type Row = Readonly<Record<string, unknown>>;

/** One connection to a server. It has one owner, who closes it. */
export interface Session {
    /** Names the session on the server, to cancel it from another one. */
    readonly id: string;
    /** Such as `10.11.6`. */
    readonly serverVersion: string;
    readonly flavour: Flavour;
    /** Runs one of the plugin's own statements, at most {@link controlSeconds}. @throws SQL_FAILED 42250, SERVER_OFFLINE 50350, QUERY_TIMEOUT 50450 */
    all(sql: string, parameters?: readonly unknown[]): Promise<readonly Row[]>;
    /** As {@link Session.all}, for how many rows it changed. */
    run(sql: string, parameters?: readonly unknown[]): Promise<number>;
    /**
     * Runs one statement of a user; has no time limit of its own. With `write`, the statement has ended, and counts, when this resolves; rows beyond
     * {@link mostKeptRows} and {@link mostKeptBytes} are then dropped. @throws SQL_FAILED 42250, SERVER_OFFLINE 50350
     */
    stream(
        sql: string,
        parameters: readonly unknown[],
        options: { readonly write: boolean }
    ): Promise<ResultStream>;
    /** Sends the data of a COPY statement (PostgreSQL). @throws SQL_FAILED 42250 */
    copy(sql: string, data: AsyncIterable<Buffer>): Promise<void>;
    /** Ends it in good order. */
    close(): Promise<void>;
    /** Ends it at once: the server stops what it does for it when it next writes. */
    destroy(): void;
}

/** Opens sessions on one server as one account; each is closed when its work has ended. */
export interface Access {
    /** Of the account that the sessions belong to. */
    readonly username: string;
    /** Runs work in a session on a database (null: none, or the kind's default) and closes it. */
    use<T>(database: string | null, work: (session: Session) => Promise<T>): Promise<T>;
}

/** A database as lists show it. */
export interface DatabaseInfo {
    readonly name: string;
    readonly owner: string | null;
    readonly sizeBytes: number;
    /** Null where it is not known without looking into the database. */
    readonly tables: number | null;
    readonly charset: string | null;
    readonly collation: string | null;
    /** It belongs to the server itself. */
    readonly system: boolean;
}

/** A database to make. */
export interface NewDatabase {
    readonly name: string;
    readonly owner: string | null;
    readonly charset: string | null;
    readonly collation: string | null;
}

/** Databases of one kind. */
export interface DatabaseStatements {
    isSystem(name: string): boolean;
    /** By name; at most three statements however many there are. */
    list(session: Session): Promise<readonly DatabaseInfo[]>;
    /** With its number of tables. @throws NOT_FOUND 40400 */
    get(access: Access, name: string): Promise<DatabaseInfo>;
    /** @throws CONFLICT 40900 */
    create(access: Access, database: NewDatabase): Promise<void>;
    /** Ends the sessions that use it. @throws NOT_FOUND 40400 */
    drop(access: Access, name: string): Promise<void>;
}

/** How a new database takes the place of one. Both are named: `name` has what is replaced, `other` what replaces it. */
export interface SwapStatements {
    /** @throws VALIDATION_FAILED 40001 where the server, or what is in the database, does not allow it */
    check(access: Access, name: string): Promise<void>;
    /** Exchanges their contents at once; accounts keep their levels by name. What fails leaves `name` as it was. */
    run(access: Access, name: string, other: string): Promise<void>;
    /** Removes the content that is not wanted: the new one where `run` did nothing, else the old one. Finishes or undoes what was cut. */
    reconcile(access: Access, other: string): Promise<void>;
}

/** What an account may do in one database. */
export interface Grant {
    readonly database: string;
    readonly level: Level;
}

/** An account by its name, and for MySQL by where it comes from. */
export interface AccountName {
    readonly username: string;
    /** Null for PostgreSQL. */
    readonly host: string | null;
}

/** An account of a server. */
export interface AccountInfo extends AccountName {
    readonly locked: boolean;
    readonly grants: readonly Grant[];
    /** It belongs to the server or to the panel. */
    readonly system: boolean;
}

/** Accounts of one kind. Passwords are texts of URL-safe base64. */
export interface AccountStatements {
    /** The account that a path parameter names: `shop`, or `shop@10.0.0.%`. */
    parse(name: string): AccountName;
    /** The path parameter that names an account. */
    format(account: AccountName): string;
    list(access: Access): Promise<readonly AccountInfo[]>;
    /** @throws CONFLICT 40900 */
    create(access: Access, account: AccountName, password: string): Promise<void>;
    /** What the server keeps in place of the password, as `createVerified` takes it; null where it cannot be read. */
    verifierOf(access: Access, account: AccountName): Promise<string | null>;
    /** Makes an account with such a text, which may come from a backup. False, and nothing is made, for a text or a name that it does not take. */
    createVerified(access: Access, account: AccountName, verifier: string): Promise<boolean>;
    setPassword(access: Access, account: AccountName, password: string): Promise<void>;
    /** Changes the password of the account that the sessions belong to, which needs no right. */
    setOwnPassword(access: Access, password: string): Promise<void>;
    setLocked(access: Access, account: AccountName, locked: boolean): Promise<void>;
    /** Gives exactly these levels, and takes all other levels away. @throws NOT_FOUND 40400 for a database */
    setGrants(access: Access, account: AccountName, grants: readonly Grant[]): Promise<void>;
    /** The name of the account that runs the statements of strangers in a database. */
    guestOf(database: string): AccountName;
    /** Makes that account: it owns one database and nothing else, to run the statements of strangers. */
    createGuest(
        access: Access,
        account: AccountName,
        options: { readonly database: string; readonly password: string }
    ): Promise<void>;
    /** Closes that account; what it made stays. */
    closeGuest(access: Access, account: AccountName): Promise<void>;
    /** Removes the account; what it owns goes to the owner of its database. */
    drop(access: Access, account: AccountName): Promise<void>;
    /** Makes sure that the account may read, or own, a database. Nothing is taken away. */
    ensureLevel(access: Access, account: AccountName, grant: Grant): Promise<void>;
}

/** A table as lists show it. */
export interface TableInfo {
    readonly schema: string;
    readonly name: string;
    readonly type: 'table' | 'view' | 'materialized' | 'foreign';
    /** An estimate of the server; null where it has none. */
    readonly rows: number | null;
    readonly sizeBytes: number | null;
}

/** A column of a table. */
export interface ColumnInfo extends Column {
    readonly nullable: boolean;
    readonly default: string | null;
    /** The server makes the value: an expression or a counter. */
    readonly generated: boolean;
}

/** The structure of a table. */
export interface TableStructure {
    readonly columns: readonly ColumnInfo[];
    readonly indexes: readonly {
        readonly name: string;
        readonly unique: boolean;
        readonly columns: readonly string[];
    }[];
    readonly keys: readonly {
        readonly name: string;
        readonly type: 'primary' | 'unique' | 'foreign';
        readonly columns: readonly string[];
        readonly references: {
            readonly schema: string;
            readonly table: string;
            readonly columns: readonly string[];
        } | null;
    }[];
    readonly ddl: string;
}

/** A table by name. */
export interface TableName {
    readonly database: string;
    readonly schema: string;
    readonly table: string;
}

/** Columns of a table that refer to those of another. */
export interface ForeignKey {
    readonly table: TableName;
    readonly columns: readonly string[];
    readonly target: TableName;
    readonly targetColumns: readonly string[];
}

/** Structure of databases of one kind. */
export interface StructureStatements {
    readonly defaultSchema: (database: string) => string;
    /** All foreign keys within a database. */
    foreignKeys(session: Session, database: string): Promise<readonly ForeignKey[]>;
    /** The table, and those that hold rows of it: its partitions and the tables that inherit from it. */
    parts(session: Session, name: TableName): Promise<readonly TableName[]>;
    /** The statement that removes rows of a table that refer to rows that are not there. */
    dangling(key: ForeignKey): string;
    tables(session: Session, database: string, schema: string | null): Promise<readonly TableInfo[]>;
    /** @throws NOT_FOUND 40400 */
    table(session: Session, name: TableName): Promise<TableStructure>;
    /** Inserts rows; each has a value for each of the names, which the table has. @throws SQL_FAILED 42250 */
    insert(
        session: Session,
        table: TableName,
        what: { readonly names: readonly string[]; readonly rows: readonly (readonly Cell[])[] }
    ): Promise<void>;
    /** The table in a statement, quoted. */
    quoteTable(name: TableName): string;
    /** A value in a statement that is written down, such as an export. */
    literal(value: Cell): string;
    /** A condition that is true where a column has just the value that a client saw; `value` is added to the parameters. */
    same(column: string, value: Cell, parameters: unknown[]): string;
}

/** A session on the server as lists show it. */
export interface SessionInfo {
    readonly id: string;
    readonly user: string | null;
    readonly database: string | null;
    readonly state: string | null;
    readonly durationMs: number | null;
    readonly sql: string | null;
}

/** Sessions of one kind. */
export interface SessionStatements {
    list(session: Session): Promise<readonly SessionInfo[]>;
    /** Stops what the session does, or ends it. @throws NOT_FOUND 40400 */
    end(session: Session, id: string, mode: 'cancel' | 'end'): Promise<void>;
}

/** What a server does, as counters and gauges. */
export interface Measured {
    readonly connections: number;
    /** Statements (MySQL) or transactions (PostgreSQL) since the server was started. */
    readonly worked: number;
    /** Pages that were read from memory, and pages that were read at all, since then. */
    readonly cached: number;
    readonly read: number;
}

/** Statements of one form that took long. */
export interface SlowStatement {
    readonly sql: string;
    readonly calls: number;
    readonly totalMs: number;
    readonly rows: number;
}

/** How busy servers of one kind are. */
export interface LoadStatements {
    measure(session: Session): Promise<Measured>;
    /** At most {@link mostSlow}, those that took longest in all first. @throws TOOL_MISSING 50302 where the server does not record it */
    slow(session: Session): Promise<readonly SlowStatement[]>;
}

/** How statements of users run. */
export interface ConsoleStatements {
    /** Words that a statement that reads may begin with. */
    readonly reading: readonly string[];
    /** Tells the server to stop a statement itself after this time, and with `readOnly` to refuse every change from now on. */
    begin(session: Session, options: { readonly seconds: number; readonly readOnly: boolean }): Promise<void>;
    /** The statement that explains another one. */
    explain(sql: string, analyze: boolean, flavour: Flavour): string;
    /** The plan in what that statement gave: as data, and as a text to read. */
    planOf(cells: readonly (readonly Cell[])[]): { readonly plan: unknown; readonly text: string };
}

/** An extension of a database. */
export interface ExtensionInfo {
    readonly name: string;
    readonly installed: string | null;
    readonly available: string | null;
}

/** How clients of other programs connect. */
export interface ConnectionGuide {
    readonly uri: string;
    readonly cli: readonly string[];
    readonly env: Readonly<Record<string, string>>;
}

/** A kind of database server. */
export interface Kind {
    readonly name: KindName;
    readonly defaultPort: number;
    /** Connects and logs in. @throws LOGIN_FAILED 42254, SERVER_OFFLINE 50350 */
    connect(options: ConnectOptions): Promise<Session>;
    /** A name as an identifier of a statement. */
    quote(name: string): string;
    /** The place of the parameter with this number, 1 first. */
    placeholder(number: number): string;
    /** Whether a failure says that the account lacks the rights for what the plugin did. */
    isDenied(error: unknown): boolean;
    readonly databases: DatabaseStatements;
    readonly swap: SwapStatements;
    readonly accounts: AccountStatements;
    readonly structure: StructureStatements;
    readonly sessions: SessionStatements;
    readonly load: LoadStatements;
    readonly console: ConsoleStatements;
    /** Null where databases have none. */
    readonly extensions: {
        list(session: Session): Promise<readonly ExtensionInfo[]>;
        install(session: Session, name: string): Promise<void>;
    } | null;
    guide(options: {
        readonly address: Address;
        readonly database: string;
        readonly username: string;
    }): ConnectionGuide;
}

/** With what a connection to a server is opened. */
export interface ConnectOptions {
    readonly address: Address;
    readonly login: Login;
    /** Null: none, or the kind's default. */
    readonly database: string | null;
    /** Makes a socket to the server. */
    dial(target: { host: string; port: number } | { path: string }): import('node:net').Socket;
}

/** Time that one of the plugin's own statements may take. */
export const controlSeconds = 30;
/** Rows that any answer may have, and one more, which says that there are more. */
export const mostKeptRows = 10_001;
/** Bytes of JSON that any answer may have. */
export const mostKeptBytes = 8 * 1024 * 1024;
/** Statements that a list of slow ones has at most. */
export const mostSlow = 100;
/** Time that connecting and logging in may take. */
export const connectSeconds = 8;
