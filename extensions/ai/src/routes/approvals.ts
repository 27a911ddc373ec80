/** The routes of approvals, and of what they changed. */
import { approvalFields, type ApprovalRow, approvalView, type ToolArguments } from '@portico/agents';
import { joi, pages, type Plan, type PlannedChange, reply, type Value } from '@portico/sdk';

import type { ShownAnswer } from '../changes/changes.ts';
import type { ChangeRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const approvalSchema = joi.object({
    ...approvalFields,
    conversationId: joi
        .typed<number | null>(joi.number().integer().allow(null).required())
        .label('Conversation')
        .meta({ ui: { ref: 'ai.conversations' } })
});
const answerSchema = joi.object({
    status: joi.number().integer().required().label('Status'),
    code: joi.number().integer().required().label('Code'),
    message: joi.string().allow('').required().label('Message'),
    data: joi.any().label('Data')
});
const changeSchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    approvalId: joi.number().integer().allow(null).required().label('Approval'),
    conversationId: joi.number().integer().allow(null).required().label('Conversation'),
    route: joi
        .string()
        .required()
        .label('Route')
        .meta({ ui: { column: 1 } }),
    method: joi.string().required().label('Method'),
    path: joi
        .string()
        .required()
        .label('Path')
        .meta({ ui: { column: 2 } }),
    arguments: joi.any().required().label('Arguments'),
    changes: joi.array().items(joi.any()).required().label('Changes'),
    state: joi
        .choice({ done: 'Made', undoing: 'Is being taken back', undone: 'Taken back' })
        .required()
        .label('State')
        .meta({ ui: { column: 3, tones: { done: 'good', undoing: 'busy', undone: 'neutral' } } }),
    undoable: joi
        .boolean()
        .required()
        .label('Can be taken back')
        .description('While nothing else changed it'),
    why: joi.string().allow(null).required().label('Why not'),
    username: joi.string().allow('').required().label('User'),
    at: joi
        .string()
        .isoDate()
        .required()
        .label('At')
        .meta({ ui: { column: 4 } }),
    undoneAt: joi.string().isoDate().allow(null).required().label('Taken back at')
});
const idOf = (label: string, list: string) =>
    joi.object({
        id: joi
            .number()
            .integer()
            .min(1)
            .required()
            .label(label)
            .meta({ ui: { ref: list } })
    });
const approvalParams = idOf('Approval', 'ai.approvals');
/** What a run of a policy says whose approval was refused. */
const rejectedCode = 40_950;
/** How long an approved call may take. */
const callSeconds = 600;

/** Declares `/approvals` and `/changes`. */
export function registerApprovalRoutes(ctx: Ctx, services: Services): void {
    registerReading(ctx, services);
    registerDecisions(ctx, services);
    registerChanges(ctx, services);
}

function registerReading(ctx: Ctx, { approvals, policies }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/approvals',
        id: 'approvals',
        access: 'chat',
        summary: 'What the assistant wants to change, and what became of it',
        ui: { title: 'Approvals', order: 2, label: 'route', empty: 'Nothing waits' },
        validate: {
            query: joi.object({ state: approvalFields.state.optional(), ...pages.query() })
        },
        returns: joi.array().items(approvalSchema),
        async handler({ actor, query }) {
            await policies.present(actor);
            const { rows, page } = await approvals.list({ userId: actor.id ?? 0, ...query });
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/approvals/{id}',
        id: 'approval',
        access: 'chat',
        summary: 'One approval, with its plan',
        validate: { params: approvalParams },
        returns: approvalSchema,
        handler: async ({ actor, params: { id } }) => viewOf(await approvals.get(id, actor.id ?? 0))
    });
}

function registerDecisions(ctx: Ctx, { approvals, changes, policies }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/approvals/{id}/approve',
        id: 'approve',
        access: 'chat',
        summary: 'Let the assistant make this call, once',
        description:
            'Only for a user who is logged in, with the hash of the call that was shown. It is made for the version that was shown, or answers 41200.',
        tool: false,
        timeoutSeconds: callSeconds,
        answers: 'done',
        ui: { title: 'Approve', primary: true },
        audit: { action: 'approve', resource: 'approval' },
        validate: {
            params: approvalParams,
            payload: joi.object({
                hash: joi
                    .string()
                    .pattern(/^[0-9a-f]{64}$/)
                    .required()
                    .label('Hash')
                    .description('That of the approval')
            })
        },
        returns: joi.object({ approval: approvalSchema.required(), answer: answerSchema.required() }),
        async handler({ actor, params: { id }, payload: { hash }, audit }) {
            const row = await approvals.approve(actor, id, actor.id ?? 0, hash);
            audit({ resourceId: id, after: { route: row.route, hash } });
            const [info] = (await ctx.api.routes({ for: actor })).filter((each) => each.id === row.route);
            const work = () => approvals.execute(actor, id);
            const answer: ShownAnswer =
                info === undefined
                    ? await work()
                    : await changes.around(
                          actor,
                          {
                              info,
                              given: JSON.parse(row.shown) as ToolArguments,
                              plan: JSON.parse(row.plan) as Plan,
                              conversationId: viewOf(row).conversationId,
                              approvalId: id
                          },
                          work
                      );
            await policies.decided(id, answer.code);
            return {
                approval: viewOf(await approvals.get(id, actor.id ?? 0)),
                answer: { ...answer, data: answer.data ?? null }
            };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/approvals/{id}/reject',
        id: 'reject',
        access: 'chat',
        summary: 'Refuse the call',
        tool: false,
        answers: 'done',
        ui: { title: 'Reject' },
        audit: { action: 'reject', resource: 'approval' },
        validate: {
            params: approvalParams,
            payload: joi.typed<{ reason?: string } | undefined>(
                joi.object({ reason: joi.string().max(500).label('Reason') }).optional()
            )
        },
        returns: approvalSchema,
        async handler({ actor, params: { id }, payload, audit }) {
            const row = await approvals.reject(actor, id, actor.id ?? 0, payload?.reason ?? null);
            await policies.decided(id, rejectedCode);
            audit({ resourceId: id, after: { route: row.route } });
            return viewOf(row);
        }
    });
}

function registerChanges(ctx: Ctx, { changes }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/changes',
        id: 'changes',
        access: 'chat',
        summary: 'What the assistant changed for you',
        ui: { title: 'Changes', order: 3, label: 'path', empty: 'It changed nothing yet' },
        validate: { query: joi.object(pages.query()) },
        returns: joi.array().items(changeSchema),
        async handler({ actor, query }) {
            const found = await changes.list(actor, {
                before: pages.afterNumber(query),
                limit: query.limit
            });
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(rows.map(changeOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/changes/{id}/undo',
        id: 'undo',
        access: 'chat',
        summary: 'Take a change back, if nothing else changed since',
        tool: false,
        timeoutSeconds: callSeconds,
        answers: 'done',
        ui: { title: 'Take back', confirm: 'Take this change back?' },
        audit: { action: 'undo', resource: 'change' },
        validate: { params: idOf('Change', 'ai.changes') },
        returns: joi.object({ change: changeSchema.required(), answer: answerSchema.required() }),
        async handler({ actor, params: { id }, audit }) {
            const { row, answer } = await changes.undo(actor, id);
            audit({ resourceId: id, after: { route: row.route, state: row.state } });
            return { change: changeOf(row), answer: { ...answer, data: answer.data ?? null } };
        }
    });
}

/** An approval as it is read. */
function viewOf(row: ApprovalRow): Value<typeof approvalSchema> {
    const { conversationId = null } = JSON.parse(row.facts) as { readonly conversationId?: number | null };
    return { ...approvalView(row), conversationId };
}

function changeOf(row: ChangeRow): Value<typeof changeSchema> {
    const { id, approvalId, conversationId, route, method, path, state, undo, why, username, at, undoneAt } =
        row;
    return {
        id,
        approvalId: approvalId ?? null,
        conversationId: conversationId ?? null,
        route,
        method,
        path,
        arguments: JSON.parse(row.shown) as ToolArguments,
        changes: JSON.parse(row.changes) as PlannedChange[],
        state,
        undoable: (undo ?? null) !== null && state === 'done',
        why: why ?? null,
        username,
        at: new Date(at).toISOString(),
        undoneAt: (undoneAt ?? null) === null ? null : new Date(undoneAt as number).toISOString()
    };
}
