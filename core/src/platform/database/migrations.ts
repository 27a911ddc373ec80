/** Which migrations a database has been through, as it says itself. */

/** A connection that can be read. */
export interface Readable {
    prepare(sql: string): {
        all(...parameters: unknown[]): unknown[];
        get(...parameters: unknown[]): unknown;
    };
}

/** In the order in which they were run; none when the database is new. */
export function executedMigrations(db: Readable): string[] {
    return db.prepare("select 1 from sqlite_master where type = 'table' and name = 'migrations'").get() ===
        undefined
        ? []
        : (db.prepare('select name from migrations order by id').all() as { name: string }[]).map(
              ({ name }) => name
          );
}

/** Those that a newer version made: this one must not touch such a database. */
export function strangeMigrations(db: Readable, known: readonly { readonly name: string }[]): string[] {
    const names = new Set(known.map(({ name }) => name));
    return executedMigrations(db).filter((name) => !names.has(name));
}
