import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type ApiAnswer, definePlugin, joi, reply } from '@portico/sdk';

import { json } from '../../../../../../core/src/server/http/route.ts';
import { createPluginRig, entriesOf, type PluginRig } from '../../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;

const routes = [
    json({
        id: 'pages.list',
        method: 'GET',
        path: '/api/pages',
        access: 'things:read',
        summary: 'List pages',
        validate: { query: joi.object({ cursor: joi.string() }) },
        handler: () => reply.list([1, 2], { total: 7, next: 'a/b&c' })
    }),
    json({
        id: 'pages.old',
        method: 'GET',
        path: '/api/old-pages',
        access: 'things:read',
        summary: 'List pages as it was done once',
        deprecated: { since: '1.1.0', removedIn: '2.0.0', instead: 'pages.list' },
        handler: () => []
    }),
    json({
        id: 'pages.create',
        method: 'POST',
        path: '/api/pages',
        access: 'things:unsafe',
        summary: 'Make a page',
        handler: () => reply.created('/api/pages/3', { version: 3 })
    })
];
const capabilities = { api: { read: ['*'], write: ['*'] } };

describe('ctx.api.call', () => {
    beforeEach(async () => {
        rig = await createPluginRig({ routes });
        rig.user('root', ['things:read', 'things:unsafe', 'probe:read']);
    });
    afterEach(() => rig.close());

    it('says the version, the next page, the count and the place of what a route answered', async () => {
        await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.route({
                        method: 'GET',
                        path: '/answers',
                        access: 'read',
                        handler: async ({ actor }) => [
                            await ctx.api.call(actor, { id: 'pages.list' }),
                            await ctx.api.call(actor, { id: 'pages.create' }),
                            await ctx.api.call(actor, { id: 'no.such.route' })
                        ]
                    });
                }
            }),
            { capabilities }
        );
        const { data } = await rig.ask('root', 'GET', '/api/plugins/probe/answers');
        const [list, created, none] = data as readonly ApiAnswer[];
        expect([list?.next, list?.total, list?.location]).to.equal(['a/b&c', 7, null]);
        expect(list?.etag).to.match(/^[\w-]{20,}$/);
        expect([created?.status, created?.etag, created?.location]).to.equal([201, '3', '/api/pages/3']);
        expect([none?.code, none?.etag, none?.next, none?.total, none?.location]).to.equal([
            40400,
            null,
            null,
            null,
            null
        ]);
    });

    it('counts calls of a route that will go, and warns of it once', async () => {
        const generation = await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.route({
                        method: 'GET',
                        path: '/old',
                        access: 'read',
                        handler: async ({ actor }) => [
                            (await ctx.api.call(actor, { id: 'pages.old' })).status,
                            (await ctx.api.call(actor, { id: 'pages.old' })).status
                        ]
                    });
                }
            }),
            { capabilities }
        );
        expect(generation.deprecations()).to.equal([]);
        expect((await rig.ask('root', 'GET', '/api/plugins/probe/old')).data).to.equal([200, 200]);
        expect(generation.deprecations()).to.equal([
            { member: 'route pages.old', removedIn: '2.0.0', count: 2 }
        ]);
        const warnings = rig.http.lines.filter((line) => line.includes('uses what will go'));
        expect(warnings).to.have.length(1);
    });

    it('the catalogue says which routes have a dangerous permission', async () => {
        await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.route({
                        method: 'GET',
                        path: '/routes',
                        access: 'read',
                        handler: async ({ actor }) => {
                            const all = await ctx.api.routes({ for: actor });
                            return all.filter(({ dangerous }) => dangerous).map(({ id }) => id);
                        }
                    });
                }
            }),
            { capabilities }
        );
        expect((await rig.ask('root', 'GET', '/api/plugins/probe/routes')).data).to.equal(['pages.create']);
    });
});

describe('a raw route', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
        rig.user('reader', ['probe:read'], { role: 'viewer' });
    });
    afterEach(() => rig.close());

    it('that only reads, whatever its method, leaves no audit entry; another does', async () => {
        await rig.run(
            definePlugin({
                setup(ctx) {
                    const answer = { access: 'read', raw: 'a test', maxBytes: 100 } as const;
                    ctx.http({
                        ...answer,
                        path: '/quiet',
                        methods: ['POST'],
                        effect: 'read',
                        handler: async (request) => new Response(await request.text())
                    });
                    ctx.http({
                        ...answer,
                        path: '/loud',
                        methods: ['POST'],
                        handler: async (request) => new Response(await request.text())
                    });
                }
            })
        );
        expect((await rig.ask('reader', 'POST', '/api/plugins/probe/quiet', 'x')).text).to.equal('x');
        expect(entriesOf(rig)).to.equal([]);
        rig.user('writer', ['probe:read'], { role: 'operator' });
        expect((await rig.ask('writer', 'POST', '/api/plugins/probe/loud', 'x')).text).to.equal('x');
        expect(entriesOf(rig).length).to.equal(1);
    });

    it('can declare no other effect', async () => {
        const lying = definePlugin({
            setup(ctx) {
                ctx.http({
                    path: '/x',
                    methods: ['GET'],
                    effect: 'destructive' as never, // the types refuse it, too
                    access: 'read',
                    raw: 'a test',
                    maxBytes: 1,
                    handler: () => new Response()
                });
            }
        });
        expect((await rig.prepare(lying).catch((error: Error) => error)) instanceof Error).to.be.true();
    });

    it('sends its head before its body has anything to say, and hears when draining begins', async () => {
        let aborted = false;
        const generation = await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.http({
                        path: '/waits',
                        methods: ['POST'],
                        effect: 'read',
                        access: 'read',
                        raw: 'a test',
                        maxBytes: 10,
                        handler: (request, { signal, actor }) =>
                            new Response(
                                new ReadableStream({
                                    start(controller) {
                                        signal.addEventListener('abort', () => {
                                            aborted = request.signal.aborted;
                                            // The caller is still there: what ends may be finished for it.
                                            void ctx.audit({ action: 'end', resource: 'wait', actor });
                                            controller.close();
                                        });
                                    }
                                }),
                                { headers: { 'content-type': 'text/event-stream', 'x-mine': 'yes' } }
                            )
                    });
                }
            })
        );
        const begun = Date.now();
        const response = await Promise.race([
            fetch(`${rig.url}/api/plugins/probe/waits`, {
                method: 'POST',
                headers: { authorization: 'Bearer reader' },
                body: ''
            }),
            wait(5_000)
        ]);
        expect(response?.headers.get('x-mine')).to.equal('yes');
        const [, text] = await Promise.all([generation.close('the test ends it'), response?.text()]);
        expect([text, aborted]).to.equal(['', true]);
        expect(Date.now() - begun).to.be.below(2_000); // the rig drains for 2 s where something hangs
        expect(entriesOf(rig).map(({ action }) => action)).to.equal(['end']);
    });
});
