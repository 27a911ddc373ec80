/** Names that no plugin may have, without a panel to ask. */
import { corePermissions } from '../../../features/users/roles/permissions.ts';

/** What stands after `/api/` in the core's own routes. */
const routeGroups = [
    'audit',
    'auth',
    'certificates',
    'dns-providers',
    'health',
    'hosts',
    'import-export',
    'openapi',
    'plugins',
    'proxyengine',
    'settings',
    'tasks',
    'users'
];

/** Areas of permissions and groups of routes. */
export const reservedNames: ReadonlySet<string> = new Set([
    'core',
    'panel',
    'system',
    'api',
    ...corePermissions.map(({ name }) => name.split(':')[0] ?? ''),
    ...routeGroups
]);
