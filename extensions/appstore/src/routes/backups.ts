/** Routes of backups of apps. */
import { joi, reply, taskSchema } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { appName, installedParams } from './schemas.ts';

/** Registers the routes of backups. */
export function registerBackupRoutes(ctx: Ctx, services: Services): void {
    registerBackups(ctx, services);
    registerRestore(ctx, services);
}

const backupsSchema = joi.array().items(
    joi.object({
        id: joi
            .number()
            .required()
            .label('Backup')
            .meta({ ui: { column: 1 } }),
        at: joi
            .string()
            .isoDate()
            .required()
            .label('Time')
            .meta({ ui: { column: 2 } }),
        version: joi
            .string()
            .required()
            .label('Version')
            .meta({ ui: { column: 3 } }),
        bytes: joi
            .number()
            .required()
            .label('Size')
            .unit('byte')
            .meta({ ui: { column: 4 } }),
        because: joi
            .string()
            .required()
            .label('Because')
            .meta({ ui: { column: 5 } })
    })
);

function registerBackups(ctx: Ctx, { store, backups }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/installed/{name}/backups',
        id: 'backups',
        access: 'read',
        summary: 'Backups of an app, newest first',
        ui: { title: 'Backups', empty: 'No backup yet' },
        returns: backupsSchema,
        validate: { params: installedParams },
        async handler({ params: { name } }) {
            await store.get(name);
            return (await store.backups(name)).map(({ id, madeAt, version, bytes, because }) => ({
                ...{ id, version, bytes, because },
                at: new Date(madeAt).toISOString()
            }));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/installed/{name}/backups',
        id: 'createBackup',
        access: 'write',
        summary: 'Back the data of an app up',
        description: 'The app is stopped for it, unless it says that this is not needed.',
        answers: 'task',
        ui: { title: 'Back up', role: 'action' },
        returns: taskSchema,
        audit: { action: 'backup', resource: 'app' },
        validate: { params: installedParams },
        async handler({ params: { name }, actor, audit }) {
            audit({ resourceId: name });
            return reply.accepted(await backups.begin(name, actor));
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/installed/{name}/backups/{id}',
        id: 'removeBackup',
        access: 'write',
        summary: 'Remove a backup of an app',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this backup for good?' },
        returns: joi.any(),
        audit: { action: 'delete', resource: 'backup' },
        validate: {
            params: joi.object({
                name: appName.required().meta({ ui: { ref: 'appstore.installed' } }),
                id: joi.number().integer().min(1).required().label('Backup')
            })
        },
        async handler({ params: { name, id }, audit }) {
            audit({ resourceId: name, after: { backup: id } });
            await backups.remove(name, id);
            return null;
        }
    });
}

function registerRestore(ctx: Ctx, { backups }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/installed/{name}/restore',
        id: 'restoreApp',
        access: 'write',
        summary: 'Bring the data of a backup back',
        description: 'The version stays. What is there now is backed up before.',
        answers: 'task',
        ui: { title: 'Restore', confirm: 'Replace the data of this app?' },
        returns: taskSchema,
        audit: { action: 'restore', resource: 'app' },
        validate: {
            params: installedParams,
            payload: joi.object({ backup: joi.number().integer().min(1).required().label('Backup') })
        },
        async handler({ params: { name }, payload, actor, audit }) {
            audit({ resourceId: name, after: payload });
            return reply.accepted(await backups.restore(name, payload.backup, actor));
        }
    });
}
