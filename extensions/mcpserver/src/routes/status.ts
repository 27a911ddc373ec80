/** Routes that say how agents connect, and what one token may. */
import { joi } from '@portico/sdk';

import { protocols } from '../protocol/endpoint.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const statusSchema = joi.object({
    url: joi.string().required().label('Address'),
    protocols: joi.array().items(joi.string()).required().label('Revisions of the protocol'),
    mode: joi
        .choice({ read: 'Agents only read', write: 'Agents may propose changes' })
        .required()
        .label('Mode'),
    tools: joi.number().integer().required().label('Tools').description('That you are offered'),
    sessions: joi.number().integer().required().label('Sessions'),
    pendingApprovals: joi.number().integer().required().label('Approvals that wait'),
    callsToday: joi.number().integer().required().label('Calls today').description('Since midnight UTC')
});

const introspectionSchema = joi.object({
    actor: joi
        .object({
            id: joi.number().integer().allow(null).required().label('Number'),
            username: joi.string().allow(null).required().label('User'),
            role: joi.string().allow(null).required().label('Role'),
            kind: joi.string().required().label('Kind')
        })
        .required()
        .label('Actor'),
    token: joi
        .object({
            id: joi.number().integer().required().label('Number'),
            name: joi.string().required().label('Name'),
            expiresAt: joi.string().isoDate().required().label('Ends')
        })
        .allow(null)
        .required()
        .label('Token'),
    permissions: joi.array().items(joi.string()).required().label('Permissions'),
    tools: joi.array().items(joi.string()).required().label('Tools'),
    limits: joi
        .object({
            callsPerMinute: joi.number().integer().required().label('Calls a minute'),
            parallelCalls: joi.number().integer().required().label('Calls at once'),
            resultBytes: joi.number().integer().required().label('Most of one result').unit('byte')
        })
        .required()
        .label('Limits')
});

/** The address of the endpoint of the agents. */
export async function addressOf(ctx: Ctx, host: string | undefined): Promise<string> {
    const base = (await ctx.panel.url()) ?? `http://${host ?? 'localhost'}`;
    return `${base.replace(/\/+$/, '')}/api/plugins/${ctx.name}/mcp`;
}

/** Registers `/status` and `/introspection`. */
export function registerStatusRoutes(ctx: Ctx, { approvals, calls, catalogue, sessions }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/status',
        id: 'status',
        access: 'read',
        summary: 'How agents connect, and how many do',
        returns: statusSchema,
        ui: { title: 'Agents', role: 'card', order: 1 },
        handler: async ({ actor, headers }) => ({
            url: await addressOf(ctx, headers['host']),
            protocols: [...protocols],
            mode: ctx.settings.mode,
            tools: (await catalogue.all(actor)).allowed.size,
            sessions: sessions.size,
            pendingApprovals: await approvals.pending(),
            callsToday: await calls.today()
        })
    });
    ctx.route({
        method: 'GET',
        path: '/introspection',
        id: 'introspection',
        access: 'use',
        summary: 'What an agent with your token may do',
        returns: introspectionSchema,
        ui: { role: 'hidden' },
        async handler({ actor }) {
            const { id, username, role, kind, tokenId, token, permissions } = actor;
            const { callsPerMinute, parallelCalls, resultBytes } = ctx.settings;
            return {
                actor: { id, username, role, kind },
                token: tokenId === null || token === undefined ? null : { id: tokenId, ...token },
                permissions: [...permissions],
                tools: [...(await catalogue.all(actor)).allowed],
                limits: { callsPerMinute, parallelCalls, resultBytes }
            };
        }
    });
}
