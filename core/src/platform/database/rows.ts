/** Rows that cannot be read: a value that is no JSON, or that the keys do not open. */

/** Reads a row. @throws Error that names the table and the row when `read` fails */
export function readRow<T>(table: string, row: number | string, read: () => T): T {
    try {
        return read();
    } catch (error) {
        throw new Error(
            `Row ${row} of the table ${table} cannot be read (${(error as Error).message}). Nothing was changed. Put back a backup, or mend the row`,
            { cause: error }
        );
    }
}

/** The rows of one database that are left out, because the panel is safe without them. */
export class SkippedRows {
    readonly #rows = new Map<string, string>();

    /** Reads a row; undefined when it cannot be read, and then it is remembered. */
    read<T>(table: string, row: number | string, read: () => T): T | undefined {
        const name = `Row ${row} of the table ${table}`;
        try {
            const value = read();
            this.#rows.delete(name);
            return value;
        } catch (error) {
            this.#rows.set(name, `${name} cannot be read and is left out (${(error as Error).message})`);
            return undefined;
        }
    }

    /** A sentence for each row that is left out. */
    list(): readonly string[] {
        return [...this.#rows.values()];
    }
}
