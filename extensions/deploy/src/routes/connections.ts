/** Routes of connections to hosts of repositories. */
import { errors, joi, pages, reply, type Value } from '@portico/sdk';

import type { Connection, ConnectionInput } from '../git/connections.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { nothing, versionOf } from './params.ts';

const secret = (label: string) => joi.string().min(1).max(20_000).label(label);
const name = () =>
    joi
        .string()
        .pattern(/^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$/)
        .label('Name')
        .meta({ ui: { column: 1 } });
const kind = () =>
    joi
        .choice({ key: 'A deploy key', token: 'A token', 'github-app': 'A GitHub App' })
        .label('Kind')
        .meta({ ui: { column: 2 } });
const host = () =>
    joi
        .string()
        .pattern(/^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/)
        .label('Host')
        .description('With the port where addresses name one')
        .example('github.com')
        .meta({ ui: { column: 3 } });
const number = () => joi.string().pattern(/^[A-Za-z0-9.]{1,64}$/);
const more = {
    username: joi
        .string()
        .pattern(/^[^\s:\p{C}]{1,100}$/u)
        .allow(null)
        .label('User')
        .description('Of a token; default `oauth2`, which GitHub and GitLab take'),
    appId: number().allow(null).label('App').description('Of a GitHub App'),
    installationId: number().allow(null).label('Installation').description('Of a GitHub App'),
    forge: joi
        .choice({ github: 'GitHub', gitlab: 'GitLab', gitea: 'Gitea' })
        .allow(null)
        .label('Forge')
        .description('Whose API it is: for lists of repositories, checks and comments'),
    apiUrl: joi
        .string()
        .uri({ scheme: ['https', 'http'] })
        .max(500)
        .allow(null)
        .label('Address of the API')
        .meta({ ui: { advanced: true } })
};
const inputs = {
    ...more,
    token: secret('Token'),
    privateKey: secret('Private key')
        .description('A key is made where none is given')
        .meta({ media: 'text/plain' })
};
const creation = joi.object({
    name: name().required(),
    kind: kind().required(),
    host: host().required(),
    ...inputs
});
const isSet = (label: string) =>
    joi
        .object({ set: joi.boolean().required() })
        .required()
        .label(label)
        .meta({ ui: { column: false } });
const connectionSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: joi
        .number()
        .integer()
        .required()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } }),
    name: name().required(),
    kind: kind().required(),
    host: host().required(),
    ...more,
    token: isSet('Token'),
    privateKey: isSet('Private key'),
    publicKey: joi
        .string()
        .allow(null)
        .required()
        .label('Public key')
        .description('For the settings of the repository'),
    hostKey: joi
        .string()
        .allow(null)
        .required()
        .label('Key of the host')
        .description('Pinned at the first use')
});
const shownOnly = ['id', 'publicKey'] as const;
const change = joi.object({
    version: joi
        .number()
        .integer()
        .label('Version')
        .meta({ ui: { widget: 'hidden' } }),
    name: name(),
    kind: kind(),
    host: host(),
    ...inputs,
    hostKey: joi.valid(null).label('Key of the host').description('Null: the next use pins it anew'),
    ...Object.fromEntries(shownOnly.map((field) => [field, joi.readOnly(joi.any())] as const))
});
const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Connection')
        .meta({ ui: { ref: 'deploy.connections' } })
});
const answerSchema = joi.object({
    ok: joi.boolean().required().label('Good'),
    message: joi.string().required().label('Message')
});

/** Declares the routes of connections to git servers. */
export function registerConnectionRoutes(ctx: Ctx, services: Services): void {
    registerReading(ctx, services);
    registerWriting(ctx, services);
    registerRepositories(ctx, services);
    registerEnds(ctx, services);
}

async function viewOf(
    { connections }: Services,
    { id, version, name: called, config }: Connection
): Promise<Value<typeof connectionSchema>> {
    const { publicKey, ...rest } = config;
    return {
        id,
        version,
        name: called,
        ...rest,
        token: { set: config.kind === 'token' },
        privateKey: { set: config.kind !== 'token' },
        publicKey,
        hostKey: config.kind === 'key' ? await connections.hostKey(id) : null
    };
}

/** Without the keys that a request left out. */
function said(input: object): ConnectionInput {
    return Object.fromEntries(
        Object.entries(input).filter(([, value]) => value !== undefined)
    ) as unknown as ConnectionInput; // its schema says so
}

function registerReading(ctx: Ctx, services: Services): void {
    const { connections } = services;
    ctx.route({
        method: 'GET',
        path: '/connections',
        id: 'connections',
        access: 'read',
        summary: 'Connections to hosts of repositories',
        ui: {
            title: 'Connections',
            label: 'name',
            order: 3,
            empty: 'No connection yet: public repositories need none'
        },
        validate: { query: joi.object(pages.query()) },
        returns: joi.array().items(connectionSchema),
        async handler({ query }) {
            const { rows, page } = pages.sorted(await connections.all(), query, ({ name: key }) => key);
            return reply.list(await Promise.all(rows.map((row) => viewOf(services, row))), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/connections/{id}',
        id: 'connection',
        access: 'read',
        summary: 'One connection',
        validate: { params },
        returns: connectionSchema,
        handler: async (request) => viewOf(services, await connections.get(request.params.id))
    });
}

function registerWriting(ctx: Ctx, services: Services): void {
    const { connections } = services;
    ctx.route({
        method: 'POST',
        path: '/connections',
        id: 'createConnection',
        access: 'write',
        summary: 'Make a connection',
        description: 'A `key` without `privateKey` is made: add its `publicKey` to the repository.',
        answers: 'made',
        ui: { title: 'New connection', role: 'action' },
        audit: { action: 'create', resource: 'connection' },
        validate: { payload: creation },
        returns: connectionSchema,
        async handler({ payload, audit }) {
            const made = await connections.add(said(payload));
            audit({ resourceId: made.id, after: { name: made.name, host: made.config.host } });
            return reply.created(
                `/api/plugins/${ctx.name}/connections/${made.id}`,
                await viewOf(services, made)
            );
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/connections/{id}',
        id: 'updateConnection',
        access: 'write',
        summary: 'Change a connection',
        description: 'Secrets that are left out stay, unless host or kind become another one.',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'connection' },
        validate: { params, payload: change },
        returns: connectionSchema,
        async handler({ payload, audit, ...request }) {
            const before = await connections.get(request.params.id);
            const { version, hostKey, ...input } = payload;
            versionOf(before, request, version);
            audit({ resourceId: before.id });
            const { publicKey: _publicKey, ...config } = before.config;
            const changed = await connections.replace(before, {
                ...config,
                ...said({ name: before.name, ...input })
            });
            if (hostKey === null) {
                await connections.forgetHostKey(before.id);
            }
            return viewOf(services, changed);
        }
    });
}

function registerRepositories(ctx: Ctx, { connections, forges }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/connections/{id}/repositories',
        id: 'repositories',
        access: 'read',
        tool: false, // the words leave this machine
        summary: 'Repositories that a connection reaches',
        description: 'As its forge lists them, at most a hundred.',
        ui: { title: 'Repositories', label: 'name', empty: 'It reaches no repository' },
        timeoutSeconds: 30,
        validate: {
            params,
            query: joi.object({ q: joi.string().allow('').max(200).default('').label('Name') })
        },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .allow('')
                    .required()
                    .label('Name')
                    .meta({ ui: { column: 1 } }),
                url: joi.string().allow('').required().label('Address'),
                branch: joi.string().allow('', null).required().label('Branch'),
                isPrivate: joi.boolean().required().label('Private')
            })
        ),
        async handler({ query, ...request }) {
            const access = await connections.forge(await connections.get(request.params.id));
            return [...(await forges.repositories(access, query.q))];
        }
    });
}

function registerEnds(ctx: Ctx, { connections, git, store }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/connections/{id}',
        id: 'deleteConnection',
        access: 'write',
        summary: 'Remove a connection',
        answers: 'done',
        ui: { title: 'Remove', role: 'action', confirm: 'Remove this connection?' },
        audit: { action: 'delete', resource: 'connection' },
        validate: { params },
        returns: nothing,
        async handler({ audit, ...request }) {
            const { id, name: called } = await connections.get(request.params.id);
            const users = (await store.projects()).filter(({ config }) => config.source.connection === id);
            if (users.length > 0) {
                const names = users.map((project) => project.name);
                throw errors.inUse(names, `Projects use this connection: ${names.join(', ')}`);
            }
            audit({ resourceId: id, before: { name: called } });
            await connections.remove(id);
            return null;
        }
    });
    ctx.route({
        method: 'POST',
        path: '/connections/{id}/test',
        id: 'testConnection',
        access: 'write',
        effect: 'read',
        summary: 'Ask a repository by a connection',
        answers: 'done',
        ui: { title: 'Test', role: 'action' },
        timeoutSeconds: 90,
        validate: {
            params,
            payload: joi.object({ url: joi.string().max(2_000).required().label('Address of a repository') })
        },
        returns: answerSchema,
        async handler({ payload, signal, ...request }) {
            const { id } = await connections.get(request.params.id);
            const remote = await connections.remote({ url: payload.url, connection: id });
            try {
                const head = await git.head(remote, 'HEAD', signal);
                return { ok: true, message: head === null ? 'It is empty' : `Its head is ${head}` };
            } catch (error) {
                return { ok: false, message: (error as Error).message };
            }
        }
    });
}
