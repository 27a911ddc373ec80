/** The check of the database at a start, before anything is written to it. */
import { statSync } from 'node:fs';

import { restoreAdvice } from '../data-dir/first-start.ts';
import { executedMigrations, type Readable } from './migrations.ts';

/** A file of this size is checked whole: that takes some 3 ms for each MiB. */
const wholeBytes = 16 * 1_048_576;
/** Of a larger file, tables with these names are left to `portico doctor`: they are nearly all of it. */
const large = /^(audit_|sqlite_)/;

/** Refuses a database that no panel has written, or that has a damaged page. @throws Error that names the file, and the table where it is known */
export function inspectDatabase(file: string, db: Readable): void {
    if (executedMigrations(db).length === 0) {
        throw new Error(`${file} has no table of a panel in it. ${restoreAdvice}`);
    }
    const checks =
        statSync(file).size <= wholeBytes
            ? ['pragma quick_check(3)']
            : (
                  db.prepare("select name from sqlite_master where type = 'table' order by name").all() as {
                      name: string;
                  }[]
              )
                  .filter(({ name }) => !large.test(name))
                  .map(({ name }) => `pragma quick_check("${name}")`);
    for (const check of checks) {
        const found = (db.prepare(check).all() as { quick_check: string }[]).map((row) => row.quick_check);
        if (found[0] !== 'ok') {
            throw new Error(`${file} is damaged: ${found.join('; ')}. ${restoreAdvice}`);
        }
    }
}

/** Names the file in SQLite's errors of a damaged database. Other errors stay. */
export function explainDamage(file: string, error: unknown): unknown {
    const { code, message } = error as { code?: unknown; message?: unknown };
    return typeof code === 'string' && /^SQLITE_(CORRUPT|NOTADB)/.test(code)
        ? new Error(`${file} is damaged: ${String(message)}. ${restoreAdvice}`, { cause: error })
        : error;
}
