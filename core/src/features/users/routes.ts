/** `/api/users`: accounts, roles and permissions. */
import { joi } from '@portico/sdk';

import { json, type Route } from '../../server/http/route.ts';
import type { Permissions } from './roles/permissions.ts';
import type { Roles } from './roles/roles.ts';
import {
    changedRole,
    changedUser,
    newRole,
    newUser,
    permissionView,
    roleName,
    roleView,
    user,
    userId,
    userQuery
} from './schema.ts';
import type { Users } from './users.ts';

/** What the routes call. */
export interface UserRoutesDependencies {
    readonly users: Users;
    readonly roles: Roles;
    readonly permissions: Permissions;
}

/** Every route below `/api/users`. */
export function userRoutes({ users, roles, permissions }: UserRoutesDependencies): Route[] {
    return [
        ...listRoutes(users),
        permissionRoute(permissions),
        ...roleRoutes(roles),
        ...accountRoutes(users)
    ];
}

function listRoutes(users: Users): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/users',
            id: 'users.list',
            access: 'users:read',
            summary: 'List users',
            validate: { query: userQuery },
            returns: joi.array().items(user),
            handler: async ({ query }) => users.list(query)
        }),
        json({
            method: 'POST',
            path: '/api/users',
            id: 'users.create',
            rehearses: true,
            fails: ['RATE_LIMITED'],
            access: 'users:write',
            summary: 'Create a user',
            stepUp: true,
            sessionOnly: true,
            validate: { payload: newUser },
            returns: user,
            handler: (call) => users.create(call, call.payload)
        })
    ];
}

function permissionRoute(permissions: Permissions): Route {
    return json({
        method: 'GET',
        path: '/api/users/permissions',
        id: 'users.permissions',
        access: 'users:read',
        summary: 'List every permission',
        returns: joi.array().items(permissionView),
        handler: () =>
            permissions.all().map(({ name, title, plugin, roles: fixed, dangerous = false }) => ({
                name,
                title,
                plugin,
                roles: [...new Set([...fixed, 'admin'])],
                dangerous
            }))
    });
}

function roleRoutes(roles: Roles): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/users/roles',
            id: 'roles.list',
            access: 'users:read',
            summary: 'List roles',
            returns: joi.array().items(roleView),
            handler: () => roles.list()
        }),
        json({
            method: 'POST',
            path: '/api/users/roles',
            id: 'roles.create',
            rehearses: true,
            access: 'users:write',
            summary: 'Create a role',
            stepUp: true,
            sessionOnly: true,
            validate: { payload: newRole },
            returns: roleView,
            handler: async (call) => roles.create(call, call.payload.name, call.payload)
        }),
        json({
            method: 'GET',
            path: '/api/users/roles/{name}',
            id: 'roles.read',
            access: 'users:read',
            summary: 'Read a role',
            validate: { params: roleName },
            returns: roleView,
            handler: ({ params }) => roles.get(params.name)
        }),
        json({
            method: 'PUT',
            path: '/api/users/roles/{name}',
            id: 'roles.update',
            rehearses: true,
            access: 'users:write',
            summary: 'Change a role',
            stepUp: true,
            sessionOnly: true,
            validate: { params: roleName, payload: changedRole },
            returns: roleView,
            handler: async (call) => roles.update(call, call.params.name, call.payload)
        }),
        json({
            method: 'DELETE',
            path: '/api/users/roles/{name}',
            id: 'roles.remove',
            rehearses: true,
            access: 'users:write',
            summary: 'Remove a role',
            stepUp: true,
            sessionOnly: true,
            validate: { params: roleName },
            returns: joi.valid(null),
            handler: async (call) => {
                await roles.remove(call, call.params.name);
                return null;
            }
        })
    ];
}

function accountRoutes(users: Users): Route[] {
    return [
        json({
            method: 'GET',
            path: '/api/users/{id}',
            id: 'users.read',
            access: 'users:read',
            summary: 'Read a user',
            validate: { params: userId },
            returns: user,
            handler: ({ params }) => users.get(params.id)
        }),
        json({
            method: 'PUT',
            path: '/api/users/{id}',
            id: 'users.update',
            rehearses: true,
            fails: ['STEP_UP_REQUIRED', 'RATE_LIMITED'],
            access: 'users:write',
            summary: 'Change a user',
            description: 'A new password or role needs a fresh session, and ends the sessions of that user.',
            validate: { params: userId, payload: changedUser },
            returns: user,
            handler: (call) => users.update(call, call.params.id, call.payload)
        }),
        json({
            method: 'DELETE',
            path: '/api/users/{id}',
            id: 'users.remove',
            rehearses: true,
            access: 'users:write',
            summary: 'Remove a user',
            validate: { params: userId },
            returns: joi.valid(null),
            handler: async (call) => {
                await users.remove(call, call.params.id);
                return null;
            }
        }),
        json({
            method: 'DELETE',
            path: '/api/users/{id}/sessions',
            id: 'users.sessions.end',
            access: 'users:write',
            summary: 'Log a user out everywhere',
            validate: { params: userId },
            returns: joi.valid(null),
            handler: async (call) => {
                await users.endSessions(call, call.params.id);
                return null;
            }
        }),
        json({
            method: 'DELETE',
            path: '/api/users/{id}/totp',
            id: 'users.totp.remove',
            access: 'users:write',
            summary: 'Remove the second factor of a user',
            stepUp: true,
            sessionOnly: true,
            validate: { params: userId },
            returns: joi.valid(null),
            handler: async (call) => {
                await users.removeSecondFactor(call, call.params.id);
                return null;
            }
        })
    ];
}
