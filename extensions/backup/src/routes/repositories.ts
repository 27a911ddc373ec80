/** Routes of repositories. */
import { joi, reply } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import { pluginErrors } from '../errors.ts';
import type { CheckResult } from '../repositories/repositories.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams, versionOf } from './common.ts';

const name = joi
    .string()
    .min(1)
    .max(100)
    .label('Name')
    .meta({ ui: { column: 1 } });
const appendOnly = joi
    .boolean()
    .label('Append only')
    .description('Nothing in it is removed: no keep rules, no clean-up');
const path = joi
    .string()
    .pattern(/^\/[^\0]*$/)
    .max(4_000)
    .label('Folder')
    .description('Absolute, on this machine');

const newRepository = joi.object({
    name: name.required(),
    type: joi.choice({ local: 'A folder of this machine' }).required().label('Type'),
    mode: joi
        .choice({ create: 'Make a new one', open: 'Open an existing one' })
        .default('create')
        .label('Mode'),
    path: path.required(),
    password: joi
        .secret()
        .min(8)
        .max(1_000)
        .label('Password')
        .description('Encrypts it; default: one that is made. Without it nothing comes back, so keep a copy'),
    appendOnly: appendOnly.default(false)
});
const ignored = joi.readOnly(joi.any());
const changedRepository = joi.object({
    name,
    appendOnly,
    version: joi.number().integer().min(1).label('Version').description('Acts as If-Match'),
    id: ignored,
    type: ignored,
    path: ignored,
    createdAt: ignored,
    lastCheck: ignored,
    secretsSet: ignored
});
const repositoryView = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: joi.number().integer().required().label('Version'),
    name: name.required(),
    type: joi.string().required().label('Type'),
    path: path.required(),
    appendOnly: appendOnly.required(),
    secretsSet: joi.array().items(joi.string()).required().label('Secrets that are set'),
    lastCheck: joi.any().label('Last check'),
    createdAt: joi.string().required().label('Made')
});

/** Registers the routes below `/repositories`, but those of snapshots. */
export function registerRepositoryRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerOne(ctx, services);
    registerCare(ctx, services);
    registerUpkeep(ctx, services);
}

function registerList(ctx: Ctx, { repositories }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/repositories',
        id: 'repositories',
        access: 'read',
        summary: 'List the repositories',
        ui: { title: 'Repositories', label: 'name', order: 2, empty: 'No repository yet' },
        returns: joi.array().items(repositoryView),
        handler: async () => (await repositories.list()).map(viewOf)
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
            const { type: _type, ...input } = payload;
            return reply.accepted(
                await ctx.task(
                    { kind: 'repository', title: `Repository ${input.name}`, access: 'write', actor },
                    async ({ signal }) => ({ repositoryId: (await repositories.create(input, signal)).id })
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
            const row = await repositories.update(params.id, payload, versionOf(ifMatch, payload.version));
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

function registerCare(ctx: Ctx, { repositories, restic }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/check',
        id: 'checkRepository',
        access: 'run',
        summary: 'Check a repository',
        answers: 'task',
        returns: joi.any(),
        ui: { title: 'Check', role: 'action' },
        validate: {
            params: idParams,
            payload: joi.object({
                readPercent: joi
                    .number()
                    .integer()
                    .min(0)
                    .max(100)
                    .default(0)
                    .label('Data read')
                    .unit('percent')
            })
        },
        async handler({ params, payload, actor }) {
            const row = await repositories.get(params.id);
            repositories.requireFree(row.id);
            const options = { kind: 'check', title: `Check of ${row.name}`, access: 'run', actor };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => {
                    const found = await repositories.writing(row.id, () =>
                        repositories.check(row, payload.readPercent, signal)
                    );
                    if (!found.ok) {
                        throw pluginErrors.CHECK_FAILED({ message: found.message ?? '' });
                    }
                    return found;
                })
            );
        }
    });
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/prune',
        id: 'pruneRepository',
        access: 'write',
        summary: 'Remove data that no snapshot needs',
        answers: 'task',
        returns: joi.any(),
        ui: { title: 'Clean up', role: 'action' },
        validate: {
            params: idParams,
            payload: joi.object({ dryRun: joi.boolean().default(false).label('Only try') })
        },
        async handler({ params, payload, actor }) {
            const row = await repositories.get(params.id);
            repositories.requireRemovable(row);
            repositories.requireFree(row.id);
            const args = ['prune', ...(payload.dryRun ? ['--dry-run'] : [])];
            const options = { kind: 'prune', title: `Clean-up of ${row.name}`, access: 'write', actor };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => {
                    const target = await repositories.target(row);
                    await repositories.writing(row.id, () => restic.run(target, args, { signal }));
                    return { dryRun: payload.dryRun };
                })
            );
        }
    });
}

function registerUpkeep(ctx: Ctx, { repositories, restic, snapshots }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/unlock',
        id: 'unlockRepository',
        access: 'run',
        summary: 'Remove stale locks',
        description: 'Those of programs that have ended.',
        returns: joi.any(),
        ui: { title: 'Unlock', role: 'action' },
        validate: { params: idParams },
        async handler({ params }) {
            const row = await repositories.get(params.id);
            await restic.run(await repositories.target(row), ['unlock'], { timeoutSeconds: 25 });
            return null;
        }
    });
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/refresh',
        id: 'refreshRepository',
        access: 'run',
        summary: 'Read the list of snapshots anew',
        returns: joi.object({ snapshots: joi.number().integer().required().label('Snapshots') }),
        ui: { title: 'Refresh', role: 'action' },
        validate: { params: idParams },
        async handler({ params }) {
            const row = await repositories.get(params.id);
            snapshots.forget(row.id);
            return { snapshots: (await snapshots.list(row)).length };
        }
    });
}

function viewOf({
    id,
    version,
    name: label,
    path: place,
    appendOnly: append,
    lastCheck,
    createdAt
}: RepositoryRow) {
    return {
        id,
        version,
        name: label,
        type: 'local',
        path: place,
        appendOnly: Boolean(append),
        secretsSet: ['password'],
        lastCheck: lastCheck === null ? null : (JSON.parse(lastCheck) as CheckResult),
        createdAt: new Date(createdAt).toISOString()
    };
}
