/** Routes of the past of servers that the panel runs. */
import { joi, reply, taskSchema } from '@portico/sdk';

import { nameField } from '../servers/input.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { serverParams } from './parameters.ts';

const time = () => joi.string().isoDate();
const reachSchema = joi.object({
    enabled: joi.boolean().required().label('Keeps its past'),
    from: time().allow(null).required().label('Oldest time'),
    to: time().allow(null).required().label('Newest time'),
    bytes: joi.number().integer().required().label('Size').unit('byte'),
    message: joi
        .string()
        .allow(null)
        .required()
        .label('Message')
        .description('What it waits for, or what is wrong')
});

/** Registers `point-in-time`: the times that a server can go back to, and new servers that are as they were then. */
export function registerPointInTimeRoutes(ctx: Ctx, { pointInTime }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/servers/{id}/point-in-time',
        id: 'pointInTime',
        access: 'read',
        summary: 'Times that a server can go back to',
        ui: { title: 'Past' },
        returns: reachSchema,
        validate: { params: serverParams },
        async handler({ params }) {
            const { from, to, ...rest } = await pointInTime.reach(params.id);
            return { ...rest, from: from?.toISOString() ?? null, to: to?.toISOString() ?? null };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/point-in-time/restore',
        id: 'restorePointInTime',
        access: 'write',
        summary: 'Make a new server as another one was',
        description:
            'It has the databases and accounts of that time; the other server stays as it is. MariaDB counts in whole seconds: what was written in the second of the time is left out.',
        answers: 'task',
        ui: { title: 'Restore a time', role: 'action' },
        returns: taskSchema,
        audit: { action: 'restore', resource: 'server' },
        validate: {
            params: serverParams,
            payload: joi.object({
                at: time().required().label('Time'),
                name: nameField.required()
            })
        },
        async handler({ params, payload: { at, name }, actor, audit }) {
            audit({ resourceId: params.id, after: { at, name } });
            return reply.accepted(await pointInTime.restore(params.id, { at: new Date(at), name }, actor));
        }
    });
}
