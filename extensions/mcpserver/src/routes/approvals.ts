/** Routes of approvals: people see what agents want to do, and decide. */
import { approvalFields, type ApprovalRow, approvalView } from '@portico/agents';
import { type Actor, joi, pages, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const approvalSchema = joi.object({
    ...approvalFields,
    tool: joi.string().required().label('Tool'),
    client: joi.string().allow(null).required().label('Client')
});
const params = joi.object({ id: joi.number().integer().min(1).required().label('Number') });

/** Registers the routes below `/approvals`. */
export function registerApprovalRoutes(ctx: Ctx, { approvals }: Services): void {
    registerReads(ctx, approvals);
    ctx.route({
        method: 'POST',
        path: '/approvals/{id}/approve',
        id: 'approve',
        access: 'use',
        summary: 'Approve a call, once',
        tool: false,
        answers: 'done',
        returns: approvalSchema,
        ui: { title: 'Approve', role: 'action', confirm: 'Let the agent make this call?' },
        description:
            'Exactly the call that was shown, named by its hash, for the version of the object that was shown. Only a person who is logged in can approve, and needs the permission of the route itself.',
        audit: { action: 'approve', resource: 'approvals' },
        validate: {
            params,
            payload: joi.object({
                hash: joi
                    .string()
                    .pattern(/^[0-9a-f]{64}$/)
                    .required()
                    .label('Hash')
                    .description('Of the call that you were shown')
            })
        },
        async handler({ actor, params: { id }, payload, audit }) {
            audit({ resourceId: id });
            return viewOf(await approvals.approve(actor, id, scopeOf(actor), payload.hash));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/approvals/{id}/reject',
        id: 'reject',
        access: 'use',
        summary: 'Reject a call',
        tool: false,
        answers: 'done',
        returns: approvalSchema,
        ui: { title: 'Reject', role: 'action' },
        audit: { action: 'reject', resource: 'approvals' },
        validate: {
            params,
            payload: joi.object({
                reason: joi.string().max(500).label('Reason').description('The agent is told')
            })
        },
        async handler({ actor, params: { id }, payload, audit }) {
            audit({ resourceId: id });
            return viewOf(await approvals.reject(actor, id, scopeOf(actor), payload.reason ?? null));
        }
    });
}

function registerReads(ctx: Ctx, approvals: Services['approvals']): void {
    ctx.route({
        method: 'GET',
        path: '/approvals',
        id: 'approvals',
        access: 'use',
        summary: 'What your agents want to do',
        tool: false,
        returns: joi.array().items(approvalSchema),
        ui: {
            title: 'Approvals',
            primary: true,
            label: 'route',
            order: 2,
            empty: 'No agent asked for a change'
        },
        description: 'Newest first. With the permission `approve`, those of all users.',
        validate: { query: joi.object({ ...pages.query(50), state: approvalFields.state.optional() }) },
        async handler({ actor, query }) {
            const { limit, cursor } = query;
            const userId = scopeOf(actor);
            const { rows, page } = await approvals.list({
                ...(userId === null ? {} : { userId }),
                state: query.state,
                limit,
                cursor
            });
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/approvals/{id}',
        id: 'approval',
        access: 'use',
        summary: 'One approval',
        tool: false,
        returns: approvalSchema,
        validate: { params },
        handler: async ({ actor, params: { id } }) => viewOf(await approvals.get(id, scopeOf(actor)))
    });
}

/** Whose approvals an actor sees: everyone's with `approve`, else the actor's own. */
export function scopeOf(actor: Actor): number | null {
    return actor.can('approve') ? null : (actor.id ?? Number.NaN);
}

function viewOf(row: ApprovalRow) {
    const { client = null } = JSON.parse(row.facts) as { readonly client?: string | null };
    return { ...approvalView(row), tool: row.scope, client };
}
