/** Routes of databases and what belongs to one as a whole. */
import { errors, joi, pages, reply } from '@portico/sdk';

import type { DatabaseInfo } from '../kinds/kind.ts';
import { addressOf } from '../servers/connections.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { databaseParams, existingName, newName, serverParams } from './parameters.ts';

const databaseSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    owner: joi
        .string()
        .allow(null)
        .required()
        .label('Owner')
        .meta({ ui: { column: 4 } }),
    sizeBytes: joi
        .number()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 2 } }),
    tables: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Tables')
        .description('Null in lists of PostgreSQL')
        .meta({ ui: { column: 3 } }),
    charset: joi.string().allow(null).required().label('Encoding'),
    collation: joi.string().allow(null).required().label('Collation'),
    system: joi.boolean().required().label('Belongs to the server')
});
const word = () => joi.string().pattern(/^[A-Za-z0-9_.@-]{1,64}$/, 'a name of the server');
const guideSchema = joi.object({
    uri: joi.string().required().label('Address'),
    cli: joi.array().items(joi.string()).required().label('Command'),
    env: joi.record(joi.string()).required().label('Environment')
});
const extensionSchema = joi.object({
    name: joi.string().required().label('Name'),
    installed: joi.string().allow(null).required().label('Installed'),
    available: joi.string().allow(null).required().label('Available')
});

/** Registers the routes below `/servers/{id}/databases` but those of tables. */
export function registerDatabaseRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerOne(ctx, services);
    registerConnection(ctx, services);
    registerExtensions(ctx, services);
}

function viewOf({ name, owner, sizeBytes, tables, charset, collation, system }: DatabaseInfo): DatabaseInfo {
    return { name, owner, sizeBytes, tables, charset, collation, system };
}

function registerList(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases',
        id: 'databases',
        access: 'read',
        summary: 'Databases of a server',
        ui: { title: 'Databases', order: 1, label: 'name', empty: 'No database yet' },
        returns: joi.array().items(databaseSchema),
        validate: { params: serverParams, query: joi.object(pages.query()) },
        async handler({ params, query }) {
            const { kind, admin } = await target(params.id);
            const all = await admin.use(null, (session) => kind.databases.list(session));
            const { rows, page } = pages.sorted(all, query, ({ name }) => name);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/databases',
        id: 'createDatabase',
        access: 'write',
        summary: 'Make a database',
        answers: 'made',
        ui: { title: 'New database', primary: true },
        returns: databaseSchema,
        audit: { action: 'create', resource: 'database' },
        validate: {
            params: serverParams,
            payload: joi.object({
                name: newName(),
                owner: existingName()
                    .allow(null)
                    .label('Owner')
                    .description('An account that gets the level owner'),
                charset: word()
                    .allow(null)
                    .label('Encoding')
                    .meta({ ui: { advanced: true } }),
                collation: word()
                    .allow(null)
                    .label('Collation')
                    .meta({ ui: { advanced: true } })
            })
        },
        async handler({ params, payload, audit }) {
            const { name, owner = null, charset = null, collation = null } = payload;
            const { kind, admin } = await target(params.id);
            if (kind.databases.isSystem(name)) {
                throw errors.conflict('name');
            }
            audit({ resourceId: `${params.id}/${name}` });
            await kind.databases.create(admin, { name, owner, charset, collation });
            const made = viewOf(await kind.databases.get(admin, name));
            audit({ after: made });
            const path = `/api/plugins/${ctx.name}/servers/${params.id}/databases/${encodeURIComponent(name)}`;
            return reply.created(path, made);
        }
    });
}

function registerOne(ctx: Ctx, { target, forgetDatabase }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases/{db}',
        id: 'database',
        access: 'read',
        summary: 'One database',
        returns: databaseSchema,
        validate: { params: databaseParams },
        async handler({ params }) {
            const { kind, admin } = await target(params.id);
            return viewOf(await kind.databases.get(admin, params.db));
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}/databases/{db}',
        id: 'dropDatabase',
        access: 'write',
        summary: 'Drop a database',
        description: 'With all that is in it, and with what accounts may do there. `confirm` is its name.',
        answers: 'done',
        ui: { title: 'Drop', confirm: 'Drop this database with everything in it?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'database' },
        validate: {
            params: databaseParams,
            query: joi.object({ confirm: existingName().required().label('Name again') })
        },
        async handler({ params, query, audit }) {
            audit({ resourceId: `${params.id}/${params.db}` });
            const { kind, admin } = await target(params.id);
            if (query.confirm !== params.db) {
                throw errors.invalid([{ path: 'confirm', message: 'confirm is the name of the database' }]);
            }
            if (kind.databases.isSystem(params.db)) {
                throw errors.invalid([{ path: 'db', message: 'This database belongs to the server' }]);
            }
            await kind.databases.drop(admin, params.db);
            forgetDatabase(params.id, params.db);
            return null;
        }
    });
}

function registerConnection(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases/{db}/connection',
        id: 'connection',
        access: 'read',
        summary: 'How programs connect to a database',
        description: 'Without a password: that is shown once, when the account is made.',
        ui: { title: 'Connection', role: 'card' },
        returns: guideSchema,
        validate: {
            params: databaseParams,
            query: joi.object({ user: existingName().required().label('Account') })
        },
        async handler({ params, query }) {
            const { kind, server, admin } = await target(params.id);
            await kind.databases.get(admin, params.db);
            const guide = kind.guide({
                address: addressOf(server),
                database: params.db,
                username: query.user
            });
            return { uri: guide.uri, cli: [...guide.cli], env: { ...guide.env } };
        }
    });
}

function registerExtensions(ctx: Ctx, { target }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/databases/{db}/extensions',
        id: 'extensions',
        access: 'read',
        summary: 'Extensions of a database',
        ui: { title: 'Extensions', label: 'name', empty: 'This kind of server has none' },
        returns: joi.array().items(extensionSchema),
        validate: { params: databaseParams, query: joi.object(pages.query()) },
        async handler({ params, query }) {
            const { kind, admin } = await target(params.id);
            await kind.databases.get(admin, params.db);
            const { extensions } = kind;
            const all =
                extensions === null ? [] : await admin.use(params.db, (session) => extensions.list(session));
            const { rows, page } = pages.sorted(all, query, ({ name }) => name);
            return reply.list(
                rows.map(({ name, installed, available }) => ({ name, installed, available })),
                page
            );
        }
    });
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/databases/{db}/extensions',
        id: 'installExtension',
        access: 'write',
        summary: 'Install an extension',
        answers: 'done',
        ui: { title: 'Install' },
        returns: extensionSchema,
        audit: { action: 'install', resource: 'extension' },
        validate: {
            params: databaseParams,
            payload: joi.object({ name: existingName().required().label('Extension') })
        },
        async handler({ params, payload: { name }, audit }) {
            audit({ resourceId: `${params.id}/${params.db}/${name}` });
            const { kind, admin } = await target(params.id);
            const { extensions } = kind;
            await kind.databases.get(admin, params.db);
            if (extensions === null) {
                throw errors.invalid([{ path: 'name', message: 'This kind of server has no extensions' }]);
            }
            return admin.use(params.db, async (session) => {
                const find = async () => (await extensions.list(session)).find((each) => each.name === name);
                if ((await find()) === undefined) {
                    throw errors.notFound(`The server has no extension ${name}`);
                }
                await extensions.install(session, name);
                const { installed = null, available = null } = (await find()) ?? {};
                return { name, installed, available };
            });
        }
    });
}
