import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import {
    type Actor,
    type ApiAnswer,
    type ApiText,
    type Context,
    definePlugin,
    errors,
    joi,
    type Plan
} from '@portico/sdk';

import { json } from '../../../../../../core/src/server/http/route.ts';
import { createPluginRig, entriesOf, type PluginRig } from '../../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;
let ctx: Context;
/** What runs while a request of `who` is under way. */
let work: (actor: Actor) => Promise<unknown>;
let ran: string[] = [];

const note = joi.object({ text: joi.string().max(5), pin: joi.secret(), version: joi.number() });
const params = joi.object({ id: joi.number().required() });
const routes = [
    json({
        id: 'notes.create',
        method: 'POST',
        path: '/api/notes',
        access: 'things:write',
        summary: 'Write a note',
        validate: { payload: note },
        handler: () => ran.push('create')
    }),
    json({
        id: 'notes.validate',
        method: 'POST',
        path: '/api/notes/validate',
        effect: 'read',
        access: 'things:write',
        summary: 'Try a note',
        validate: { payload: note },
        handler({ payload }) {
            if (payload.text === 'taken') {
                throw errors.conflict('text');
            }
            return null;
        }
    }),
    json({
        id: 'notes.get',
        method: 'GET',
        path: '/api/notes/{number}',
        access: 'things:read',
        summary: 'Read a note',
        validate: { params: joi.object({ number: joi.number().required() }) },
        handler: ({ params: { number } }) => ({ id: number, text: 'old', pinSet: true, version: 3 })
    }),
    json({
        id: 'notes.update',
        method: 'PUT',
        path: '/api/notes/{id}',
        access: 'things:write',
        summary: 'Change a note',
        validate: { params, payload: note },
        handler: () => ran.push('update')
    }),
    json({
        id: 'notes.remove',
        method: 'DELETE',
        path: '/api/notes/{id}',
        access: 'things:write',
        summary: 'Remove a note',
        stepUp: false,
        validate: { params },
        handler: () => ran.push('remove')
    }),
    json({
        id: 'notes.sweep',
        method: 'POST',
        path: '/api/sweep',
        access: 'things:write',
        summary: 'Sweep, in a while',
        handler: (call) =>
            rig.tasks
                .start({
                    kind: 'sweep',
                    access: 'things:read',
                    call,
                    async work(run) {
                        run.progress(0.5, 'half');
                        await wait(300, undefined, { signal: run.signal });
                        return { swept: 3 };
                    }
                })
                .then((task) => ({
                    '~portico': 'reply',
                    status: 202,
                    message: 'accepted',
                    headers: {},
                    data: task
                })) // as reply.accepted makes it
    })
];

const probe = definePlugin({
    setup(context) {
        ctx = context as Context;
        ctx.route({
            method: 'POST',
            path: '/do',
            access: 'read',
            effect: 'read',
            handler: async ({ actor }) => ({ given: (await work(actor)) ?? null })
        });
        ctx.route({
            method: 'POST',
            path: '/do-freshly',
            access: 'read',
            stepUp: true,
            effect: 'read',
            handler: async ({ actor }) => ({ given: (await work(actor)) ?? null })
        });
        ctx.route({
            method: 'PUT',
            path: '/own/{id}',
            id: 'own',
            access: 'write',
            validate: { params, payload: note },
            handler: () => ({ ran: ran.push('own') })
        });
        ctx.route({
            method: 'GET',
            path: '/own/{id}',
            id: 'own.get',
            access: 'read',
            validate: { params },
            handler: () => ({ text: 'old' })
        });
        ctx.stream({
            path: '/ticks',
            id: 'ticks',
            access: 'read',
            async *handler({ signal }) {
                try {
                    for (let n = 0; !signal.aborted; n += 1) {
                        yield { data: { n } };
                        await wait(20);
                    }
                } finally {
                    ran.push('ticks ended');
                }
            }
        });
        ctx.download({
            path: '/file',
            id: 'file',
            access: 'read',
            handler: () => ({
                size: 9,
                type: 'text/plain; charset=utf-8',
                async *open() {
                    yield Buffer.from('äöüß-');
                },
                close: () => void ran.push('file closed')
            })
        });
        ctx.stream({
            path: '/silent',
            id: 'silent',
            access: 'read',
            handler: () => new Promise(() => undefined)
        });
    }
});
const capabilities = { api: { read: ['*'], write: ['*'] } };

async function during<T>(unit: (actor: Actor) => Promise<T>, who = 'admin'): Promise<T> {
    work = unit;
    const { data, code, text } = await rig.ask(who, 'POST', '/api/plugins/caller/do');
    expect(code, text).to.equal(0);
    return data.given as T;
}

describe('ctx.api', () => {
    beforeEach(async () => {
        ran = [];
        rig = await createPluginRig({ routes });
        rig.user('admin', [
            'things:read',
            'things:write',
            ...['probe', 'caller'].flatMap((each) => [`${each}:read`, `${each}:write`])
        ]);
        rig.user('viewer', ['things:read', 'caller:read', 'probe:read']);
        await rig.run(probe, { capabilities });
        await rig.run(probe, { capabilities, name: 'caller' });
    });
    afterEach(() => rig.close());

    const plan = (call: Parameters<Context['api']['plan']>[1], who?: string): Promise<Plan> =>
        during((actor) => ctx.api.plan(actor, call), who);

    it('plan: an update by what is there, with its undo, and does not make it', async () => {
        const planned = await plan({ id: 'notes.update', params: { id: 7 }, payload: { text: 'new' } });
        expect(planned).to.equal({
            method: 'PUT',
            path: '/api/notes/7',
            permission: 'things:write',
            etag: '3',
            before: { id: 7, text: 'old', pinSet: true, version: 3 },
            after: { id: 7, text: 'new', pinSet: true, version: 3 },
            changes: [{ path: 'text', before: 'old', after: 'new' }],
            validated: null,
            undo: { id: 'notes.update', params: { id: 7 }, payload: { text: 'old' } }
        });
        expect([ran, entriesOf(rig), rig.http.refusals]).to.equal([[], [], []]);
    });

    it('plan: hides secrets, and offers no undo that would need one', async () => {
        const { after, undo, changes } = await plan({
            id: 'notes.update',
            params: { id: 7 },
            payload: { pin: '1234' }
        });
        expect([after, undo, JSON.stringify(changes).includes('1234')]).to.equal([
            { id: 7, text: 'old', pinSet: true, pin: '[secret]', version: 3 },
            null,
            false
        ]);
    });

    it('plan: asks the /validate beside the route, for creations; a removal shows what goes', async () => {
        const call = { id: 'notes.create', payload: { text: 'new' } };
        const [fine, taken, gone] = [
            await plan(call),
            await plan({ ...call, payload: { text: 'taken' } }),
            await plan({ id: 'notes.remove', params: { id: 1 } })
        ];
        expect([fine.validated?.code, fine.before, fine.after, fine.undo]).to.equal([
            0,
            null,
            { text: 'new' },
            { id: 'notes.remove' }
        ]);
        expect(taken.validated?.code).to.equal(40900);
        expect([(gone.before as { id: number }).id, gone.after, gone.changes.length, gone.undo]).to.equal([
            1,
            null,
            1,
            null
        ]);
        expect(ran).to.equal([]);
    });

    it('plan: says what the call would answer: shape, permission, version', async () => {
        const shape = await plan({
            id: 'notes.update',
            params: { id: 7 },
            payload: { text: 'much too long' }
        });
        expect([shape.validated?.code, shape.before, shape.changes]).to.equal([40001, null, []]);
        expect(
            (await plan({ id: 'notes.update', params: { id: 7 }, payload: { nope: 1 } })).validated?.code
        ).to.equal(40001);
        expect(
            (await plan({ id: 'notes.update', params: { id: 7 }, payload: {} }, 'viewer')).validated?.code
        ).to.equal(40300);
        expect((await plan({ id: 'things.wipe' })).validated?.code).to.equal(40301);
        const stale = { id: 'notes.update', params: { id: 7 }, payload: {} };
        expect((await plan({ ...stale, ifMatch: '2' })).validated?.code).to.equal(41200);
        expect((await plan({ ...stale, ifMatch: '"3"' })).validated).to.be.null();
        const own = { id: 'probe.own', params: { id: 1 } };
        expect((await plan({ ...own, payload: { text: 'much too long' } })).validated?.code).to.equal(40001);
        expect((await plan({ ...own, payload: { text: 'new' } })).changes).to.equal([
            { path: 'text', before: 'old', after: 'new' }
        ]);
        expect([ran, entriesOf(rig)]).to.equal([[], []]);
        const unknown = await during((actor) =>
            ctx.api.plan(actor, { id: 'no.such' }).catch((error: { code: number }) => error.code)
        );
        expect(unknown).to.equal(40400);
    });

    it('plan: shows nothing that the plugin or a mandate cannot read, and checks no route that it cannot call', async () => {
        await rig.run(probe, {
            name: 'narrow',
            capabilities: { api: { write: ['notes.update', 'notes.create'] } }
        });
        rig.user('admin', ['things:read', 'things:write', 'narrow:read', 'narrow:write']);
        const update = { id: 'notes.update', params: { id: 7 }, payload: { text: 'new' } };
        work = (actor) =>
            Promise.all([
                ctx.api.plan(actor, update),
                ctx.api.plan(actor, { id: 'notes.create', payload: { text: 'taken' } }),
                ...['notes.remove', 'probe.own'].map((id) =>
                    ctx.api
                        .plan(actor, { id, params: { id: 7 } })
                        .catch((error: { code: number }) => error.code)
                )
            ]);
        const {
            data: { given: data }
        } = await rig.ask('admin', 'POST', '/api/plugins/narrow/do');
        const [plan, taken, ...refused] = data as readonly [Plan, Plan, number, number];
        expect([plan.before, plan.etag, plan.after, plan.undo]).to.equal([null, null, { text: 'new' }, null]);
        // What only checks a route comes with the right to call the route.
        expect([taken.validated?.code, refused]).to.equal([40900, [40300, 40300]]);
        work = async (actor) => {
            const { id } = await ctx.mandates.give(actor, { title: 'x', routes: ['notes.update'] });
            return ctx.mandates.use(id, async (giver) => [
                await ctx.api.plan(giver, update),
                await ctx.api
                    .plan(giver, { id: 'notes.create', payload: {} })
                    .catch((error: { code: number }) => error.code)
            ]);
        };
        const given = await rig.ask('admin', 'POST', '/api/plugins/narrow/do-freshly');
        expect([given.data.given[0].before, given.data.given[1]], given.text).to.equal([null, 40300]);
        expect([ran, rig.http.refusals]).to.equal([[], []]);
    });

    it('read: the beginning of a stream and of a download, and lets go of them', async () => {
        const read = (id: string, maxBytes: number, maxSeconds = 2): Promise<ApiText> =>
            during((actor) => ctx.api.read(actor, { id }, { maxBytes, maxSeconds }));
        const begun = Date.now();
        const some = await read('probe.ticks', 60);
        expect([some.status, some.code, some.type, some.truncated, Buffer.byteLength(some.text)]).to.equal([
            200,
            0,
            'text/event-stream',
            true,
            60
        ]);
        expect(Date.now() - begun).to.be.below(1_500);
        const timed = await read('probe.ticks', 1_000_000, 1);
        expect([timed.truncated, timed.text.includes('data: {"n":3}')]).to.equal([true, true]);
        expect(await read('probe.file', 100)).to.equal({
            status: 200,
            code: 0,
            type: 'text/plain',
            text: 'äöüß-',
            truncated: false,
            etag: null,
            next: null
        });
        expect(await read('probe.file', 3)).to.equal({
            status: 200,
            code: 0,
            type: 'text/plain',
            text: 'ä',
            truncated: true,
            etag: null,
            next: null
        });
        const list = await read('things.list', 1_000);
        expect([JSON.parse(list.text).code, list.etag === null]).to.equal([0, false]);
        expect((await read('notes.create', 10)).code).to.equal(40400);
        const silent = await read('probe.silent', 10, 1);
        expect([silent.code, silent.truncated]).to.equal([50300, true]);
        for (let tries = 0; ran.length < 4 && tries < 100; tries += 1) {
            await wait(20);
        }
        expect(ran.sort()).to.equal(['file closed', 'file closed', 'ticks ended', 'ticks ended']);
    });

    it('call: follows a task to its result, and cancels it with its caller', async () => {
        const heard: (number | null)[] = [];
        const done: ApiAnswer = await during((actor) =>
            ctx.api.call(actor, { id: 'notes.sweep', follow: ({ fraction }) => void heard.push(fraction) })
        );
        expect([done.status, done.code, done.data, done.location]).to.equal([
            200,
            0,
            { swept: 3 },
            '/api/tasks/1'
        ]);
        expect(heard).to.include(0.5);
        const stop = new AbortController();
        const cut = await during((actor) =>
            ctx.api
                .call(actor, {
                    id: 'notes.sweep',
                    signal: stop.signal,
                    follow: () => stop.abort(new Error('gone'))
                })
                .catch((error: Error) => error.message)
        );
        expect(cut).to.equal('gone');
        expect(rig.tasks.get(2, rig.user('seer', ['things:read'])).state).to.equal('cancelled');
        expect(
            entriesOf(rig)
                .filter(({ action }) => action === 'cancel')
                .map(({ actor }) => actor.plugin)
        ).to.equal(['caller']);
        const plain = await during((actor) => ctx.api.call(actor, { id: 'notes.sweep' }));
        expect(plain.status).to.equal(202);
    });
});
