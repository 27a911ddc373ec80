/** Which migrations a database has, against those that this version knows. */
import { storageMigrations } from '../storage.ts';

interface Readable {
    prepare(sql: string): { all(): unknown[]; get(): unknown };
}

/** Names of those that were run; none when there is no such table yet. */
function executed(db: Readable): string[] {
    return db.prepare('select 1 from sqlite_master where type = \'table\' and name = \'migrations\'').get() === undefined
        ? []
        : (db.prepare('select name from migrations order by id').all() as { name: string }[]).map(({ name }) => name);
}

/** Those that a newer version made. */
export function strangeMigrations(db: Readable): string[] {
    const known = new Set(storageMigrations.map(({ name }) => name));
    return executed(db).filter((name) => !known.has(name));
}

/** Those that the next start will run. */
export function missingMigrations(db: Readable): string[] {
    const done = new Set(executed(db));
    return storageMigrations.map(({ name }) => name).filter((name) => !done.has(name));
}
