/** Names that no plugin may have. */
import { corePermissions } from '../../features/users/roles/permissions.ts';

/** The first part after `/api/` of the core's own routes. */
const routeGroups = [
    'audit',
    'auth',
    'certificates',
    'dns-providers',
    'events',
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

/** The areas of the core's permissions and the groups of its routes. */
export const reservedNames: ReadonlySet<string> = new Set([
    'core',
    'panel',
    'system',
    'api',
    ...corePermissions.map(({ name }) => name.split(':')[0] ?? ''),
    ...routeGroups
]);
