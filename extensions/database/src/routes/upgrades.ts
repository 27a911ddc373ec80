/** Routes of upgrades and of the way back. */
import { errors, joi, reply, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { serverParams } from './parameters.ts';

/** Registers upgrade, rollback, and the removal of what an upgrade left. */
export function registerUpgradeRoutes(ctx: Ctx, services: Services): void {
    registerUpgrade(ctx, services);
    registerRollback(ctx, services);
    registerPrevious(ctx, services);
}

function registerUpgrade(ctx: Ctx, { upgrades }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/upgrade',
        id: 'upgradeServer',
        access: 'write',
        summary: 'Take a server that the panel runs to a newer release',
        description:
            'The server does not answer meanwhile. Databases, accounts, passwords and options stay; the old data stay, too, for a rollback. When it fails, the old server serves again as before.',
        answers: 'task',
        ui: {
            title: 'Upgrade',
            role: 'action',
            confirm: 'Upgrade this server? What uses its databases fails until the upgrade is done.'
        },
        returns: taskSchema,
        audit: { action: 'upgrade', resource: 'server' },
        validate: {
            params: serverParams,
            payload: joi.object({
                release: joi
                    .string()
                    .max(20)
                    .required()
                    .label('Release')
                    .description(
                        'Newer than the present one, and installed; in a container a number such as 11.4'
                    )
            })
        },
        async handler({ params: { id }, payload: { release }, actor, audit }) {
            audit({ resourceId: id, after: { release } });
            return reply.accepted(await upgrades.upgrade(id, release, actor));
        }
    });
}

function registerRollback(ctx: Ctx, { upgrades, servers }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/rollback',
        id: 'rollbackServer',
        access: 'write',
        summary: 'Take a server back to its release and data of before the upgrade',
        description:
            'What was written since the upgrade is lost: databases, accounts and passwords are as they were when it began. `confirm` is the name of the server.',
        answers: 'task',
        ui: {
            title: 'Roll back',
            role: 'action',
            confirm: 'Go back to the data of before the upgrade? What was written since is lost.'
        },
        returns: taskSchema,
        audit: { action: 'rollback', resource: 'server' },
        validate: {
            params: serverParams,
            payload: joi.object({ confirm: joi.string().max(100).required().label('Name again') })
        },
        async handler({ params: { id }, payload: { confirm }, actor, audit }) {
            audit({ resourceId: id });
            if (confirm !== (await servers.get(id)).name) {
                throw errors.invalid([{ path: 'confirm', message: 'confirm is the name of the server' }]);
            }
            return reply.accepted(await upgrades.rollBack(id, actor));
        }
    });
}

function registerPrevious(ctx: Ctx, { upgrades }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}/previous',
        id: 'removePrevious',
        access: 'write',
        summary: 'Remove the data of before an upgrade',
        description: 'Then there is no way back.',
        answers: 'task',
        ui: {
            title: 'Remove previous data',
            role: 'action',
            confirm: 'Remove the data of before the upgrade? Then there is no way back.'
        },
        returns: taskSchema,
        audit: { action: 'remove-previous', resource: 'server' },
        validate: { params: serverParams },
        async handler({ params: { id }, actor, audit }) {
            audit({ resourceId: id });
            return reply.accepted(await upgrades.forget(id, actor));
        }
    });
}
