/** The routes of conversations and their messages. */
import { type Actor, joi, pages, reply } from '@portico/sdk';

import { type StepCall, stepsOf } from '../conversations/conversations.ts';
import { exportOf } from '../conversations/export.ts';
import {
    changedConversation,
    type Conversation,
    conversationSchema,
    type Message,
    messageSchema,
    newConversation,
    type Question
} from '../conversations/schema.ts';
import type { ConversationRow, MessageRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { resolvedCall, scopeOf } from '../tools/panel-tools.ts';

/** The parameters of a conversation's own routes. */
export const conversationParams = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Conversation')
        .meta({ ui: { ref: 'ai.conversations' } })
});
const params = conversationParams;

/** Declares `/conversations` and what lies below an item, but for the answers. */
export function registerConversationRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerOne(ctx, services);
    registerReading(ctx, services);
}

function registerList(ctx: Ctx, { conversations }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/conversations',
        id: 'conversations',
        access: 'chat',
        summary: 'Own conversations',
        ui: {
            title: 'Conversations',
            order: 1,
            primary: true,
            label: 'title',
            empty: 'Nothing was asked yet'
        },
        validate: {
            query: joi.object({
                q: joi.string().max(200).label('Search').description('Words of titles and texts'),
                ...pages.query()
            })
        },
        returns: joi.array().items(conversationSchema),
        async handler({ actor, query }) {
            const before = pages.afterNumber(query);
            const found = await conversations.list(actor, query.q, { before, limit: query.limit });
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/conversations',
        id: 'createConversation',
        access: 'chat',
        summary: 'Begin a conversation',
        answers: 'made',
        ui: { title: 'New conversation' },
        audit: { action: 'create', resource: 'conversation' },
        validate: { payload: newConversation },
        returns: conversationSchema,
        async handler({ actor, payload }) {
            const made = viewOf(await conversations.create(actor, payload));
            return reply.created(`/api/plugins/${ctx.name}/conversations/${made.id}`, made);
        }
    });
}

function registerOne(ctx: Ctx, { answers, approvals, conversations }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/conversations/{id}',
        id: 'conversation',
        access: 'chat',
        summary: 'One conversation',
        validate: { params },
        returns: conversationSchema,
        handler: async ({ actor, params: { id } }) =>
            reply.with(viewOf(await conversations.get(actor, id)), {})
    });
    ctx.route({
        method: 'PUT',
        path: '/conversations/{id}',
        id: 'changeConversation',
        access: 'chat',
        summary: 'Rename or pin a conversation, or give it another provider',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'conversation' },
        validate: { params, payload: changedConversation },
        returns: conversationSchema,
        async handler({ actor, params: { id }, payload: { version, ...change }, ifMatch }) {
            const set = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
            return reply.with(viewOf(await conversations.update(actor, id, set, version ?? ifMatch)), {});
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/conversations/{id}',
        id: 'removeConversation',
        access: 'chat',
        summary: 'Remove a conversation',
        description: 'What it changed stays in the list of changes.',
        answers: 'done',
        ui: { title: 'Remove', confirm: 'Remove this conversation?' },
        audit: { action: 'delete', resource: 'conversation' },
        validate: { params },
        returns: joi.valid(null),
        async handler({ actor, params: { id } }) {
            const { id: own } = await conversations.get(actor, id);
            answers.stop(own);
            await conversations.remove(actor, own);
            await approvals.remove({ scope: scopeOf(own) });
            return reply.with(null, {});
        }
    });
}

function registerReading(ctx: Ctx, services: Services): void {
    const { answers, conversations } = services;
    const view = (actor: Actor, rows: readonly MessageRow[]): Promise<Message[]> =>
        Promise.all(rows.map((row) => messageOf(row, (call) => resolvedCall({ ...services, actor }, call))));
    ctx.route({
        method: 'GET',
        path: '/conversations/{id}/messages',
        id: 'messages',
        access: 'chat',
        summary: 'Messages of a conversation, the newest first',
        ui: { title: 'Messages', label: 'text', empty: 'Nothing was asked yet' },
        validate: { params, query: joi.object(pages.query(50, 200)) },
        returns: joi.array().items(messageSchema),
        async handler({ actor, params: { id }, query }) {
            const own = await conversations.get(actor, id);
            const before = pages.afterNumber(query);
            const found = await conversations.messages(own.id, { before, limit: query.limit });
            const { rows, page } = pages.read(found, query.limit, (row) => row.id);
            return reply.list(await view(actor, rows), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/conversations/{id}/stop',
        id: 'stop',
        access: 'chat',
        summary: 'Stop the answer',
        answers: 'done',
        ui: { title: 'Stop', role: 'action' },
        audit: { action: 'stop', resource: 'conversation' },
        validate: { params },
        returns: joi.object({ stopped: joi.boolean().required().label('Stopped') }),
        async handler({ actor, params: { id } }) {
            const own = await conversations.get(actor, id);
            return { stopped: answers.stop(own.id) };
        }
    });
    ctx.download({
        path: '/conversations/{id}/export',
        id: 'exportConversation',
        access: 'chat',
        summary: 'Take a conversation away',
        ui: { title: 'Export', role: 'action' },
        validate: {
            params,
            query: joi.object({
                format: joi.choice({ markdown: 'Markdown', json: 'JSON' }).default('markdown').label('Format')
            })
        },
        async handler({ actor, params: { id }, query: { format } }) {
            const own = await conversations.get(actor, id);
            const all = await conversations.messages(own.id, { before: null, limit: 10_000 });
            return exportOf(viewOf(own), await view(actor, all.reverse()), format);
        }
    });
}

/** A conversation as it is read. */
export function viewOf(row: ConversationRow): Conversation {
    return {
        id: row.id,
        version: row.version,
        title: row.title,
        providerId: row.providerId ?? null,
        pinned: row.pinned,
        createdAt: new Date(row.createdAt).toISOString(),
        updatedAt: new Date(row.updatedAt).toISOString()
    };
}

async function messageOf(row: MessageRow, resolve: (call: StepCall) => Promise<StepCall>): Promise<Message> {
    const isAnswer = row.role === 'assistant';
    const calls = await Promise.all(
        isAnswer ? stepsOf(row).flatMap((step) => step.calls.map((call) => resolve(call))) : []
    );
    return {
        id: row.id,
        role: row.role,
        text: row.text,
        attachments: isAnswer
            ? []
            : (JSON.parse(row.parts) as Question['attachments']).map(({ name }) => name),
        calls: calls.map(({ name: _name, meta: _meta, ...call }) => call),
        reason: row.reason ?? null,
        usage: { input: row.input, output: row.output, cost: row.cost ?? null },
        at: new Date(row.at).toISOString()
    };
}
