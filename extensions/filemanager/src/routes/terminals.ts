/** The routes of terminals. */
import { isFailure, joi, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { openTerminalSchema, type TerminalSize, terminalSize } from '../terminals/terminals.ts';

const ticketSchema = joi.object({
    ticket: joi.string().required().label('Ticket'),
    expiresAt: joi.string().isoDate().required().label('Good until'),
    path: joi.string().required().label('Address').description('Where the WebSocket is opened')
});

/** Registers the route that issues a ticket, the socket of a terminal, and the routes that list and end open ones. */
export function registerTerminalRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerEnding(ctx, services);
    registerTicket(ctx, services);
    registerSocket(ctx, services);
}

function registerList(ctx: Ctx, { terminals }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/terminals',
        id: 'terminals',
        access: 'terminal',
        summary: 'Open terminals',
        ui: { title: 'Terminals', order: 9, label: 'id', empty: 'No terminal is open' },
        returns: joi.array().items(openTerminalSchema),
        description: 'Of all users.',
        handler: () => reply.list(terminals.list())
    });
}

function registerEnding(ctx: Ctx, { terminals }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/terminals/{id}',
        id: 'endTerminal',
        access: 'terminal',
        summary: 'End a terminal',
        answers: 'done',
        ui: { title: 'End', confirm: 'End this terminal and what runs in it?' },
        returns: joi.valid(null),
        audit: { action: 'stop', resource: 'terminal' },
        description: 'Its shell is hung up, as when its window closes.',
        validate: {
            params: joi.object({
                id: joi
                    .number()
                    .integer()
                    .min(1)
                    .required()
                    .label('Terminal')
                    .meta({ ui: { ref: 'filemanager.terminals' } })
            })
        },
        async handler({ params, audit }) {
            audit({ resourceId: params.id, before: { username: terminals.end(params.id) } });
            return null;
        }
    });
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
                await terminals.run(socket, ticket as TerminalSize, { signal, actor });
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
