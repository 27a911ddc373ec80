/** The core's database with every feature's tables in it. */
import { join } from 'node:path';

import { engineEntities, engineMigrations } from '../engine/entities.ts';
import { auditEntities, auditMigrations } from '../features/audit/entities.ts';
import { authEntities, authMigrations } from '../features/auth/entities.ts';
import { certificateEntities, certificateMigrations } from '../features/certificates/entities.ts';
import { dnsEntities, dnsMigrations } from '../features/dns-providers/entities.ts';
import { hostEntities, hostMigrations } from '../features/hosts/entities.ts';
import { importExportEntities, importExportMigrations } from '../features/import-export/entities.ts';
import { notificationEntities, notificationMigrations } from '../features/notifications/entities.ts';
import { settingsEntities, settingsMigrations } from '../features/settings/entities.ts';
import { taskEntities, taskMigrations } from '../features/tasks/entities.ts';
import { userEntities, userMigrations } from '../features/users/entities.ts';
import { databaseName } from '../platform/data-dir/data-dir.ts';
import { type Database, openDatabase } from '../platform/database/database.ts';
import { explainDamage, inspectDatabase } from '../platform/database/inspection.ts';
import { keyCheckMigrations } from '../platform/keys/check.ts';
import { pluginEntities, pluginMigrations } from '../plugins/manager/records/entities.ts';
import { pluginHostEntities, pluginHostMigrations } from '../plugins/runtime/entities.ts';
import { idempotencyEntities, idempotencyMigrations } from '../server/http/idempotency/entities.ts';

/** Every migration, in the order in which a new database gets them. */
export const storageMigrations = [
    auditMigrations,
    userMigrations,
    authMigrations,
    settingsMigrations,
    taskMigrations,
    idempotencyMigrations,
    certificateMigrations,
    dnsMigrations,
    hostMigrations,
    engineMigrations,
    notificationMigrations,
    importExportMigrations,
    pluginHostMigrations,
    pluginMigrations,
    keyCheckMigrations
].flat();

/**
 * Opens the core's database and migrates it to the newest version.
 *
 * @param isFirst - the database may be new
 * @throws Error when it is damaged, or was written by a newer version
 */
export async function openStorage(dataDir: string, isFirst = true): Promise<Database> {
    const file = join(dataDir, databaseName);
    try {
        return await openDatabase({
            file,
            entities: [
                auditEntities,
                authEntities,
                certificateEntities,
                dnsEntities,
                engineEntities,
                hostEntities,
                importExportEntities,
                idempotencyEntities,
                notificationEntities,
                pluginEntities,
                pluginHostEntities,
                settingsEntities,
                taskEntities,
                userEntities
            ].flat(),
            migrations: storageMigrations,
            reserve: { file: join(dataDir, 'reserve') },
            ...(isFirst ? {} : { inspect: (db) => inspectDatabase(file, db) })
        });
    } catch (error) {
        throw explainDamage(file, error);
    }
}
