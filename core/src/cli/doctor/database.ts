/** Checks of the database: its integrity, its migrations, the audit log beside its head file, and the clock beside the newest entry. */
import { statSync } from 'node:fs';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';

import { findBreak } from '../../features/audit/chain/find-break.ts';
import { genesis, type Head, readHead } from '../../features/audit/chain/head.ts';
import { auditKeys, type CheckpointRow } from '../../features/audit/chain/keys.ts';
import type { Config } from '../../platform/config.ts';
import { createKeyring } from '../../platform/keys/keyring.ts';
import { explainFileError, systemCode } from '../command/command-error.ts';
import { missingMigrations, strangeMigrations } from '../offline/migrations.ts';
import { databasePath } from '../panel/data-folder.ts';
import { type Check, fault, ok, warn } from './check.ts';

const restore = 'Stop the panel, keep a copy of the whole data folder, and put back a backup';
const leewayMs = 60_000;
const released = Date.UTC(2026, 0, 1);

/** Checks the database, which it opens read-only. What is wrong becomes a check that failed. */
export function checkDatabase(config: Config): Check[] {
    const file = databasePath(config.dataDir);
    let db: Sqlite.Database | null = null;
    try {
        db = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: 5_000 });
        const integrity = checkIntegrity(db, file);
        return integrity.state === 'ok'
            ? [integrity, checkMigrations(db), checkAudit(db, config.dataDir), checkClock(db)]
            : [integrity];
    } catch (error) {
        const code = systemCode(error);
        return [
            fault(
                'database',
                `${file}: ${(explainFileError(error, config.dataDir, file) as Error).message}`,
                code?.startsWith('SQLITE_CANTOPEN') === true
                    ? 'Check the owner and the mode of the file and of those beside it'
                    : restore
            )
        ];
    } finally {
        db?.close();
    }
}

function checkIntegrity(db: Sqlite.Database, file: string): Check {
    const found = (db.pragma('quick_check(3)') as { quick_check: string }[]).map((row) => row.quick_check);
    const evidence = `${file}, ${Math.ceil(statSync(file).size / 1024)} KiB`;
    return found.length === 1 && found[0] === 'ok'
        ? ok('database', `${evidence}: quick_check finds nothing`)
        : fault('database', `${evidence} is damaged: ${found.join('; ')}`, restore);
}

function checkMigrations(db: Sqlite.Database): Check {
    const strange = strangeMigrations(db);
    if (strange.length > 0) {
        return fault(
            'migrations',
            `run by a newer version: ${strange.join(', ')}`,
            'Use that version, or put back a backup of this version'
        );
    }
    const missing = missingMigrations(db);
    return missing.length > 0
        ? warn(
              'migrations',
              `not yet run: ${missing.join(', ')}`,
              'The next start runs them; make a backup first'
          )
        : ok('migrations', 'all migrations of this version have run');
}

/** Reads the head file before the entries: a running panel can only add entries in between. */
function checkAudit(db: Sqlite.Database, dataDir: string): Check {
    const keys = auditKeys(createKeyring(dataDir));
    const stored = readHead(join(dataDir, 'audit.head'), keys.head);
    const last = db
        .prepare<[], Head>('select id as sequence, hash from audit_entries order by id desc limit 1')
        .get();
    const point = db
        .prepare<[], CheckpointRow>('select * from audit_checkpoints order by sequence desc limit 1')
        .get();
    const head =
        last ?? (point?.kind === 'sealed' ? { sequence: point.sequence, hash: point.hash } : genesis);
    const found = findBreak({ source: db, keys, stored, head });
    return found === null
        ? ok('audit', `${head.sequence} entries, and the head file agrees`)
        : fault(
              'audit',
              `${found.reason} at entry ${found.id}: ${found.message}`,
              'Find out who changed the data folder; `portico audit verify` checks the whole log'
          );
}

/** Tokens, second factors and certificates depend on the clock. */
function checkClock(db: Sqlite.Database): Check {
    const now = Date.now();
    const newest =
        db
            .prepare<[], { at: number | null }>(
                'select max(at) as at from (select at from audit_entries order by id desc limit 100)'
            )
            .get()?.at ?? 0;
    const evidence = new Date(now).toISOString();
    const remedy =
        'Set the clock, and keep it right by NTP (`timedatectl set-ntp true`): logins, second factors and certificates depend on it';
    if (now < released) {
        return fault('clock', `${evidence}, which is before this version was released`, remedy);
    }
    return newest > now + leewayMs
        ? fault('clock', `${evidence}, but an audit entry is of ${new Date(newest).toISOString()}`, remedy)
        : ok('clock', `${evidence}, not before the newest audit entry`);
}
