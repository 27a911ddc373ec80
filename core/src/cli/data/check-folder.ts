/** The checks of `portico data check`: whether a panel could start on a folder with everything that it held. Nothing is changed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { checkInstalled } from '@portico/registry';
import Sqlite from 'better-sqlite3';

import { verifyAuditFile } from '../../features/audit/chain/verify-file.ts';
import type { Config } from '../../platform/config.ts';
import { backupNoteName } from '../../platform/data-dir/data-dir.ts';
import { faultOfKeys } from '../../platform/keys/check.ts';
import { createKeyring, type Keyring } from '../../platform/keys/keyring.ts';
import { type Check, fault, ok } from '../doctor/check.ts';
import { checkDatabase } from '../doctor/database.ts';
import { checkFolder, checkKeys } from '../doctor/machine.ts';
import { databasePath } from '../panel/data-folder.ts';

const another = 'Take the folder of another backup, or of another moment';

/** Runs the checks, one after the other. @param config - `dataDir` is a folder with a database and a master key in it */
export async function checkDataFolder(config: Config): Promise<readonly Check[]> {
    const { dataDir } = config;
    const note = noteOf(dataDir);
    const machine = [checkFolder(config), checkKeys(config)];
    // The whole audit log is checked below.
    const database = checkDatabase(config).filter(({ id }) => id !== 'audit' && id !== 'clock');
    const checks = [...(note === null ? [] : [note]), ...machine, ...database];
    if (checks.some(({ state }) => state === 'fail')) {
        return checks;
    }
    const keyring = createKeyring(dataDir, { fresh: false });
    return [
        ...checks,
        checkSealed(databasePath(dataDir), keyring),
        await checkLog(dataDir, keyring),
        await checkPlugins(dataDir, keyring)
    ];
}

/** What the note of a backup says; null in a data folder. */
function noteOf(dataDir: string): Check | null {
    let text: string;
    try {
        text = readFileSync(join(dataDir, backupNoteName), 'utf8');
    } catch {
        return null;
    }
    try {
        const { at, hostname, version } = JSON.parse(text) as Record<string, unknown>;
        return ok('backup', `made ${String(at)} on ${String(hostname)} by Portico ${String(version)}`);
    } catch {
        return fault('backup', `${backupNoteName} is damaged`, another);
    }
}

function checkSealed(file: string, keyring: Keyring): Check {
    const db = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: 5_000 });
    try {
        return faultOfKeys(db, keyring) === null
            ? ok('secrets', 'the keys open what is sealed in the database')
            : fault(
                  'secrets',
                  'the keys do not open what is sealed in the database',
                  'Put database and keys of the same backup together'
              );
    } finally {
        db.close();
    }
}

async function checkLog(dataDir: string, keyring: Keyring): Promise<Check> {
    const found = await verifyAuditFile({
        file: databasePath(dataDir),
        headFile: join(dataDir, 'audit.head'),
        keyring
    });
    return found.break === null
        ? ok('audit', `${found.entries} entries, none changed, removed or inserted`)
        : fault('audit', `${found.break.reason} at entry ${found.break.id}: ${found.break.message}`, another);
}

async function checkPlugins(dataDir: string, keyring: Keyring): Promise<Check> {
    const problems = await checkInstalled(dataDir, keyring.derive('plugins lock'));
    return problems.length === 0
        ? ok('plugins', 'the installed plugins are those that were installed')
        : fault('plugins', problems.join('; '), 'Install these plugins again when the panel runs');
}
