/** Routes of sessions. */
import { joi } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { scopeOf } from './approvals.ts';

const sessionSchema = joi.object({
    id: joi.string().required().label('Session'),
    username: joi
        .string()
        .allow('')
        .required()
        .label('User')
        .meta({ ui: { column: 1 } }),
    client: joi
        .string()
        .allow(null, '')
        .required()
        .label('Client')
        .meta({ ui: { column: 2 } }),
    protocol: joi.string().allow(null).required().label('Revision'),
    startedAt: joi.string().isoDate().required().label('Began'),
    lastSeenAt: joi.string().isoDate().required().label('Last seen')
});

/** Registers the routes below `/sessions`. */
export function registerSessionRoutes(ctx: Ctx, { sessions }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/sessions',
        id: 'sessions',
        access: 'use',
        summary: 'Sessions of agents',
        returns: joi.array().items(sessionSchema),
        ui: { title: 'Sessions', label: 'client', order: 5, empty: 'No session is open' },
        description:
            'Newest first. With the permission `approve`, those of all users. Clients of the revision 2026-07-28 have none.',
        handler: ({ actor }) => [...sessions.list(scopeOf(actor))]
    });
    ctx.route({
        method: 'DELETE',
        path: '/sessions/{id}',
        id: 'endSession',
        access: 'use',
        // It ends what this plugin holds for the caller and changes nothing of the panel: viewers may, too, as by the protocol.
        effect: 'read',
        summary: 'End a session',
        answers: 'done',
        tool: false,
        ui: { title: 'End', role: 'action', confirm: 'End this session?' },
        audit: { action: 'end', resource: 'agent-sessions' },
        validate: { params: joi.object({ id: joi.string().guid().required().label('Session') }) },
        returns: joi.object({ id: joi.string().required().label('Session') }),
        async handler({ actor, params: { id }, audit }) {
            audit({ resourceId: id });
            await sessions.end(id, scopeOf(actor));
            return { id };
        }
    });
}
