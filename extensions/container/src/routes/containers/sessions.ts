/** Routes of terminals in containers. */
import { isFailure, joi, reply, type Socket } from '@portico/sdk';

import type { SessionInput } from '../../containers/sessions.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { containerParams } from '../fields.ts';

/** Registers the route that issues a ticket, and the socket of a session. */
export function registerSessionRoutes(ctx: Ctx, services: Services): void {
    registerTicket(ctx, services);
    registerSocket(ctx, services);
}

function registerTicket(ctx: Ctx, { sessions }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/containers/{id}/sessions',
        id: 'openSession',
        access: 'exec',
        stepUp: true,
        secret: true,
        summary: 'Get a ticket for a terminal in a container',
        description:
            'Good once, for 30 seconds. On the socket, binary messages are what is typed and shown; a text message `{ "columns", "rows" }` sets the size; the last message is `{ "exitCode" }`. With `attach` it is the terminal of the container itself, which goes on when the socket is closed. A closed socket interrupts the command and ends its input; engines cannot end a command that ignores both.',
        answers: 'made',
        ui: { title: 'Terminal', role: 'hidden' },
        returns: joi.object({
            ticket: joi.string().required().label('Ticket'),
            expiresAt: joi.string().isoDate().required().label('Good until'),
            path: joi.string().required().label('Address').description('Where the WebSocket is opened')
        }),
        audit: { action: 'open', resource: 'session' },
        validate: {
            params: containerParams,
            payload: joi
                .object({
                    command: joi
                        .array()
                        .items(joi.string().allow('').max(32_768).label('Word'))
                        .min(1)
                        .max(200)
                        .default(['/bin/sh'])
                        .label('Command'),
                    user: joi.string().max(100).label('User'),
                    attach: joi.boolean().default(false).label('The process of the container itself'),
                    columns: joi.number().integer().min(1).max(1_000).default(80).label('Columns'),
                    rows: joi.number().integer().min(1).max(500).default(24).label('Rows')
                })
                .default({ command: ['/bin/sh'], attach: false, columns: 80, rows: 24 })
        },
        async handler({ params, payload, actor, audit }) {
            audit({ resourceId: params.id });
            const data: SessionInput = { ...payload, container: await sessions.check(params.id) };
            const { ticket, expiresAt } = await ctx.tickets.issue(actor, { permission: 'exec', data });
            const path = `/api/plugins/${ctx.name}/sessions/${ticket}`;
            return reply.created(path, { ticket, expiresAt: expiresAt.toISOString(), path });
        }
    });
}

function registerSocket(ctx: Ctx, { sessions }: Services): void {
    ctx.socket({
        path: '/sessions/{ticket}',
        id: 'session',
        access: { ticket: 'ticket', permission: 'exec' },
        summary: 'A terminal in a container',
        maxMessageBytes: 65_536,
        validate: { params: joi.object({ ticket: joi.string().required().label('Ticket') }) },
        async handler(socket, { ticket, signal, actor }) {
            const input = ticket as SessionInput;
            const entry = { resource: 'session', resourceId: input.container, actor };
            try {
                await Promise.all([
                    sessions.run(socket, input, signal),
                    ctx.audit({ action: 'start', ...entry })
                ]);
            } catch (error) {
                if (!isFailure(error)) {
                    throw error;
                }
                await refuse(socket, error);
            } finally {
                await ctx.audit({ action: 'stop', ...entry });
            }
        }
    });
}

async function refuse(
    socket: Socket,
    { code, message, reason }: { readonly code: number; readonly message: string; readonly reason: string }
): Promise<void> {
    await socket.send(JSON.stringify({ error: { code, message } })).catch(() => undefined);
    await socket.close(1011, reason).catch(() => undefined);
}
