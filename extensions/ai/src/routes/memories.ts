/** The routes of memories. */
import { joi, pages, reply, type Value } from '@portico/sdk';

import type { MemoryRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { version } from '../version-field.ts';

const text = joi
    .string()
    .trim()
    .min(1)
    .max(2_000)
    .label('Text')
    .meta({ ui: { column: 1 } });
const tags = joi
    .array()
    .items(joi.string().trim().min(1).max(40))
    .max(20)
    .label('Tags')
    .meta({ ui: { column: 2 } });
const memorySchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    version: version.required(),
    text: text.required(),
    tags: joi
        .array()
        .items(joi.string())
        .required()
        .label('Tags')
        .meta({ ui: { column: 2 } }),
    createdAt: joi.string().isoDate().required().label('Made'),
    updatedAt: joi.string().isoDate().required().label('Changed')
});
const params = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Memory')
        .meta({ ui: { ref: 'ai.memories' } })
});

/** Declares the routes below `/memories`. */
export function registerMemoryRoutes(ctx: Ctx, services: Services): void {
    registerAll(ctx, services);
    registerOne(ctx, services);
}

function registerAll(ctx: Ctx, { memories }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/memories',
        id: 'memories',
        access: 'chat',
        tool: false, // the words may leave this machine, for their meaning
        summary: 'What the assistant shall know of you',
        description:
            'With `q` the fitting ones, the best first: by meaning where the provider has a model for that, else by words.',
        ui: { title: 'Memory', order: 4, label: 'text', empty: 'It knows nothing yet' },
        validate: {
            query: joi.object({ q: joi.string().max(1_000).label('Search'), ...pages.query() })
        },
        returns: joi.array().items(memorySchema),
        async handler({ actor, query, signal }) {
            if (query.q !== undefined) {
                const found = await memories.find(actor, query.q, query.limit, signal);
                return reply.list(found.map(viewOf), { total: found.length });
            }
            const before = pages.afterNumber(query);
            const all = await memories.list(actor, { before, limit: query.limit });
            const { rows, page } = pages.read(all, query.limit, ({ id }) => id);
            return reply.list(rows.map(viewOf), page);
        }
    });
    ctx.route({
        method: 'POST',
        path: '/memories',
        id: 'createMemory',
        access: 'chat',
        summary: 'Tell the assistant something to keep in mind',
        answers: 'made',
        ui: { title: 'New memory' },
        audit: { action: 'create', resource: 'memory' },
        validate: { payload: joi.object({ text: text.required(), tags: tags.default([]) }) },
        returns: memorySchema,
        async handler({ actor, payload, signal }) {
            const made = viewOf(await memories.create(actor, payload, signal));
            return reply.created(`/api/plugins/${ctx.name}/memories/${made.id}`, made);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/memories',
        id: 'forget',
        access: 'chat',
        summary: 'Forget everything',
        answers: 'done',
        ui: { title: 'Forget all', confirm: 'Remove all of your memories?' },
        audit: { action: 'delete', resource: 'memory' },
        returns: joi.object({ removed: joi.number().integer().required().label('Removed') }),
        handler: async ({ actor }) => ({ removed: await memories.removeAll(actor.id ?? 0) })
    });
}

function registerOne(ctx: Ctx, { memories }: Services): void {
    ctx.route({
        method: 'PUT',
        path: '/memories/{id}',
        id: 'changeMemory',
        access: 'chat',
        summary: 'Change a memory',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'memory' },
        validate: { params, payload: joi.object({ text, tags, version }) },
        returns: memorySchema,
        handler: async ({ actor, params: { id }, payload: { version: seen, ...change }, ifMatch, signal }) =>
            reply.with(
                viewOf(
                    await memories.update(
                        actor,
                        id,
                        {
                            ...(change.text === undefined ? {} : { text: change.text }),
                            ...(change.tags === undefined ? {} : { tags: change.tags })
                        },
                        seen ?? ifMatch,
                        signal
                    )
                ),
                {}
            )
    });
    ctx.route({
        method: 'DELETE',
        path: '/memories/{id}',
        id: 'removeMemory',
        access: 'chat',
        summary: 'Forget one',
        answers: 'done',
        ui: { title: 'Forget', confirm: 'Remove this memory?' },
        audit: { action: 'delete', resource: 'memory' },
        validate: { params },
        returns: joi.valid(null),
        async handler({ actor, params: { id } }) {
            await memories.remove(actor, id);
            return reply.with(null, {});
        }
    });
}

function viewOf(row: MemoryRow): Value<typeof memorySchema> {
    return {
        id: row.id,
        version: row.version,
        text: row.text,
        tags: JSON.parse(row.tags) as string[],
        createdAt: new Date(row.createdAt).toISOString(),
        updatedAt: new Date(row.updatedAt).toISOString()
    };
}
