/** What the screens of databases read. */

/** Where the routes of the plugin are. */
export const base = '/api/plugins/database';

/** A database server, as the API gives it. */
export interface Server {
    readonly id: number;
    readonly name: string;
    readonly kind: 'mysql' | 'postgresql';
    readonly state: string;
    readonly message: string | null;
    readonly serverVersion: string | null;
}

/** A database of a server. */
export interface Database {
    readonly name: string;
    readonly sizeBytes: number;
    /** It belongs to the server. */
    readonly system: boolean;
}

/** A table of a database. */
export interface Table {
    readonly schema: string;
    readonly name: string;
    readonly type: string;
    /** As the server estimates them. */
    readonly rows: number | null;
}

/** What a statement answered. */
export interface Result {
    readonly columns: readonly { readonly name: string; readonly type: string }[];
    readonly rows: readonly (readonly unknown[])[];
    /** Rows that it changed. */
    readonly affected?: number;
    /** There are more rows. */
    readonly truncated: boolean;
    readonly durationMs: number;
}

/** A statement that the user ran. */
export interface Ran {
    readonly id: number;
    readonly database: string;
    readonly sql: string;
    readonly at: string;
    readonly failure: string | null;
}

/** The statement that shows the rows of a table. */
export function selectFrom({ kind }: Server, { schema, name }: Table): string {
    return kind === 'mysql'
        ? `select * from \`${name.replaceAll('`', '``')}\``
        : `select * from ${[schema, name].map((each) => `"${each.replaceAll('"', '""')}"`).join('.')}`;
}
