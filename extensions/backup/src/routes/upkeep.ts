/** Routes of the upkeep of repositories: checks, clean-ups, locks, sizes, and new passwords. */
import { errors, joi, reply } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './common.ts';

/** Registers the routes of upkeep below `/repositories/{id}`. */
export function registerUpkeepRoutes(ctx: Ctx, services: Services): void {
    registerCheck(ctx, services);
    registerPrune(ctx, services);
    registerUnlock(ctx, services);
    registerRefresh(ctx, services);
    registerStats(ctx, services);
    registerRotation(ctx, services);
    registerCopy(ctx, services);
}

function registerCheck(ctx: Ctx, { repositories, work }: Services): void {
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
            return reply.accepted(await work.checkRepository(row, payload.readPercent, actor));
        }
    });
}

function registerPrune(ctx: Ctx, { repositories, restic, snapshots }: Services): void {
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
                    await repositories.writing(row.id, async () =>
                        restic.run(await repositories.target(row), args, { signal, keepNone: true })
                    );
                    await snapshots.refresh(row, signal);
                    return { dryRun: payload.dryRun };
                })
            );
        }
    });
}

function registerUnlock(ctx: Ctx, { repositories, restic }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/unlock',
        id: 'unlockRepository',
        access: 'run',
        summary: 'Remove stale locks',
        description:
            'Those of programs that have ended. With `force`, which needs the permission `write`, all of them: be sure that no program uses the repository.',
        returns: joi.any(),
        ui: { title: 'Unlock', role: 'action' },
        audit: { action: 'unlock', resource: 'repository' },
        validate: {
            params: idParams,
            payload: joi.object({ force: joi.boolean().default(false).label('All of them') }).default({
                force: false
            })
        },
        async handler({ params, payload, actor }) {
            if (payload.force && !actor.can(`${ctx.name}:write`)) {
                throw errors.forbidden(`${ctx.name}:write`);
            }
            const row = await repositories.get(params.id);
            const args = ['unlock', ...(payload.force ? ['--remove-all'] : [])];
            await restic.run(await repositories.target(row), args, { timeoutSeconds: 25 });
            await repositories.see(row.id, null);
            return null;
        }
    });
}

function registerRefresh(ctx: Ctx, { repositories, snapshots }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/refresh',
        id: 'refreshRepository',
        access: 'run',
        summary: 'Read a repository anew',
        description:
            'A task: the list of snapshots, and the sizes. Its result is how many snapshots there are.',
        answers: 'task',
        returns: joi.any(),
        ui: { title: 'Refresh', role: 'action' },
        validate: { params: idParams },
        async handler({ params, actor }) {
            const row = await repositories.get(params.id);
            const options = { kind: 'refresh', title: `Refresh of ${row.name}`, access: 'run', actor };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => ({
                    snapshots: (await snapshots.refresh(row, signal)).length
                }))
            );
        }
    });
}

function registerStats(ctx: Ctx, { repositories, snapshots }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/repositories/{id}/stats',
        id: 'repositoryStats',
        access: 'read',
        summary: 'How much a repository holds, and who has locked it',
        ui: { title: 'Sizes' },
        returns: joi.object({
            snapshots: joi.number().integer().required().label('Snapshots'),
            logicalBytes: joi.number().integer().required().label('All snapshots restored').unit('byte'),
            storedBytes: joi.number().integer().required().label('Stored').unit('byte'),
            locks: joi
                .array()
                .items(
                    joi.object({
                        id: joi.string().required().label('Lock'),
                        at: joi.string().required().label('Since'),
                        hostname: joi.string().allow('').required().label('Machine'),
                        pid: joi.number().integer().required().label('Process'),
                        exclusive: joi.boolean().required().label('Exclusive')
                    })
                )
                .required()
                .label('Locks'),
            lastCheck: joi.any().label('Last check')
        }),
        validate: { params: idParams },
        handler: async ({ params, signal }) => snapshots.stats(await repositories.get(params.id), signal)
    });
}

function registerRotation(ctx: Ctx, { repositories, keys }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/rotate-key',
        id: 'rotateKey',
        access: 'secrets',
        stepUp: true,
        summary: 'Give a repository a new password',
        description:
            'A task. The panel makes and keeps the new password; after that no other one opens the repository. Take a new recovery kit afterwards.',
        answers: 'task',
        returns: joi.any(),
        ui: {
            title: 'New password',
            role: 'action',
            confirm: 'Make a new password? No copy of the old one opens the repository afterwards.'
        },
        audit: { action: 'rotate-key', resource: 'repository' },
        validate: { params: idParams },
        async handler({ params, actor }) {
            const row = await repositories.get(params.id);
            repositories.requireRemovable(row);
            repositories.requireFree(row.id);
            const options = {
                kind: 'rotate-key',
                title: `New password of ${row.name}`,
                access: 'secrets',
                actor
            };
            return reply.accepted(
                await ctx.task(options, ({ signal }) =>
                    repositories.writing(row.id, () => keys.rotate(row, signal))
                )
            );
        }
    });
}

function registerCopy(ctx: Ctx, { repositories, copies, snapshots }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/repositories/{id}/copy',
        id: 'copySnapshots',
        access: 'run',
        summary: 'Copy snapshots to another repository',
        description: 'A task. Its result is `copied`: what is there already is not copied again.',
        answers: 'task',
        returns: joi.any(),
        ui: { title: 'Copy', role: 'action' },
        audit: { action: 'copy', resource: 'repository' },
        validate: {
            params: idParams,
            payload: joi.object({
                to: joi
                    .number()
                    .integer()
                    .min(1)
                    .required()
                    .label('Repository')
                    .meta({ ui: { ref: 'backup.repositories' } }),
                snapshots: joi
                    .array()
                    .items(joi.string().pattern(/^[0-9a-f]{8,64}$/))
                    .min(1)
                    .max(1_000)
                    .label('Snapshots')
                    .description('Default: all of them')
            })
        },
        async handler({ params, payload, actor }) {
            const [from, to] = [await repositories.get(params.id), await repositories.get(payload.to)];
            if (from.id === to.id) {
                throw errors.invalid([{ path: 'to', message: 'to is another repository' }]);
            }
            const wanted = await wantedOf(from, payload.snapshots);
            const options = {
                kind: 'copy',
                title: `Copy of ${from.name} to ${to.name}`,
                access: 'run',
                actor
            };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => {
                    await repositories.writing(to.id, () => copies.copy(from, to, wanted, signal));
                    await snapshots.measure(to, signal);
                    return { copied: wanted.length };
                })
            );
        }
    });

    async function wantedOf(from: RepositoryRow, ids: readonly string[] | undefined) {
        return ids === undefined
            ? snapshots.list(from)
            : Promise.all(ids.map((id) => snapshots.get(from, id)));
    }
}
