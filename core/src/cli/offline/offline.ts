/** The services that commands need when no panel runs, on its data folder. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import Sqlite from 'better-sqlite3';

import { openStorage } from '../../composition/storage.ts';
import { Audit } from '../../features/audit/audit.ts';
import { Auth } from '../../features/auth/auth.ts';
import type { ExportDocument } from '../../features/import-export/document/document.ts';
import type { ExportRequest } from '../../features/import-export/service.ts';
import { Settings } from '../../features/settings/settings.ts';
import { Accounts } from '../../features/users/accounts/accounts.ts';
import { Console } from '../../features/users/console.ts';
import { Passwords } from '../../features/users/passwords/passwords.ts';
import { Permissions } from '../../features/users/roles/permissions.ts';
import { Roles } from '../../features/users/roles/roles.ts';
import { Users } from '../../features/users/users.ts';
import type { Call } from '../../platform/call.ts';
import { systemClock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { DataLock } from '../../platform/data-dir/data-dir.ts';
import type { Database } from '../../platform/database/database.ts';
import { checkKeys } from '../../platform/keys/check.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import { createLog } from '../../platform/log/log.ts';
import { createInternalCall } from '../../server/http/request/internal-call.ts';
import { CommandError } from '../command/command-error.ts';
import { databasePath } from '../panel/data-folder.ts';
import type { PluginAdmin } from '../plugin/admin/plugin-admin.ts';
import { exportOffline } from './export.ts';
import { strangeMigrations } from './migrations.ts';

/** Services on the data folder of a panel that does not run. */
export interface Offline {
    readonly audit: Audit;
    readonly auth: Auth;
    readonly users: Users;
    readonly accounts: Accounts;
    readonly console: Console;
    /** Exports the panel as one document. */
    exportDocument(request: ExportRequest): Promise<ExportDocument>;
    /** Opens the plugins, without running their code. */
    plugins(): Promise<PluginAdmin>;
    /** Creates a call of the system, which the audit log shows as the console's. */
    call(): Call;
    /** Closes the database and releases the lock. */
    close(): Promise<void>;
}

/** What {@link openOffline} works with. */
export interface OfflineOptions {
    readonly config: Config;
    readonly keyring: Keyring;
    /** Released when the services are closed, or cannot be opened. */
    readonly lock: DataLock;
    readonly userAgent: string;
}

/** Opens the services. @throws the error of the database, or of invalid settings or an invalid secret of tokens */
export async function openOffline({ config, keyring, lock, userAgent }: OfflineOptions): Promise<Offline> {
    let db: Database | null = null;
    try {
        refuseNewer(databasePath(config.dataDir));
        db = await openStorage(config.dataDir, false);
        await checkKeys(db, keyring, join(config.dataDir, 'keys'));
        return await createServices(db, config, keyring, lock, userAgent);
    } catch (error) {
        await db?.close();
        lock.release();
        throw error;
    }
}

/** Refuses a database that a newer version has migrated. @throws CommandError */
function refuseNewer(file: string): void {
    const db = new Sqlite(file, { fileMustExist: true, timeout: 5_000 });
    try {
        const unknown = strangeMigrations(db);
        if (unknown.length > 0) {
            throw new CommandError(
                `${file} was written by a newer version of Portico (${unknown.join(', ')}): use the command line of that version`
            );
        }
    } finally {
        db.close();
    }
}

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
};

async function createServices(
    db: Database,
    config: Config,
    keyring: Keyring,
    lock: DataLock,
    userAgent: string
): Promise<Offline> {
    const clock = systemClock;
    const log = createLog({
        level: 'warn',
        write: (line) => process.stderr.write(`portico: ${(JSON.parse(line) as { msg: string }).msg}\n`)
    });
    const settings = await Settings.load({ db, keyring, config, clock, log });
    const audit = await Audit.open({
        db,
        keyring,
        headFile: join(config.dataDir, 'audit.head'),
        clock,
        log,
        retentionDays: () => settings.get('audit.retentionDays')
    });
    const roles = new Roles({ db, clock, permissions: new Permissions() });
    const accounts = new Accounts({ db, clock, passwords: new Passwords(), roles });
    const auth = new Auth({
        db,
        clock,
        keyring,
        recorder: audit,
        accounts,
        settings,
        resolve: () => null,
        jwtSecret: config.jwtSecret
    });
    const users = new Users({ db, clock, accounts, roles, logins: auth });
    return {
        audit,
        auth,
        users,
        accounts,
        console: new Console({ db, accounts, users, logins: auth }),
        exportDocument: (request) =>
            exportOffline(
                { db, clock, keyring, log, audit, settings, roles, accounts, auth, version },
                request,
                createInternalCall({ recorder: audit, userAgent })
            ),
        async plugins() {
            const { PluginFolder } = await import('./plugin-folder.ts');
            const { OfflinePluginAdmin } = await import('./plugin-admin.ts');
            const folder = await PluginFolder.open({
                config,
                db,
                keyring,
                clock,
                audit,
                call: () => createInternalCall({ recorder: audit, userAgent }),
                async forgetArea(tx, area) {
                    await roles.forgetArea(tx, area);
                    await auth.apiTokens.forgetArea(tx, area);
                }
            });
            return new OfflinePluginAdmin(folder);
        },
        call: () => createInternalCall({ recorder: audit, userAgent }),
        async close() {
            await auth.stop();
            await audit.close();
            await db.close();
            lock.release();
        }
    };
}
