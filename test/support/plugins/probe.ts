/** A plugin with a route of every kind, and its partner. They must give the same answers wherever their code runs. */
import { type Call, contract, defineErrors, definePlugin, errors, joi, reply } from '@portico/sdk';
import { defineEntity, p } from '@portico/sdk/db';

import { usePrograms, useServices } from './programs.ts';

const failures = defineErrors({ TEAPOT: { code: 41850, message: 'I am a teapot' } });
const notes = defineEntity({
    name: 'Note',
    tableName: 'probe_notes',
    properties: { id: p.integer().primary(), text: p.string(), hidden: p.string().hidden() }
});

interface MathContract {
    add(
        input: { a: number; b: number },
        call: Call
    ): Promise<{ sum: number; caller: string; actor: string | null }>;
    count(input: { to: number }, call: Call): AsyncIterable<{ n: number }>;
}

export const math = definePlugin({
    setup: () => ({
        add: async ({ a, b }: { a: number; b: number }, { plugin, actor }: Call) => ({
            sum: a + b,
            caller: plugin,
            actor: actor?.username ?? null
        }),
        async *count({ to }: { to: number }, _call: Call) {
            for (let n = 0; n < to; n += 1) {
                yield { n };
            }
        }
    })
});

export const probe = definePlugin({
    settings: joi.object({ greeting: joi.string().default('Hello') }),
    requires: { math: contract<MathContract>() },
    entities: [notes],
    migrations: [
        {
            name: '1',
            up: [
                'create table probe_notes (id integer primary key, text text not null, hidden text not null)'
            ]
        }
    ],
    setup(ctx) {
        ctx.route({
            method: 'GET',
            path: '/hello/{name}',
            access: 'read',
            validate: { params: joi.object({ name: joi.string().max(5).required() }) },
            handler: ({ params }) => ({ text: `${ctx.settings.greeting}, ${params.name}` })
        });
        ctx.route({
            method: 'POST',
            path: '/notes',
            access: 'write',
            validate: { payload: joi.object({ text: joi.string().required() }) },
            async handler({ payload, audit }) {
                const note = await ctx.db.write(async (em) =>
                    em.create(notes, { text: payload.text, hidden: 'not to be seen' })
                );
                void audit;
                return reply.created(`/api/plugins/probe/notes/${note.id}`, note);
            }
        });
        ctx.route({
            method: 'GET',
            path: '/notes',
            access: 'read',
            handler: async () =>
                reply.list(await ctx.db.read((em) => em.find(notes, {})), { total: 1, next: 'abc' })
        });
        ctx.route({
            method: 'PUT',
            path: '/notes/{id}',
            access: 'write',
            validate: {
                params: joi.object({ id: joi.number().required() }),
                payload: joi.object({ text: joi.string() })
            },
            handler(request) {
                if (request.ifMatch === '1') {
                    throw errors.stale(2);
                }
                request.audit({
                    resource: 'note',
                    resourceId: request.params.id,
                    after: { text: request.payload.text }
                });
                return { version: 7, ...request.payload };
            }
        });
        ctx.route({
            method: 'GET',
            path: '/tea',
            access: 'read',
            handler: () => {
                throw failures.TEAPOT({ pot: 1 });
            }
        });
        ctx.route({
            method: 'GET',
            path: '/bug',
            access: 'read',
            handler: () => {
                throw new Error('a secret of the inside');
            }
        });
        ctx.route({
            method: 'GET',
            path: '/forged-failure',
            access: 'read',
            handler: () => {
                throw Object.assign(new Error('fine'), {
                    '~portico': 'failure',
                    code: 20000,
                    reason: 'FINE',
                    data: null
                });
            }
        });
        ctx.route({
            method: 'GET',
            path: '/headers',
            access: 'read',
            handler: () =>
                reply.with(
                    { n: 1 },
                    {
                        headers: {
                            'x-mine': 'yes',
                            'set-cookie': 'a=b',
                            'content-security-policy': 'none',
                            'Access-Control-Allow-Origin': '*'
                        }
                    }
                )
        });
        ctx.route({
            method: 'GET',
            path: '/me',
            access: 'read',
            handler: async ({ actor }) => ({
                can: actor.can('things:read'),
                own: actor.can('write'),
                things: (await ctx.api.call(actor, { id: 'things.list' })).data
            })
        });
        ctx.route({
            method: 'GET',
            path: '/refused',
            access: 'read',
            handler: async ({ actor }) =>
                Promise.all(
                    ['things.wipe', 'auth.me', 'probe.get.tea', 'no.such'].map(
                        async (id) => (await ctx.api.call(actor, { id })).code
                    )
                )
        });
        ctx.route({
            method: 'GET',
            path: '/forged',
            access: 'read',
            handler: async ({ actor }) =>
                ctx.api.call({ ...actor, can: () => true, permissions: ['*'] }, { id: 'things.list' })
        });
        let kept: { readonly actor: Parameters<typeof ctx.api.call>[0] } | null = null;
        ctx.route({
            method: 'GET',
            path: '/kept',
            access: 'read',
            handler: async ({ actor }) => {
                const [before] = [kept];
                kept ??= { actor };
                return before === null ? null : ctx.api.call(before.actor, { id: 'things.list' });
            }
        });
        let unread: { readonly actor: Parameters<typeof ctx.api.call>[0] } | null = null;
        ctx.route({
            method: 'GET',
            path: '/unread',
            access: 'read',
            handler: async (request) => {
                const before = unread;
                unread ??= request;
                return before === null ? null : ctx.api.call(before.actor, { id: 'things.list' });
            }
        });
        ctx.route({
            method: 'GET',
            path: '/visits',
            access: 'read',
            async handler() {
                const found: unknown[] = [];
                for await (const record of ctx.accessLog({ from: new Date(1000) })) {
                    found.push([record, record.at instanceof Date]);
                    if (found.length === 2) {
                        break;
                    }
                }
                return found;
            }
        });
        ctx.route({
            method: 'GET',
            path: '/panel',
            access: 'read',
            async handler() {
                const told = (work: Promise<unknown>): Promise<unknown> =>
                    work.catch((error: { code?: number }) => error.code);
                return [
                    await ctx.panel.listeners(),
                    await ctx.panel.folders(),
                    [await ctx.panel.hasPlugin('math'), await ctx.panel.hasPlugin('gone')],
                    await told(ctx.panel.rehearse('/usr')),
                    await told(ctx.panel.rehearse('/nowhere')),
                    await told(ctx.panel.rehearse('/'))
                ];
            }
        });
        ctx.hooks.tap('backup.collect', async ({ folder, only = [] }) => {
            const file = await ctx.files(folder).open('notes.txt', 'wx');
            await file.writeFile(only.join());
            return [{ name: 'notes', title: 'Notes', path: 'notes.txt' }];
        });
        ctx.route({
            method: 'POST',
            path: '/services',
            access: 'write',
            handler: () => useServices(ctx.services)
        });
        ctx.route({
            method: 'POST',
            path: '/programs',
            access: 'write',
            handler: () => usePrograms(ctx)
        });
        ctx.route({
            method: 'POST',
            path: '/mandate',
            access: 'write',
            stepUp: true,
            async handler({ actor }) {
                const { id } = await ctx.mandates.give(actor, {
                    title: 'A test',
                    routes: ['things.list'],
                    expiresAt: new Date(Date.now() + 60_000)
                });
                const told = (work: Promise<unknown>): Promise<unknown> =>
                    work.catch((error: { code?: number; message: string }) => [error.code, error.message]);
                const used = await ctx.mandates.use(id, async (giver) => [
                    giver.kind,
                    await ctx.api.call(giver, { id: 'things.list' }),
                    (await ctx.api.call(giver, { id: 'no.such' })).code,
                    await told(ctx.api.call({ ...giver }, { id: 'things.list' }))
                ]);
                const thrown = await told(
                    ctx.mandates.use(id, () => Promise.reject(failures.TEAPOT({ pot: 2 })))
                );
                await ctx.mandates.end(id);
                return [used, thrown, await told(ctx.mandates.use(id, async () => 1))];
            }
        });
        ctx.route({
            method: 'POST',
            path: '/plans',
            access: 'write',
            async handler({ actor }) {
                const told = (work: Promise<unknown>): Promise<unknown> =>
                    work.catch((error: { code?: number }) => error.code ?? 'bug');
                const limits = { maxBytes: 40, maxSeconds: 2 };
                return [
                    await told(ctx.api.plan(actor, { id: 'things.wipe' })),
                    await told(ctx.api.plan(actor, { id: 'no.such' })),
                    await told(ctx.api.read(actor, { id: 'things.list' }, limits)),
                    await told(ctx.api.read(actor, { id: 'things.list' }, { ...limits, maxBytes: 0 })),
                    await told(ctx.api.call(actor, { id: 'things.list', follow: () => undefined })),
                    await told(ctx.api.plan({ ...actor }, { id: 'things.wipe' }))
                ];
            }
        });
        ctx.route({
            method: 'GET',
            path: '/sum',
            access: 'read',
            handler: ({ actor }) => ctx.plugins.math.add({ a: 2, b: 3 }, { actor })
        });
        ctx.route({
            method: 'GET',
            path: '/count',
            access: 'read',
            async handler() {
                const seen: number[] = [];
                for await (const { n } of ctx.plugins.math.count({ to: 3 })) {
                    seen.push(n);
                }
                return seen;
            }
        });
        ctx.stream({
            path: '/ticks',
            access: 'read',
            async *handler({ signal, lastEventId }) {
                for (let n = Number(lastEventId ?? 0); n < 3 && !signal.aborted; n += 1) {
                    yield { id: String(n), data: { n } };
                }
            }
        });
        ctx.upload({
            method: 'PUT',
            path: '/upload',
            access: 'write',
            accepts: ['*/*'],
            maxBytes: 10,
            async handler({ body, type, length }) {
                let bytes = 0;
                for await (const chunk of body) {
                    bytes += chunk.length;
                }
                return { bytes, type, length };
            }
        });
        ctx.download({
            path: '/file',
            access: 'read',
            handler: () => ({
                size: 10,
                type: 'text/plain',
                name: 'ten.txt',
                version: 'v1',
                async *open({ start, end }) {
                    yield Buffer.from('0123456789'.slice(start, end ?? 10));
                }
            })
        });
        ctx.http({
            methods: ['PATCH', 'GET'],
            path: '/raw',
            access: 'write',
            raw: 'a protocol of its own',
            maxBytes: 100,
            async handler(request, { actor }) {
                const bytes = request.body === null ? 0 : (await request.arrayBuffer()).byteLength;
                return new Response(request.method === 'GET' ? '<script>alert(1)</script>' : null, {
                    status: request.method === 'GET' ? 200 : 204,
                    headers: {
                        'upload-offset': String(bytes),
                        'x-who': actor.username ?? '',
                        'set-cookie': 'a=b',
                        'x-auth': String(request.headers.get('authorization')),
                        'content-type': 'text/html'
                    }
                });
            }
        });
        ctx.route({
            method: 'POST',
            path: '/tickets',
            access: 'use',
            handler: ({ actor }) => ctx.tickets.issue(actor, { permission: 'use', data: { name: 'sh' } })
        });
        ctx.socket({
            path: '/socket/{ticket}',
            access: { ticket: 'ticket', permission: 'use' },
            validate: { params: joi.object({ ticket: joi.string().required() }) },
            async handler(socket, { ticket, actor }) {
                await socket.send(JSON.stringify({ ticket, who: actor.username }));
                for await (const message of socket) {
                    await socket.send(`echo ${String(message)}`);
                }
            }
        });
    }
});
