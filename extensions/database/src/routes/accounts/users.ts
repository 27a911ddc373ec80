/** Routes of the accounts of a server. */
import { errors, joi, pages, reply } from '@portico/sdk';

import { makePassword } from '../../credentials/passwords.ts';
import type { AccountInfo, AccountName, Grant } from '../../kinds/kind.ts';
import type { Target } from '../../kinds/target.ts';
import { isAllowedHost } from '../../managed/network/remote.ts';
import { isContained } from '../../servers/origin.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { existingName, nameInPath, newName, serverId, serverParams } from '../parameters.ts';

const levelWords = {
    read: 'Read rows',
    write: 'Read and change rows',
    owner: 'Change tables as well'
} as const;
const grantsSchema = joi.array().items(
    joi.object({
        database: existingName().required().label('Database'),
        level: joi.choice(levelWords).required().label('Level')
    })
);
const userFields = {
    user: joi
        .string()
        .required()
        .label('Account')
        .meta({ ui: { column: 1 } }),
    username: joi.string().allow('').required().label('Name'),
    host: joi.string().allow(null, '').required().label('Comes from'),
    locked: joi
        .boolean()
        .required()
        .label('Locked')
        .meta({ ui: { column: 3 } }),
    grants: grantsSchema
        .required()
        .label('May use')
        .meta({ ui: { column: 2 } }),
    system: joi.boolean().required().label('Belongs to the server')
};
const userSchema = joi.object(userFields);
const madeSchema = joi.object({
    ...userFields,
    password: joi.string().required().label('Password').description('Shown this once')
});
const params = joi.object({ id: serverId, user: nameInPath().label('Account') });
const host = joi
    .string()
    .pattern(/^[A-Za-z0-9.:%_/-]{1,255}$/, 'a host, an address, or a pattern with %')
    .label('Comes from')
    .description(
        'MySQL only; default: localhost, or % for a server in a container, which hears only of the network that it is in'
    );
const locked = joi.boolean().label('Locked');
const grants = grantsSchema.max(500).label('May use');

/** Registers the routes below `/servers/{id}/users`. */
export function registerUserRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerCreation(ctx, services);
    registerChanges(ctx, services);
    registerRotation(ctx, services);
}

interface UserView {
    user: string;
    username: string;
    host: string | null;
    locked: boolean;
    grants: { database: string; level: Grant['level'] }[];
    system: boolean;
}

function viewOf({ kind }: Target, account: AccountInfo): UserView {
    const { username, host: from, locked: isLocked, grants: all, system } = account;
    return {
        user: kind.accounts.format(account),
        username,
        host: from,
        locked: isLocked,
        grants: all.map(({ database, level }) => ({ database, level })),
        system
    };
}

/** @throws NOT_FOUND 40400 */
async function find({ kind, admin }: Target, name: string): Promise<AccountInfo> {
    const wanted = kind.accounts.format(kind.accounts.parse(name));
    const found = (await kind.accounts.list(admin)).find((each) => kind.accounts.format(each) === wanted);
    if (found === undefined) {
        throw errors.notFound(`There is no account ${wanted}`);
    }
    return found;
}

/** @throws VALIDATION_FAILED 40001 for an account of the server itself */
async function findOwn(target: Target, name: string): Promise<AccountInfo> {
    const found = await find(target, name);
    if (found.system) {
        throw errors.invalid([
            { path: 'user', message: 'This account belongs to the server or to the panel' }
        ]);
    }
    return found;
}

/** @throws VALIDATION_FAILED 40001 for a right on a database of the server itself, or two on one */
function checkGrants({ kind }: Target, all: readonly Grant[]): void {
    for (const [index, { database }] of all.entries()) {
        if (kind.databases.isSystem(database)) {
            throw errors.invalid([{ path: `grants.${index}`, message: `${database} belongs to the server` }]);
        }
        if (all.findIndex((other) => other.database === database) !== index) {
            throw errors.invalid([{ path: `grants.${index}`, message: `${database} has two levels` }]);
        }
    }
}

function registerReads(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/users',
        id: 'users',
        access: 'read',
        summary: 'Accounts of a server',
        ui: { title: 'Accounts', order: 2, label: 'user' },
        returns: joi.array().items(userSchema),
        validate: { params: serverParams, query: joi.object(pages.query()) },
        async handler({ params: { id }, query }) {
            const found = await target(id);
            const all = await found.kind.accounts.list(found.admin);
            const { rows, page } = pages.sorted(all, query, found.kind.accounts.format);
            return reply.list(
                rows.map((account) => viewOf(found, account)),
                page
            );
        }
    });
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/users/{user}',
        id: 'user',
        access: 'read',
        summary: 'One account',
        returns: userSchema,
        validate: { params },
        async handler({ params: { id, user } }) {
            const found = await target(id);
            return viewOf(found, await find(found, user));
        }
    });
}

/** @throws VALIDATION_FAILED 40001 for an account of a server that is open to some networks, and to no other */
async function mustBeAllowed(
    managedRows: Services['managedRows'],
    { server }: Target,
    { host: from }: AccountName
): Promise<void> {
    const managed = server.mode === 'managed' ? (await managedRows.get(server.id)).managed : null;
    if (managed?.remote === true && from !== null && !isAllowedHost(from, managed.allow)) {
        throw errors.invalid([
            { path: 'host', message: `Only these networks reach the server: ${managed.allow.join(', ')}` }
        ]);
    }
}

function registerCreation(ctx: Ctx, { target, managedRows }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/users',
        id: 'createUser',
        access: 'secrets',
        summary: 'Make an account',
        description: 'The panel makes the password and shows it in this answer only.',
        answers: 'made',
        secret: true,
        ui: { title: 'New account', primary: true },
        returns: madeSchema,
        audit: { action: 'create', resource: 'user' },
        validate: {
            params: serverParams,
            payload: joi.object({ username: newName(), host, grants, locked })
        },
        async handler({ params: { id }, payload, audit }) {
            const found = await target(id);
            const { kind, admin } = found;
            const account = nameOf(found, payload.username, payload.host);
            const user = kind.accounts.format(account);
            audit({ resourceId: `${id}/${user}` });
            checkGrants(found, payload.grants ?? []);
            await mustBeAllowed(managedRows, found, account);
            const password = makePassword();
            await kind.accounts.create(admin, account, password);
            try {
                await kind.accounts.setGrants(admin, account, payload.grants ?? []);
                await kind.accounts.setLocked(admin, account, payload.locked ?? false);
            } catch (error) {
                await kind.accounts.drop(admin, account);
                throw error;
            }
            const view = viewOf(found, await find(found, user));
            audit({ after: view });
            const path = `/api/plugins/${ctx.name}/servers/${id}/users/${encodeURIComponent(user)}`;
            return reply.created(path, { ...view, password });
        }
    });
}

/** @throws VALIDATION_FAILED 40001 for a name that only the server or the panel may use */
function nameOf({ kind, admin, server }: Target, username: string, from: string | undefined): AccountName {
    if (/^(pg_|portico)/i.test(username) || username === admin.username) {
        throw errors.invalid([
            { path: 'username', message: 'This name belongs to the server or to the panel' }
        ]);
    }
    if (kind.name === 'postgresql') {
        if (from !== undefined) {
            throw errors.invalid([{ path: 'host', message: 'Accounts of PostgreSQL have no host' }]);
        }
        return { username, host: null };
    }
    return { username, host: from ?? (isContained(server) ? '%' : 'localhost') };
}

function registerChanges(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'PUT',
        path: '/servers/{id}/users/{user}',
        id: 'updateUser',
        access: 'secrets',
        summary: 'Change an account',
        description: 'What is not sent stays. `grants` replaces all levels.',
        answers: 'done',
        ui: { title: 'Change' },
        returns: userSchema,
        audit: { action: 'update', resource: 'user' },
        validate: {
            params,
            payload: joi.object({
                grants,
                locked,
                user: joi.readOnly(joi.any()),
                username: joi.readOnly(joi.any()),
                host: joi.readOnly(joi.any()),
                system: joi.readOnly(joi.any())
            })
        },
        async handler({ params: { id, user }, payload, audit }) {
            const found = await target(id);
            const { kind, admin } = found;
            const before = await findOwn(found, user);
            audit({ resourceId: `${id}/${kind.accounts.format(before)}`, before: viewOf(found, before) });
            if (payload.grants !== undefined) {
                checkGrants(found, payload.grants);
                await kind.accounts.setGrants(admin, before, payload.grants);
            }
            if (payload.locked !== undefined) {
                await kind.accounts.setLocked(admin, before, payload.locked);
            }
            const view = viewOf(found, await find(found, user));
            audit({ after: view });
            return view;
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}/users/{user}',
        id: 'removeUser',
        access: 'secrets',
        summary: 'Remove an account',
        description: 'What it owns goes to the owner of its database.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this account? Programs that use it lose their login.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'user' },
        validate: { params },
        async handler({ params: { id, user }, audit }) {
            const found = await target(id);
            const account = await findOwn(found, user);
            audit({ resourceId: `${id}/${user}`, before: viewOf(found, account) });
            await found.kind.accounts.drop(found.admin, account);
            return null;
        }
    });
}

function registerRotation(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/users/{user}/rotate',
        id: 'rotateUser',
        access: 'secrets',
        stepUp: true,
        summary: 'Renew the password of an account',
        description: 'The panel makes the password and shows it in this answer only.',
        answers: 'done',
        secret: true,
        ui: {
            title: 'Renew password',
            role: 'action',
            confirm: 'Renew the password? The old one stops working.'
        },
        returns: madeSchema,
        audit: { action: 'rotate', resource: 'user' },
        validate: { params },
        async handler({ params: { id, user }, audit }) {
            const found = await target(id);
            const account = await findOwn(found, user);
            audit({ resourceId: `${id}/${user}` });
            const password = makePassword();
            await found.kind.accounts.setPassword(found.admin, account, password);
            return { ...viewOf(found, account), password };
        }
    });
}
