/** Which migrations a database has, against those that this version knows. */
import { storageMigrations } from '../../composition/storage.ts';
import { executedMigrations, strangeMigrations as strange } from '../../platform/database/migrations.ts';

type Readable = Parameters<typeof executedMigrations>[0];

/** Those that a newer version made. */
export function strangeMigrations(db: Readable): string[] {
    return strange(db, storageMigrations);
}

/** Those that the next start will run. */
export function missingMigrations(db: Readable): string[] {
    const done = new Set(executedMigrations(db));
    return storageMigrations.map(({ name }) => name).filter((name) => !done.has(name));
}
