/** The routes of terminals. */
import { isFailure, joi, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { type TerminalSize, terminalSize } from '../terminals.ts';

const ticketSchema = joi.object({
    ticket: joi.string().required().label('Ticket'),
    expiresAt: joi.string().isoDate().required().label('Good until'),
    path: joi.string().required().label('Address').description('Where the WebSocket is opened')
});

/** Registers the route that issues a ticket, and the socket of a terminal. */
export function registerTerminalRoutes(ctx: Ctx, services: Services): void {
    registerTicket(ctx, services);
    registerSocket(ctx, services);
}

function registerTicket(ctx: Ctx, { terminals }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/terminals',
        id: 'openTerminal',
        access: 'terminal',
        summary: 'Get a ticket for a terminal',
        answers: 'done',
        ui: { title: 'Terminal', role: 'hidden' },
        returns: ticketSchema,
        stepUp: true,
        secret: true,
        audit: { action: 'start', resource: 'terminal' },
        description:
            'Good once, for 30 seconds. On the socket, binary messages are what is typed and shown; a text message `{ "columns", "rows" }` sets the size; the last message is `{ "exitCode" }`.',
        validate: { payload: terminalSize },
        async handler({ payload, actor }) {
            await terminals.check();
            const { ticket, expiresAt } = await ctx.tickets.issue(actor, {
                permission: 'terminal',
                data: payload,
                ttlSeconds: 30
            });
            return reply.with(
                {
                    ticket,
                    expiresAt: expiresAt.toISOString(),
                    path: `/api/plugins/${ctx.name}/terminals/${ticket}`
                },
                {}
            );
        }
    });
}

function registerSocket(ctx: Ctx, { terminals }: Services): void {
    ctx.socket({
        path: '/terminals/{ticket}',
        id: 'terminal',
        access: { ticket: 'ticket', permission: 'terminal' },
        summary: 'The terminal itself',
        maxMessageBytes: 65_536,
        validate: { params: joi.object({ ticket: joi.string().required().label('Ticket') }) },
        async handler(socket, { ticket, signal, actor }) {
            await ctx.audit({ action: 'start', resource: 'terminal', actor });
            try {
                await terminals.run(socket, ticket as TerminalSize, signal);
            } catch (error) {
                if (!isFailure(error)) {
                    throw error;
                }
                await socket
                    .send(JSON.stringify({ error: { code: error.code, message: error.message } }))
                    .catch(() => undefined);
                await socket.close(1011, error.reason).catch(() => undefined);
            } finally {
                await ctx.audit({ action: 'stop', resource: 'terminal', actor });
            }
        }
    });
}
