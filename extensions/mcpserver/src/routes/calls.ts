/** The route of the calls that agents made. */
import { joi, pages, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { scopeOf } from './approvals.ts';

const callSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    at: joi
        .string()
        .isoDate()
        .required()
        .label('At')
        .meta({ ui: { column: 1 } }),
    tool: joi
        .string()
        .required()
        .label('Tool')
        .meta({ ui: { column: 2 } }),
    route: joi.string().allow(null).required().label('Route'),
    username: joi
        .string()
        .required()
        .label('User')
        .meta({ ui: { column: 3 } }),
    tokenId: joi.number().integer().allow(null).required().label('API token'),
    client: joi.string().allow(null).required().label('Client'),
    code: joi
        .number()
        .integer()
        .required()
        .label('Result')
        .meta({ ui: { column: 4 } }),
    ms: joi.number().integer().required().label('Took').unit('millisecond'),
    bytes: joi.number().integer().required().label('Answer').unit('byte'),
    approvalId: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Approval')
        .meta({ ui: { ref: 'mcpserver.approvals' } })
});

/** Declares the routes below `/calls`. */
export function registerCallRoutes(ctx: Ctx, { calls }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/calls',
        id: 'calls',
        access: 'use',
        summary: 'What your agents called',
        returns: joi.array().items(callSchema),
        ui: { title: 'Calls', order: 4, empty: 'No agent called a tool yet' },
        description: 'Newest first. With the permission `approve`, those of all users.',
        validate: {
            query: joi.object({
                ...pages.query(50),
                tool: joi.string().max(200).label('Tool'),
                outcome: joi.choice({ success: 'Succeeded', failure: 'Failed' }).label('Outcome'),
                from: joi.string().isoDate().label('From'),
                to: joi.string().isoDate().label('Until')
            })
        },
        async handler({ actor, query }) {
            const { rows, page } = await calls.list({ ...query, userId: scopeOf(actor) });
            return reply.list(
                rows.map(
                    ({ id, at, tool, route, username, tokenId, client, code, ms, bytes, approvalId }) => ({
                        id,
                        at: new Date(at).toISOString(),
                        tool,
                        route: route ?? null,
                        username,
                        tokenId: tokenId ?? null,
                        client: client ?? null,
                        code,
                        ms,
                        bytes,
                        approvalId: approvalId ?? null
                    })
                ),
                page
            );
        }
    });
}
