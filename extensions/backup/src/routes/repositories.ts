/** Routes of repositories. */
import { joi, pages, reply } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import { changedRepository, commonFields, newRepository } from '../repositories/input.ts';
import { type CheckResult, connectionIn, statusOf } from '../repositories/stored.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './common.ts';

const word = (label: string) => joi.string().label(label);
const repositoryView = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: joi.number().integer().required().label('Version'),
    name: commonFields.name.required(),
    type: word('Type').required(),
    path: word('Folder').allow(''),
    host: word('Machine'),
    port: joi.number().integer().label('Port'),
    username: word('User'),
    hostKey: word('Key of the machine'),
    endpoint: word('Server'),
    bucket: word('Bucket'),
    prefix: word('Prefix'),
    region: word('Region'),
    accessKeyId: word('Access key'),
    pathStyle: joi.boolean().label('Bucket in the path'),
    ca: word('Trusted certificates'),
    url: word('Address'),
    remote: joi.object({ type: word('Type').required() }).label('Remote'),
    appendOnly: commonFields.appendOnly.required(),
    uploadKiBps: joi.number().integer().allow(null).required().label('Most upload').unit('KiB/s'),
    downloadKiBps: joi.number().integer().allow(null).required().label('Most download').unit('KiB/s'),
    state: joi
        .choice({ ready: 'Ready', locked: 'Locked', unreachable: 'Not reachable', damaged: 'Damaged' })
        .required()
        .label('State')
        .description('As it was seen last'),
    message: joi.string().allow(null).required().label('Message'),
    snapshots: joi.number().integer().allow(null).required().label('Snapshots'),
    storedBytes: joi.number().integer().allow(null).required().label('Stored').unit('byte'),
    secretsSet: joi.array().items(joi.string()).required().label('Secrets that are set'),
    lastCheck: joi.any().label('Last check'),
    createdAt: joi.string().required().label('Made')
});

/** Registers the routes below `/repositories`, but those of snapshots. */
export function registerRepositoryRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerOne(ctx, services);
    registerTest(ctx, services);
}

function registerList(ctx: Ctx, { repositories, snapshots }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/repositories',
        id: 'repositories',
        access: 'read',
        summary: 'List the repositories',
        ui: { title: 'Repositories', label: 'name', order: 2, empty: 'No repository yet' },
        returns: joi.array().items(repositoryView),
        validate: { query: joi.object(pages.query(100)) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await repositories.list(), query, ({ id }) => id);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/repositories',
        id: 'createRepository',
        access: 'write',
        summary: 'Make or open a repository',
        description: 'A task: it takes some seconds. Its result is `repositoryId`.',
        answers: 'task',
        returns: joi.any(),
        audit: { action: 'create', resource: 'repository' },
        validate: { payload: newRepository },
        async handler({ payload, actor }) {
            await repositories.draft(payload); // so that what is wrong is said at once
            return reply.accepted(
                await ctx.task(
                    { kind: 'repository', title: `Repository ${payload.name}`, access: 'write', actor },
                    async ({ signal }) => {
                        const row = await repositories.create(payload, signal);
                        await (payload.mode === 'open' ? snapshots.refresh(row, signal) : null);
                        return { repositoryId: row.id };
                    }
                )
            );
        }
    });
}

function registerOne(ctx: Ctx, { repositories }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/repositories/{id}',
        id: 'repository',
        access: 'read',
        summary: 'One repository',
        returns: repositoryView,
        validate: { params: idParams },
        async handler({ params }) {
            const row = await repositories.get(params.id);
            return reply.with(viewOf(row), { version: row.version });
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/repositories/{id}',
        id: 'changeRepository',
        access: 'write',
        summary: 'Change a repository',
        description: 'Type and place stay as they are.',
        returns: repositoryView,
        audit: { action: 'update', resource: 'repository' },
        validate: { params: idParams, payload: changedRepository },
        async handler({ params, payload, ifMatch }) {
            const row = await repositories.update(params.id, payload, ifMatch);
            return reply.with(viewOf(row), { version: row.version });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/repositories/{id}',
        id: 'forgetRepository',
        access: 'write',
        summary: 'Forget a repository',
        description: 'What is in it stays, and can be opened again with its password.',
        returns: joi.any(),
        ui: { title: 'Forget', confirm: 'Forget this repository? Its files stay.' },
        audit: { action: 'delete', resource: 'repository' },
        validate: { params: idParams },
        async handler({ params }) {
            await repositories.remove(params.id);
            return null;
        }
    });
}

function registerTest(ctx: Ctx, { repositories }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/test',
        id: 'testRepository',
        access: 'write',
        summary: 'Try a repository without storing it',
        description:
            'A task. Its result is `reachable`, `opens` and `message`: where no repository was made yet, the target is reachable and does not open.',
        answers: 'task',
        returns: joi.any(),
        audit: { action: 'test', resource: 'repository' },
        validate: { payload: newRepository },
        async handler({ payload, actor }) {
            await repositories.draft(payload);
            return reply.accepted(
                await ctx.task(
                    { kind: 'test', title: `Test of ${payload.name}`, access: 'write', actor },
                    ({ signal }) => repositories.test(payload, signal)
                )
            );
        }
    });
}

function viewOf(row: RepositoryRow) {
    const { readAt: _readAt, isUsed: _isUsed, ...status } = statusOf(row);
    const { remoteType, obscured: _obscured, ...connection } = connectionIn(row);
    return {
        id: row.id,
        version: row.version,
        name: row.name,
        ...connection,
        ...(remoteType === undefined ? {} : { remote: { type: remoteType } }),
        appendOnly: Boolean(row.appendOnly),
        uploadKiBps: row.uploadKiBps,
        downloadKiBps: row.downloadKiBps,
        ...status,
        secretsSet: row.connection === null ? ['password'] : (JSON.parse(row.secretsSet) as string[]),
        lastCheck: row.lastCheck === null ? null : (JSON.parse(row.lastCheck) as CheckResult),
        createdAt: new Date(row.createdAt).toISOString()
    };
}
