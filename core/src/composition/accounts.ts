/** Accounts, their roles, and how they log in. */
import { Auth } from '../features/auth/auth.ts';
import { panelOrigin } from '../features/settings/addresses/panel-origin.ts';
import { Accounts } from '../features/users/accounts/accounts.ts';
import { Console } from '../features/users/console.ts';
import { Passwords } from '../features/users/passwords/passwords.ts';
import { Permissions } from '../features/users/roles/permissions.ts';
import { Roles } from '../features/users/roles/roles.ts';
import { Users } from '../features/users/users.ts';
import { completeStart } from '../platform/data-dir/first-start.ts';
import { loginHooks } from '../platform/hooks.ts';
import type { Gateway } from '../server/gateway/gateway.ts';
import { findProtectedResource } from '../server/http/route.ts';
import type { Foundation } from './foundation.ts';

/** The services around accounts. */
export interface AccountServices {
    readonly permissions: Permissions;
    readonly roles: Roles;
    readonly accounts: Accounts;
    readonly auth: Auth;
    readonly users: Users;
}

/** Builds them, and makes the first admin where there is no user. @param show - shows the password of that admin, once */
export async function createAccountServices(
    { config, db, clock, keyring, audit, settings, hooks, outbound, systemCall }: Foundation,
    resolve: Gateway['resolve'],
    show: (text: string) => void
): Promise<AccountServices> {
    const permissions = new Permissions();
    const roles = new Roles({ db, clock, permissions });
    const accounts = new Accounts({ db, clock, passwords: new Passwords(), roles });
    const auth = new Auth({
        db,
        clock,
        keyring,
        recorder: audit,
        accounts,
        settings,
        resolve,
        oauth: {
            outbound,
            resource: (path) => findProtectedResource(resolve, path),
            permissions: () => permissions.all(),
            origin: (host) => panelOrigin(settings.get('panel.url'), host)
        },
        hooks: loginHooks(hooks),
        jwtSecret: config.jwtSecret
    });
    const users = new Users({ db, clock, accounts, roles, logins: auth });
    const console = new Console({ db, accounts, users, logins: auth });
    const admin = await console.firstRun(systemCall(), config.adminPassword);
    if (admin?.password != null) {
        show(
            `The first administrator is "${admin.username}" with the password ${admin.password}\nIt is shown this once, and must be changed at the first login.`
        );
    }
    completeStart(config.dataDir);
    return { permissions, roles, accounts, auth, users };
}
