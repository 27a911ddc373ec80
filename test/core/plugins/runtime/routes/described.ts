import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin, joi, type PluginDefinition, reply } from '@portico/sdk';
import { createTestHost } from '@portico/testing';

import { routesOf } from '../../../../../core/src/plugins/runtime/routes/routes.ts';
import { createOpenApi, type OpenApiDocument } from '../../../../../core/src/server/http/openapi/document.ts';
import type { Route } from '../../../../../core/src/server/http/route.ts';
import { validateDocument } from '../../../../support/api/document.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const plugin = (setup: (ctx: Context) => void): PluginDefinition => definePlugin({ setup });
const task = {
    id: 1,
    kind: 'x',
    state: 'queued',
    progress: null,
    startedAt: null,
    finishedAt: null,
    result: null,
    error: null
} as const;

const told = plugin((ctx) => {
    ctx.stream({
        path: '/told',
        access: 'read',
        id: 'told',
        ui: { role: 'log', title: 'Told' },
        events: {
            line: joi.object({ text: joi.string().required().label('Text') }),
            message: joi.number()
        },
        validate: { query: joi.object({ odd: joi.string().valid('shape', 'name') }) },
        async *handler({ query }) {
            yield { event: 'line', data: { text: 'a' } };
            yield { data: 7 };
            if (query.odd === 'shape') {
                yield { event: 'line', data: { text: 7 as never } }; // wrong on purpose
            }
            if (query.odd === 'name') {
                yield { event: 'other', data: 1 } as never; // wrong on purpose
            }
        }
    });
    ctx.route({
        method: 'POST',
        path: '/made',
        access: 'write',
        id: 'made',
        answers: 'made',
        validate: {
            payload: joi.object({
                how: joi.choice({ skip: 'Skip it', queue: 'Wait' }).default('skip').label('When busy'),
                id: joi.readOnly(joi.number())
            })
        },
        returns: joi.object({ given: joi.array().items(joi.string()).required() }),
        handler: ({ payload }) => reply.created('/x', { given: Object.keys(payload).sort() })
    });
    ctx.route({
        method: 'POST',
        path: '/lies',
        access: 'write',
        id: 'lies',
        answers: 'task',
        audit: { action: 'tell', resource: 'lie' },
        ui: { confirm: 'Sure?' },
        returns: joi.any(),
        handler: () => ({ ...task })
    });
    ctx.route({
        method: 'POST',
        path: '/begun',
        access: 'write',
        id: 'begun',
        answers: 'task',
        handler: () => reply.accepted({ ...task })
    });
});

const either = plugin((ctx) => {
    const returns = joi.object({ done: joi.boolean().label('Done') });
    const handler = () => ({ done: true });
    const common = { method: 'POST', access: 'write', answers: ['done', 'task'] } as const;
    ctx.route({ ...common, path: '/one', id: 'one', returns, handler });
    const other = joi.alternatives(returns, joi.object({ id: joi.number().label('Id') }));
    ctx.route({ ...common, path: '/other', id: 'other', returns: other, handler });
});

describe('what a plugin says of its routes', () => {
    it('stands in the OpenAPI document', async () => {
        await using host = await createTestHost(told, { quiet: true });
        const routes = routesOf(host.document.routes, {
            plugin: 'told',
            permissions: new Set(['read', 'write'])
        } as never); // no handler is called
        const document = createOpenApi({
            servers: () => [{ name: 'told', prefix: '/api/plugins/told', routes }],
            version: '1'
        }).document();
        expect(validateDocument(document)).to.equal([]);
        const stream = document.paths['/api/plugins/told/told']?.['get'];
        expect(stream?.['x-ui']).to.equal({ role: 'log', title: 'Told' });
        const item = { $ref: '#/components/schemas/ToldToldEvent' };
        expect(stream?.responses['200']?.['content']).to.equal({
            'text/event-stream': {
                schema: {
                    type: 'string',
                    contentMediaType: 'text/event-stream',
                    contentSchema: { type: 'array', items: item }
                },
                'x-itemSchema': item
            }
        });
        const [line, message, error] = document.components['schemas']?.['ToldToldEvent']?.[
            'oneOf'
        ] as readonly { readonly properties: Readonly<Record<string, object>> }[];
        expect(line?.properties).to.equal({
            event: { type: 'string', const: 'line' },
            id: { type: 'string' },
            data: {
                type: 'string',
                contentMediaType: 'application/json',
                contentSchema: { $ref: '#/components/schemas/ToldToldLineEvent' }
            }
        });
        expect(document.components['schemas']?.['ToldToldLineEvent']?.['properties']).to.equal({
            text: { type: 'string', minLength: 1, title: 'Text' }
        });
        expect([message?.properties['event'], error?.properties['event']]).to.equal([
            { type: 'string', const: 'message' },
            { type: 'string', const: 'error' }
        ]);
        const statuses = (path: string): string[] =>
            Object.keys(document.paths[`/api/plugins/told${path}`]?.['post']?.responses ?? {}).filter(
                (status) => status.startsWith('2')
            );
        expect([statuses('/made'), statuses('/lies'), statuses('/begun')]).to.equal([
            ['201'],
            ['202'],
            ['202']
        ]);
    });

    it('names each way in which a route succeeds, and of a task its own shape where it has one', async () => {
        await using host = await createTestHost(either, { quiet: true });
        const routes = routesOf(host.document.routes, {
            plugin: 'either',
            permissions: new Set(['write'])
        } as never); // no handler is called
        const document = createOpenApi({
            servers: () => [{ name: 'either', prefix: '/api/plugins/either', routes }],
            version: '1'
        }).document();
        expect(validateDocument(document)).to.equal([]);
        const shapeOf = (path: string): readonly [string[], string] => {
            const { responses = {} } = document.paths[`/api/plugins/either${path}`]?.['post'] ?? {};
            return [
                Object.keys(responses).filter((status) => status.startsWith('2')),
                JSON.stringify(responses['202'])
            ];
        };
        const task_ = '#/components/schemas/Task"';
        const [statuses, own] = shapeOf('/one');
        expect([statuses, own.includes(task_)]).to.equal([['200', '202'], false]);
        const [same, begun] = shapeOf('/other');
        expect([same, begun.includes(task_)]).to.equal([['200', '202'], true]);
        const wrong = plugin((ctx) => {
            const handler = () => null;
            ctx.route({
                method: 'POST',
                access: 'write',
                path: '/x',
                answers: ['done', 'no' as never], // wrong on purpose
                handler
            });
        });
        await expect(createTestHost(wrong, { quiet: true })).to.reject(/one of done, made, task/);
    });

    it('stands in the document of its tag alone, with what the navigation shows of all', async () => {
        await using host = await createTestHost(told, { quiet: true });
        const routes = routesOf(host.document.routes, {
            plugin: 'told',
            permissions: new Set(['read', 'write'])
        } as never); // no handler is called
        const about = { title: 'Told', icon: 'ear', group: 'Talk' };
        const servers = [
            { name: 'told', prefix: '/api/plugins/told', routes, about },
            { name: 'other', prefix: '/api/plugins/other', routes }
        ];
        const openApi = createOpenApi({ servers: () => servers, version: '1' });
        const whole = openApi.text();
        const text = openApi.text('told');
        const part = JSON.parse(text?.body ?? '{}') as OpenApiDocument;
        expect(validateDocument(part)).to.equal([]);
        expect(part.tags).to.equal([
            {
                name: 'told',
                description: 'Routes of the plugin told',
                'x-summary': 'Told',
                'x-kind': 'nav',
                'x-parent': 'Talk',
                'x-icon': 'ear',
                'x-resources': ['lie']
            },
            {
                name: 'other',
                description: 'Routes of the plugin other',
                'x-summary': 'other',
                'x-kind': 'nav',
                'x-resources': ['lie']
            }
        ]);
        expect(Object.keys(part.paths).every((path) => path.startsWith('/api/plugins/told/'))).to.equal(true);
        expect(part.components['schemas']).to.include('ToldToldEvent');
        expect(part.components['schemas']).to.not.include('OtherToldEvent');
        expect(text?.etag).to.not.equal(whole?.etag);
        expect(openApi.text('told') === text).to.equal(true);
        expect(openApi.text('none')).to.equal(null);
    });

    it('leads from a list to its items and back, and where a route says', async () => {
        const row = joi.object({ id: joi.number().required(), ownerId: joi.number().required() });
        // No handler is called.
        const read = { method: 'GET', access: 'read', handler: none as never } as const;
        await using host = await createTestHost(
            plugin((ctx) => {
                const { links } = {
                    links: {
                        owner: { operationId: 'users.get', parameters: { id: 'ownerId' } },
                        gone: { operationId: 'not.there', parameters: {} }
                    }
                };
                const returns = joi.array().items(row);
                ctx.route({ ...read, path: '/jobs', id: 'jobs.list', returns, ui: { title: 'Jobs', links } });
                ctx.route({ ...read, path: '/jobs/{id}', id: 'jobs.get', returns: row });
                ctx.route({ ...read, path: '/jobs/{id}/runs', id: 'runs.list', returns });
                ctx.route({ ...read, path: '/jobs/{id}/runs/{name}', id: 'runs.get', returns: row });
                ctx.route({
                    ...read,
                    method: 'POST',
                    path: '/jobs',
                    id: 'jobs.create',
                    access: 'write',
                    answers: 'made',
                    returns: row,
                    handler: none as never // it is not called
                });
            }),
            { quiet: true }
        );
        const permissions = new Set(['read', 'write']);
        const routes = routesOf(host.document.routes, { plugin: 'jobs', permissions } as never); // no handler is called
        const person = { ...routes[1], id: 'users.get', path: '/api/users/{id}' } as Route;
        const openApi = createOpenApi({
            servers: () => [
                { name: 'core', prefix: '', routes: [person] },
                { name: 'jobs', prefix: '/api/plugins/jobs', routes }
            ],
            version: '1'
        });
        const linksOf = ({ paths }: OpenApiDocument, path: string, method = 'get'): unknown =>
            paths[`/api/plugins/jobs${path}`]?.[method]?.responses[method === 'get' ? '200' : '201']?.[
                'links'
            ];
        const document = openApi.document();
        expect(validateDocument(document)).to.equal([]);
        const owner = { parameters: { id: '$response.body#/data/0/ownerId' } };
        const item = { operationId: 'jobs.jobs.get', parameters: { id: '$response.body#/data/0/id' } };
        expect(linksOf(document, '/jobs')).to.equal({ item, owner: { operationId: 'users.get', ...owner } });
        expect(document.paths['/api/plugins/jobs/jobs']?.['get']?.['x-ui']).to.equal({ title: 'Jobs' });
        expect(linksOf(document, '/jobs', 'post')).to.equal({
            item: { ...item, parameters: { id: '$response.body#/data/id' } }
        });
        expect(linksOf(document, '/jobs/{id}')).to.equal({
            list: { operationId: 'jobs.jobs.list' },
            runs: { operationId: 'jobs.runs.list', parameters: { id: '$request.path.id' } }
        });
        // No field of a row is the name.
        expect(linksOf(document, '/jobs/{id}/runs')).to.equal(undefined);
        expect(linksOf(document, '/jobs/{id}/runs/{name}')).to.equal({
            list: { operationId: 'jobs.runs.list', parameters: { id: '$request.path.id' } }
        });
        const part = JSON.parse(openApi.text('jobs')?.body ?? '{}') as OpenApiDocument;
        expect(validateDocument(part)).to.equal([]);
        const operationRef = '/api/openapi.json#/paths/~1api~1users~1%7Bid%7D/get';
        expect(linksOf(part, '/jobs')).to.equal({ item, owner: { operationRef, ...owner } });
    });

    it('holds in tests: events, statuses, and fields that only answers have', async () => {
        await using host = await createTestHost(told, { quiet: true });
        const read = async (query: { readonly odd?: string }): Promise<unknown[]> =>
            Array.fromAsync(host.as('viewer').events('/told', { query }), ({ event, data }) => [event, data]);
        expect((await read({})).map((each) => (each as unknown[])[1])).to.equal([{ text: 'a' }, 7]);
        for (const odd of ['shape', 'name']) {
            const [name, data] = (await read({ odd })).at(-1) as [string, object];
            expect(name).to.equal('error');
            expect(data).to.include({ code: 50000, reason: 'INTERNAL' });
        }
        const made = await host.as('admin').post('/made', { id: 7, how: 'queue' });
        expect([made.status, made.data]).to.equal([201, { given: ['how'] }]);
        expect((await host.as('admin').post('/made', { how: 'never' })).code).to.equal(40001);
        expect((await host.as('admin').post('/lies', {})).code).to.equal(50000);
        expect((await host.as('admin').post('/begun', {})).status).to.equal(202);
    });

    it('does not mount when it is not understood', async () => {
        // wrong on purpose
        const wrong: [PluginDefinition, RegExp][] = [
            [
                plugin((ctx) => ctx.route({ ...base, ui: { role: 'table' as never } })),
                /ui\.role must be one of list, card/
            ],
            [
                plugin((ctx) =>
                    ctx.route({ ...base, ui: { links: { x: { operationId: 'x', to: 'y' } as never } } })
                ),
                /ui\.links must be an object of \{ operationId, parameters \}/
            ],
            [plugin((ctx) => ctx.route({ ...base, ui: { name: 'x' } as never })), /ui has no name/],
            [
                plugin((ctx) =>
                    ctx.route({ ...base, ui: { deadline: { until: 'at', keep: 'x', undo: 'y' } as never } })
                ),
                /ui\.deadline must be an object of the texts until, question/
            ],
            [plugin((ctx) => ctx.route({ ...base, answers: 'gone' as never })), /answers "gone"/],
            [
                plugin((ctx) => ctx.stream({ ...streamBase, events: { error: joi.any() }, handler: none })),
                /has an event "error"/
            ],
            [
                plugin((ctx) =>
                    ctx.route({
                        ...base,
                        validate: {
                            query: joi.object({ a: joi.string().meta({ ui: { widget: 'x' } }) })
                        }
                    })
                ),
                /query: a: ui\.widget must be one of/
            ],
            [
                definePlugin({
                    settings: joi.object({ a: joi.string().meta({ ui: { column: -1 } }) }),
                    setup: () => undefined
                }),
                /settings: a: ui\.column must be/
            ]
        ];
        for (const [definition, message] of wrong) {
            await expect(createTestHost(definition, { quiet: true }).then((host) => host.close())).to.reject(
                message
            );
        }
    });
});

const base = { method: 'GET', path: '/a', access: 'read', handler: () => null } as const;
const streamBase = { path: '/a', access: 'read' } as const;
async function* none(): AsyncGenerator<never> {
    // no events
}
