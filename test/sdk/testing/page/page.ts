import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin, errors, joi, type PluginDefinition } from '@portico/sdk';
import { type Panel, PanelError } from '@portico/sdk/page';
import {
    createTestHost,
    openTestPage,
    type TestHost,
    type TestPage,
    type TestPageOptions
} from '@portico/testing';

import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { describe, it } = lab;

interface Operations {
    readonly 'test.cups': {
        readonly query?: { readonly limit?: number };
        readonly data: readonly { readonly title: string }[];
    };
    readonly 'test.pour': {
        readonly path: { readonly tea: string };
        readonly body: { readonly size: number };
        readonly data: { readonly poured: string };
    };
    readonly 'test.break': { readonly data: null };
    readonly 'test.secret': { readonly data: null };
    readonly 'test.steps': { readonly data: unknown };
    readonly 'test.label': { readonly data: Blob };
    readonly 'test.picture': { readonly data: { readonly bytes: number } };
    readonly 'hosts.list': {
        readonly query?: { readonly q?: string };
        readonly data: readonly { readonly domain: string }[];
    };
    readonly 'users.list': { readonly data: unknown };
}

const tea = (): PluginDefinition =>
    definePlugin({
        setup(ctx) {
            const broken = { count: 0 };
            ctx.route({
                method: 'GET',
                path: '/cups',
                id: 'cups',
                access: 'read',
                returns: joi.array().items(joi.object({ title: joi.string() })),
                handler: () => [{ title: 'Oolong' }, { title: 'Sencha' }].slice(broken.count)
            });
            ctx.route({
                method: 'PUT',
                path: '/cups/{tea}',
                id: 'pour',
                access: 'write',
                validate: {
                    params: joi.object({ tea: joi.string().required() }),
                    payload: joi.object({ size: joi.number().max(5).required() })
                },
                handler: ({ params, payload }) => ({ poured: `${params.tea} ${payload.size}` })
            });
            ctx.route({
                method: 'DELETE',
                path: '/cups',
                id: 'break',
                access: 'write',
                ui: { title: 'Break', confirm: 'Break a cup?' },
                handler() {
                    broken.count += 1;
                    return null;
                }
            });
            ctx.route({
                method: 'GET',
                path: '/secret',
                id: 'secret',
                access: 'write',
                handler: () => Promise.reject(errors.notFound('secret'))
            });
            ctx.stream({
                path: '/steps',
                id: 'steps',
                access: 'read',
                async *handler() {
                    yield { event: 'step', data: { n: 1 } };
                    yield { data: { n: 2 } };
                }
            });
            ctx.download({
                path: '/label',
                id: 'label',
                access: 'read',
                handler: () => ({
                    name: 'label.txt',
                    type: 'text/plain',
                    size: 6,
                    open: () => new Blob(['Oolong']).stream()
                })
            });
            ctx.upload({
                method: 'POST',
                maxBytes: 1_000,
                path: '/picture',
                id: 'picture',
                access: 'write',
                accepts: ['image/png'],
                handler: async ({ body }) => {
                    let bytes = 0;
                    for await (const chunk of body) {
                        bytes += chunk.length;
                    }
                    return { bytes };
                }
            });
            ctx.socket({
                path: '/echo',
                id: 'echo',
                access: 'read',
                async handler(socket) {
                    for await (const message of socket) {
                        await socket.send(message);
                    }
                }
            });
        }
    });

const manifest = {
    permissions: { write: 'Change' },
    capabilities: { api: { read: ['hosts.list'] } },
    contributes: {
        pages: [
            { id: 'cups', title: 'Cups', access: 'read', entry: 'assets/page.js', uses: ['hosts.list'] },
            { id: 'kitchen', title: 'Kitchen', access: 'write', entry: 'assets/page.js' }
        ]
    }
};

async function opened(
    work: (page: TestPage<Operations>, host: TestHost) => Promise<void>,
    options: Partial<TestPageOptions> = {}
): Promise<void> {
    await using host = await createTestHost(tea(), { quiet: true, manifest });
    await using page = await openTestPage<Operations>(host, { page: 'cups', ...options });
    await work(page, host);
}

const refusal = async (work: Promise<unknown>): Promise<PanelError> => {
    const error: unknown = await work.then(
        () => null,
        (reason: unknown) => reason
    );
    expect(error).to.be.an.instanceOf(PanelError);
    return error as PanelError;
};

describe('openTestPage', () => {
    it('calls the routes of the plugin as the user, and says what they refuse', async () => {
        await opened(async ({ panel, calls }) => {
            expect((await panel.call('test.cups')).data).to.equal([{ title: 'Oolong' }, { title: 'Sencha' }]);
            const poured = await panel.call('test.pour', { path: { tea: 'a b' }, body: { size: 2 } });
            expect(poured).to.include({ status: 200, code: 0, data: { poured: 'a b 2' } });
            const wrong = await refusal(panel.call('test.pour', { path: { tea: 'x' }, body: { size: 9 } }));
            expect([wrong.status, wrong.code, wrong.reason]).to.equal([400, 40001, 'VALIDATION_FAILED']);
            expect((await refusal(panel.call('test.secret'))).code).to.equal(40400);
            expect(calls.map(({ status }) => status)).to.equal([200, 200, 400, 404]);
        });
        await opened(
            async ({ panel, context }) => {
                expect(context.permissions).to.equal(['read']);
                expect((await refusal(panel.call('test.secret'))).reason).to.equal('FORBIDDEN');
            },
            { as: 'viewer' }
        );
    });

    it('calls of others what the page names in its uses, and nothing else', async () => {
        await opened(async ({ panel }, host) => {
            host.api.route({
                id: 'hosts.list',
                handler: ({ query }) => [{ domain: `${String((query as { q?: string }).q)}.example` }]
            });
            host.api.route({ id: 'users.list', handler: () => [] });
            expect((await panel.call('hosts.list', { query: { q: 'shop' } })).data).to.equal([
                { domain: 'shop.example' }
            ]);
            expect((await refusal(panel.call('users.list'))).reason).to.equal('NOT_ALLOWED');
            // The types know no such operation; a page without types asks for it all the same.
            const untyped = panel as unknown as Panel;
            expect((await refusal(untyped.call('test.none'))).reason).to.equal('NOT_ALLOWED');
        });
    });

    it('asks before what cannot be undone, and does it only after a yes', async () => {
        const answers = [false, true];
        await opened(
            async ({ panel, questions }) => {
                expect((await refusal(panel.call('test.break'))).reason).to.equal('CANCELLED');
                expect((await panel.call('test.cups')).data).to.have.length(2);
                await panel.call('test.break');
                expect((await panel.call('test.cups')).data).to.have.length(1);
                expect(questions).to.equal([
                    { question: 'Break a cup?', action: 'Break', answer: false },
                    { question: 'Break a cup?', action: 'Break', answer: true }
                ]);
            },
            { confirm: () => answers.shift() ?? false }
        );
        await opened(async ({ panel }) => {
            const { message } = await refusal(panel.confirm('Really?'));
            expect(message).to.contain('"Really?"').and.to.contain('confirm of openTestPage');
        });
    });

    it('follows streams, saves and sends files, and opens sockets', async () => {
        await opened(async ({ panel, saved }) => {
            const events: unknown[] = [];
            for await (const { event, data } of panel.follow('test.steps')) {
                events.push([event, data]);
            }
            expect(events).to.equal([
                ['step', { n: 1 }],
                ['message', { n: 2 }]
            ]);
            expect(await (await panel.call('test.label')).data.text()).to.equal('Oolong');
            await panel.download('test.label');
            expect(saved.map(({ bytes }) => Buffer.from(bytes).toString())).to.equal(['Oolong']);
            const picture = new Blob([new Uint8Array(7)], { type: 'image/png' });
            expect((await panel.upload('test.picture', picture)).data).to.equal({ bytes: 7 });
            expect((await refusal(panel.upload('test.picture', picture, { tus: {} }))).reason).to.equal(
                'WRONG_PARAMS'
            );
            const heard: unknown[] = [];
            const socket = panel.open('/api/plugins/test/echo', (data) => heard.push(data));
            await until(() => {
                socket.send('hello');
                return heard.length > 0;
            }, 'the echo');
            expect(heard[0]).to.equal('hello');
            socket.close();
            expect(await socket.closed).to.include({ code: 1000 });
            expect(
                (await refusal(panel.open('/api/plugins/other/echo', () => undefined).closed.then())).reason
            ).to.equal('NOT_ALLOWED');
        });
    });

    it('keeps what the page tells, and tells the page what changes', async () => {
        await opened(
            async (page) => {
                const { panel } = page;
                const seen: string[] = [];
                panel.onContext(({ location, visible }) => seen.push(`${location} ${visible}`));
                await panel.toast('Poured');
                await panel.toast('Spilt', 'bad');
                await panel.title('Two cups');
                await panel.resize(120);
                await panel.navigate('cup=2');
                await panel.navigate('/hosts');
                await page.change({ visible: false });
                expect(page.toasts).to.equal([
                    { text: 'Poured', tone: 'good' },
                    { text: 'Spilt', tone: 'bad' }
                ]);
                expect([page.title, page.height, page.led]).to.equal(['Two cups', 120, ['/hosts']]);
                expect(panel.context).to.include({
                    language: 'zh',
                    host: 3,
                    place: 'nav',
                    location: 'cup=2'
                });
                await until(() => seen.includes('cup=2 false'), 'the page to know');
            },
            { context: { language: 'zh', host: 3 } }
        );
    });

    it('runs the page’s own module, each time from its beginning, and gives the global object back', async () => {
        const before = Object.getOwnPropertyNames(globalThis).sort();
        await opened(async (page) => {
            const entry = new URL('../../../fixtures/pages/cups.js', import.meta.url);
            await page.load(entry);
            expect(page.title).to.equal('2 cups');
            await page.load(entry);
            await page.change({ language: 'de' });
            await until(() => page.toasts.length === 2, 'both runs to tell');
            expect(page.toasts[0]).to.equal({ text: 'now in de', tone: 'good' });
        });
        expect(Object.getOwnPropertyNames(globalThis).sort()).to.equal(before);
    });

    it('opens no page that the manifest lacks or the user may not see, and one at a time', async () => {
        await using host = await createTestHost(tea(), { quiet: true, manifest });
        await expect(openTestPage(host, { page: 'none' })).to.reject(
            TypeError,
            /no page none, only cups, kitchen/
        );
        await expect(openTestPage(host, { page: 'kitchen', as: 'viewer' })).to.reject(
            TypeError,
            /test:write/
        );
        await using page = await openTestPage(host, { page: 'cups' });
        expect(page.title).to.equal('Cups');
        await expect(openTestPage(host, { page: 'cups' })).to.reject(/open already/);
        await using bare = await createTestHost(tea(), {
            quiet: true,
            manifest: { permissions: { write: 'Change' } }
        });
        await expect(openTestPage(bare, { page: 'cups' })).to.reject(TypeError, /brings no page/);
    });
});
