/** Import and export, put together: every section of a document, in the order in which they are planned and written. */
import type { Audit } from './audit/audit.ts';
import type { Auth } from './auth/auth.ts';
import type { Clock } from './clock.ts';
import type { Database } from './db/database.ts';
import { createPluginSection, noPlugins, type PluginCatalogue } from './import-export/plugins.ts';
import { createImportExport, type ImportExport } from './import-export/service.ts';
import type { Keyring } from './keyring.ts';
import type { Serving } from './serving.ts';
import type { Settings } from './settings/settings.ts';
import { createSettingsSection } from './settings/transfer.ts';
import type { Tasks } from './tasks/tasks.ts';
import type { Accounts } from './users/accounts.ts';
import { createRoleSection } from './users/role-transfer.ts';
import type { Roles } from './users/roles.ts';
import { createUserSection } from './users/transfer.ts';

export interface TransferParts {
    readonly db: Database;
    readonly keyring: Keyring;
    readonly clock: Clock;
    readonly audit: Audit;
    readonly tasks: Tasks;
    readonly settings: Settings;
    readonly roles: Roles;
    readonly accounts: Accounts;
    readonly auth: Auth;
    readonly serving: Pick<Serving, 'engine' | 'sections' | 'adapt'>;
    /** Default: none are there. */
    readonly plugins?: PluginCatalogue;
    /** Of the panel. */
    readonly version: string;
}

export function createTransfer({ db, keyring, clock, audit, tasks, settings, roles, accounts, auth, serving, plugins = noPlugins, version }: TransferParts): ImportExport {
    const { dnsProviders, certificates, hosts } = serving.sections;
    return createImportExport({
        sections: [createSettingsSection(settings), createRoleSection({ roles, clock }), createUserSection({ db, clock, accounts, roles, logins: auth, factors: auth }), dnsProviders, certificates, hosts, createPluginSection({ db, clock, keyring, plugins })],
        engine: serving.engine, db, tasks, recorder: audit, clock, version, foreign: { adapt: serving.adapt }
    });
}
