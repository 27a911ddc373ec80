/** The route that agents connect to. */
import { joi } from '@portico/sdk';

import { maxRequestBytes } from '../protocol/endpoint.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** Declares the route `/mcp`, where clients speak the protocol. */
export function registerMcpRoute(ctx: Ctx, { endpoint }: Services): void {
    ctx.http({
        methods: ['GET', 'POST', 'DELETE'],
        path: '/mcp',
        id: 'mcp',
        access: 'use',
        oauth: true,
        effect: 'read',
        raw: 'Model Context Protocol over streamable HTTP',
        maxBytes: maxRequestBytes,
        summary: 'The panel for agents',
        description:
            '`areas` narrows the tools to these first parts of route ids, separated by commas; `effect=read` to those that read.',
        validate: {
            query: joi.object({
                areas: joi
                    .string()
                    .pattern(/^[a-z0-9-]+(?:,[a-z0-9-]+)*$/)
                    .max(500)
                    .label('Areas'),
                effect: joi.valid('read').label('Effect')
            })
        },
        handler: (request, { actor, query, signal }) =>
            endpoint.answer(request, {
                actor,
                signal,
                areas: query.areas?.split(',') ?? null,
                effect: query.effect ?? null
            })
    });
}
