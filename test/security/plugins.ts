/** Plugins that are badly written or mean harm, and people who come by way of plugins: the panel, its record and the other plugins stay what they are. */
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readPage } from '../support/docs/markdown.ts';
import type { Answer } from '../support/panel/client.ts';
import { adminPassword, startPanel, type TestPanel } from '../support/panel/panel.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../support/plugins/folder.ts';
import { ended } from '../support/plugins/panel.ts';
import { versionedPackage } from '../support/plugins/versioned.ts';
import { packageArchive } from '../support/registry/archive.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 120_000;
const headers = `{
    'set-cookie': 'session=stolen', 'access-control-allow-origin': '*', 'access-control-allow-credentials': 'true', 'refresh': '0; url=https://evil.example', 'clear-site-data': '"*"', 'service-worker-allowed': '/',
    'content-security-policy': 'default-src *', 'strict-transport-security': 'max-age=1', 'x-request-id': 'forged', 'connection': 'upgrade', 'transfer-encoding': 'chunked', 'alt-svc': 'h2="evil.example:443"', 'www-authenticate': 'Basic', 'authorization': 'Bearer x',
    'x-frame-options': 'ALLOWALL', 'link': '</evil>; rel=preload', 'sourcemap': 'https://evil.example', 'location': 'https://evil.example', 'proxy-authenticate': 'Basic'
}`;
const plugins: readonly (readonly [
    name: string,
    code: string,
    manifest?: Readonly<Record<string, unknown>>
])[] = [
    [
        'good',
        pluginModule(
            `${helloRoute}\nctx.route({ method: 'POST', path: '/hello', access: 'write', audit: { action: 'wave' }, handler: () => ({ text: 'Hello' }) });`
        )
    ],
    [
        'echoes',
        pluginModule(
            "ctx.hooks.tap('audit.recorded', async ({ action }) => { heard += 1; await ctx.audit({ action: 'heard', resource: 'echo', after: { action } }); });\nctx.route({ method: 'GET', path: '/heard', access: 'read', handler: () => ({ heard }) });",
            { head: 'let heard = 0;' }
        ),
        { capabilities: { taps: ['audit.recorded'] } }
    ],
    [
        'doorman',
        pluginModule(
            "ctx.hooks.tap('auth.beforeLogin', () => { throw new Error('I do not work'); });\nctx.hooks.tap('plugin.stateChanged', () => { throw new Error('Nor do I'); });"
        ),
        { capabilities: { taps: ['auth.beforeLogin'] } }
    ],
    [
        'sleeper',
        pluginModule("ctx.hooks.tap('auth.beforeLogin', () => new Promise(() => undefined));"),
        { capabilities: { taps: ['auth.beforeLogin'] } }
    ],
    [
        'liar',
        pluginModule(
            `
        const headers = ${headers};
        ctx.route({ method: 'GET', path: '/json', access: 'read', handler: () => reply.with({ ok: true }, { headers }) });
        ctx.http({ path: '/raw', methods: ['GET'], access: 'read', raw: 'it lies', handler: () => new Response('x', { headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'transfer-encoding' && name !== 'connection')) }) });
        ctx.route({ method: 'GET', path: '/split', access: 'read', handler: () => reply.with({ ok: true }, { headers: { 'x-a': 'b\\r\\nset-cookie: stolen=1' }, message: 'a\\nb' }) });
        ctx.route({ method: 'GET', path: '/throws/{what}', access: 'read', validate: { params: joi.object({ what: joi.string() }) }, handler: ({ params: { what } }) => { throw { nothing: undefined, null: null, text: 'text', proto: Object.create(null), getter: { get message() { throw new Error('in a getter'); } } }[what]; } });
        ctx.route({ method: 'GET', path: '/answers/{what}', access: 'read', validate: { params: joi.object({ what: joi.string() }) }, handler: ({ params: { what } }) => ({ undefined: undefined, bigint: { n: 1n }, cycle, number: 1, getter: { get x() { throw new Error('in a getter'); } }, status: { [mark]: 'reply', status: 999, message: 'ok', headers: {}, data: null }, proto: JSON.parse('{"__proto__":{"polluted":true}}') })[what] });
        ctx.stream({ path: '/events', access: 'read', handler: async function* () { yield { event: 'a\\nevent: forged', id: '1\\n\\ndata: forged', data: 'x\\n\\nevent: end' }; } });
        ctx.http({ path: '/endless', methods: ['GET'], access: 'read', raw: 'it never ends', handler: () => new Response(new ReadableStream({ pull(controller) { controller.enqueue(new Uint8Array(1024)); return new Promise((resolve) => setTimeout(resolve, 5)); } })) });
    `,
            {
                head: "import { reply } from '@portico/sdk';\nconst cycle = {}; cycle.self = cycle; const mark = '~por' + 'tico';"
            }
        )
    ],
    [
        'sloppy',
        pluginModule(`
        ctx.socket({ path: '/talk', access: 'read', handler: async (socket) => { setInterval(() => { socket.send('x'); }, 1); for await (const text of socket) { socket.send(text); } } });
        ctx.upload({ method: 'POST', path: '/take', access: 'write', accepts: ['application/octet-stream'], maxBytes: 1e9, handler: async ({ body }) => { const reader = body.getReader(); reader.read().catch(() => undefined); return { ok: true }; } });
        ctx.stream({ path: '/ticks', access: 'read', handler: async function* () { for (;;) { yield { data: 'x'.repeat(100000) }; } } });
        ctx.route({ method: 'GET', path: '/wait', access: 'read', handler: ({ signal }) => new Promise((resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))) });
        ${helloRoute}
    `)
    ],
    [
        'stays',
        pluginModule(
            "ctx.route({ method: 'POST', path: '/work', access: 'write', handler: ({ actor }) => ctx.task({ kind: 'work', access: 'read', actor }, () => new Promise(() => undefined)) });"
        )
    ],
    [
        'calls',
        pluginModule(`
        ctx.route({ method: 'POST', path: '/call', access: 'read', effect: 'read', validate: { payload: joi.object().unknown() }, handler: ({ actor, payload }) => ctx.api.call(actor, payload) });
        ctx.route({ method: 'GET', path: '/loop', access: 'read', handler: async ({ actor }) => ctx.api.call(actor, { id: 'mirror.loop' }) });
    `),
        { capabilities: { api: { read: ['*'], write: ['*'] } } }
    ],
    [
        'mirror',
        pluginModule(`
        ctx.route({ method: 'GET', path: '/loop', id: 'loop', access: 'read', handler: async ({ actor }) => ctx.api.call(actor, { id: 'calls.loop' }) });
        ctx.route({ method: 'GET', path: '/secrets/one', id: 'one', access: 'read', handler: () => ({ secret: true }) });
        ctx.route({ method: 'GET', path: '/open/{path*}', id: 'open', access: 'read', validate: { params: joi.object({ path: joi.string() }) }, handler: ({ params }) => params });
    `),
        { capabilities: { api: { read: ['*'] } } }
    ],
    [
        'narrow',
        pluginModule(
            "ctx.route({ method: 'POST', path: '/call', access: 'read', effect: 'read', validate: { payload: joi.object().unknown() }, handler: ({ actor, payload }) => ctx.api.call(actor, payload) });"
        ),
        { capabilities: { api: { read: ['mirror.open'] } } }
    ],
    [
        'open',
        pluginModule(helloRoute, {
            more: 'settings: joi.object({ any: joi.object().unknown(), list: joi.array(), secret: joi.secret() }),'
        })
    ],
    [
        'past',
        pluginModule(
            "ctx.route({ method: 'GET', path: '/reach', access: 'read', handler: async () => ({ process: process.pid, asked: await ctx.exec('id', []).then(() => 'ran', ({ code }) => code), master: readFileSync(ctx.dataDir + '/../../../keys/master').length, ran: execFileSync('id', ['-u']).toString().trim() }) });",
            {
                head: "import { execFileSync } from 'node:child_process';\nimport { readFileSync } from 'node:fs';"
            }
        )
    ],
    ['constructor', pluginModule(`${helloRoute}\nreturn { say: async () => ({ a: 1 }) };`)],
    [
        'uses',
        pluginModule(
            "ctx.route({ method: 'GET', path: '/say', access: 'read', handler: () => ctx.plugins.constructor.say({}) });",
            { more: 'requires: { constructor: contract() },' }
        ),
        { requires: { constructor: '*' } }
    ]
];

let folder: PluginFolder;
let panel: TestPanel;

const get = (path: string, options = {}): Promise<Answer> => panel.client.get(path, options);
const post = (path: string, body?: unknown, options = {}): Promise<Answer> =>
    panel.client.post(path, body, options);
const put = (name: string, body: unknown, options = {}): Promise<Answer> =>
    panel.client.put(`/api/plugins/${name}`, body, options);
const stateOf = async (name: string): Promise<string> =>
    (await get(`/api/plugins/${name}`)).data.state as string;

/** Says bytes, and hears until the other side closes, or falls silent after it has begun to answer. */
function say(
    text: string,
    silenceMs = 400,
    onHeard: (heard: string) => void = () => undefined
): Promise<string> {
    return new Promise((resolve, reject) => {
        const socket = connect(panel.port, '127.0.0.1');
        let heard = '';
        socket.setTimeout(60_000, () => socket.destroy());
        socket.on('data', (chunk: Buffer) => {
            socket.setTimeout(silenceMs);
            heard += chunk.toString('latin1');
            onHeard(heard);
        });
        socket.once('error', reject);
        socket.once('close', () => resolve(heard));
        socket.write(text);
    });
}
const line = (method: string, target: string, more = ''): string =>
    `${method} ${target} HTTP/1.1\r\nHost: panel\r\nAuthorization: Bearer ${panel.client.token}\r\n${more}\r\n`;

/** Begins a request and goes away in the middle. */
function leave(text: string, afterMs: number): Promise<void> {
    return new Promise((resolve) => {
        const socket = connect(panel.port, '127.0.0.1', () => {
            socket.write(text);
            setTimeout(() => socket.resetAndDestroy(), afterMs);
        });
        socket.on('error', () => undefined);
        socket.once('close', () => resolve());
    });
}

describe('plugins', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        for (const [name, code, manifest = {}] of plugins) {
            folder.write(name, code, { manifest });
        }
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        await panel.panel.settled();
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        folder.remove();
    });

    it('all run, whatever they are called', async () => {
        const { data } = await get('/api/plugins');
        const states = data
            .filter(({ origin }: { origin: string }) => origin === 'folder')
            .map(({ name, state, failure }: Record<string, unknown>) => [name, state, failure]);
        expect(states.filter(([, state]: string[]) => state !== 'running')).to.equal([]);
        expect((await get('/api/plugins/uses/say')).data).to.equal({ a: 1 });
    });

    it('are held to what was granted by the SDK alone, in the process of the panel, as docs/security.md says', async () => {
        expect(readPage('docs/security.md').replaceAll(/\s+/g, ' ')).to.include(
            "Plugins run in the panel's process. The SDK holds a plugin to what an admin granted, refuses the rest and writes it to the audit log; code that goes past the SDK can do what the panel can."
        );
        const { data } = await get('/api/plugins/past/reach');
        expect(data).to.equal({
            process: process.pid, // this process is the panel
            asked: 50305,
            master: 32,
            ran: String(process.getuid?.())
        });
        const refused = await until(
            async () => (await get('/api/audit?resource=past.capability')).data[0] as Record<string, unknown>,
            'the refusal to be on record'
        );
        expect([refused['action'], refused['resourceId'], refused['outcome']]).to.equal([
            'use',
            'exec: id',
            'failure'
        ]);
    });

    it('keep no user out of the log-in by a guard that throws or hangs', async () => {
        const began = performance.now();
        expect((await panel.client.login('admin', adminPassword)).code).to.equal(0);
        expect(performance.now() - began).to.be.below(10_000);
        expect(await stateOf('doorman')).to.equal('running');
        await put('sleeper', { enabled: false });
    });

    it('do not fill the record by listening to it', async () => {
        await post('/api/plugins/good/hello', {});
        await wait(300);
        const first = (await get('/api/plugins/echoes/heard')).data.heard as number;
        await wait(500);
        const second = (await get('/api/plugins/echoes/heard')).data.heard as number;
        expect(second - first).to.be.below(5);
        await put('echoes', { enabled: false });
    });

    it('say nothing in a header that acts beyond their answer', async () => {
        for (const path of ['json', 'raw']) {
            const { status, headers: got } = await get(`/api/plugins/liar/${path}`);
            expect(status).to.equal(200);
            for (const name of [
                'set-cookie',
                'access-control-allow-origin',
                'access-control-allow-credentials',
                'refresh',
                'clear-site-data',
                'service-worker-allowed',
                'alt-svc',
                'strict-transport-security',
                'www-authenticate',
                'proxy-authenticate'
            ]) {
                expect(got[name], `${path} ${name}`).to.be.undefined();
            }
            expect([
                got['content-security-policy']?.includes('sandbox'),
                got['x-request-id'] === 'forged'
            ]).to.equal([true, false]);
        }
        expect((await get('/api/plugins/liar/split')).headers['set-cookie']).to.be.undefined();
        const events = await say(line('GET', '/api/plugins/liar/events'));
        expect(events).not.to.match(/^event: (forged|end)/m);
        expect(events).not.to.match(/^data: forged/m);
    });

    it('answer what cannot be answered with an error of the panel, in the envelope', async () => {
        for (const what of ['nothing', 'null', 'text', 'proto', 'getter']) {
            const { status, code, data } = await get(`/api/plugins/liar/throws/${what}`);
            expect([status, code, data], what).to.equal([500, 50000, { reason: 'INTERNAL' }]);
        }
        for (const what of ['bigint', 'cycle', 'getter', 'status']) {
            const { status, text } = await get(`/api/plugins/liar/answers/${what}`);
            expect(status, `${what}: ${text}`).to.equal(500);
        }
        expect((await get('/api/plugins/liar/answers/undefined')).status).to.be.within(200, 500);
        expect(({} as { polluted?: boolean }).polluted).to.be.undefined();
        expect(await stateOf('liar')).to.equal('running');
    });

    it('do not fall because a client goes away', async () => {
        const upgrade = line(
            'GET',
            '/api/plugins/sloppy/talk',
            'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
        );
        const ways: readonly string[] = [
            upgrade,
            `${upgrade}\x81\x85\x00\x00\x00\x00hello\x88\x80\x00\x00\x00\x00`,
            `${upgrade}\x8f\xff\xff\xff`,
            line(
                'POST',
                '/api/plugins/sloppy/take',
                'Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n'
            ) + 'x'.repeat(100),
            line(
                'POST',
                '/api/plugins/sloppy/take',
                'Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n'
            ) + '5\r\nhello\r\nZZ',
            line('GET', '/api/plugins/sloppy/ticks'),
            line('GET', '/api/plugins/sloppy/wait'),
            line('GET', '/api/plugins/liar/endless'),
            line('GET', '/api/plugins/liar/events')
        ];
        for (const afterMs of [0, 5, 40]) {
            await Promise.all(ways.flatMap((way) => [leave(way, afterMs), leave(way, afterMs)]));
        }
        await wait(300);
        expect([await stateOf('sloppy'), await stateOf('liar')]).to.equal(['running', 'running']);
        expect((await get('/api/plugins/sloppy/hello')).status).to.equal(200);
    });

    it('are reached by their own paths only', async () => {
        const targets = [
            '/api/plugins/../plugins/good/hello',
            '/api/plugins/good/../good/hello',
            '/api/plugins/%67ood/hello',
            '/api/plugins/good%2fhello',
            '/api/plugins/good/%2e%2e/../hello',
            '/api/plugins//good/hello',
            '/api//plugins/good/hello',
            '/API/plugins/good/hello',
            '/api/plugins/GOOD/hello',
            '/api/plugins/good//hello',
            '/api/plugins/good/hello/',
            '/api/plugins/good/./hello',
            '/api/plugins/good;x/hello',
            'http://panel/api/plugins/good/hello',
            'http://evil/api/plugins/good/hello',
            '*',
            'panel:80',
            '//evil/api/plugins/good/hello',
            '/api/plugins/good/hello#x',
            '/api/plugins/good\\hello',
            '/api/plugins/good/hello%00',
            '/api/plugins/good/%E0%A4%A'
        ];
        for (const target of targets) {
            const heard = await say(line('GET', target, 'Connection: close\r\n'));
            const status = Number(/^HTTP\/1\.1 (\d+)/.exec(heard)?.[1]);
            expect([200, 400, 404, 503].includes(status), `${target}: ${heard.slice(0, 200)}`).to.be.true();
            // No caller gets in without the permission that the route names, however it is spelt.
            const anonymous = await say(`GET ${target} HTTP/1.1\r\nHost: panel\r\nConnection: close\r\n\r\n`);
            expect(anonymous, target).not.to.match(/^HTTP\/1\.1 2/);
        }
        expect(await say(`CONNECT panel:80 HTTP/1.1\r\nHost: panel\r\n\r\n`)).not.to.match(/^HTTP\/1\.1 2/);
        expect((await get('/api/plugins/good/hello')).status).to.equal(200);
    });

    it('that are disabled take no upgrade', async () => {
        await put('sloppy', { enabled: false });
        const heard = await say(
            line(
                'GET',
                '/api/plugins/sloppy/talk',
                'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
            )
        );
        expect(heard).to.match(/^HTTP\/1\.1 404/);
        expect(heard).to.contain('40411');
        await put('sloppy', { enabled: true });
    });

    it('take no second request out of the body of a first one', async () => {
        const inner = `GET /api/plugins/good/hello HTTP/1.1\r\nHost: panel\r\nAuthorization: Bearer ${panel.client.token}\r\n\r\n`;
        for (const more of [
            'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
            'Content-Length: 0\r\nContent-Length: 5\r\n',
            'Transfer-Encoding: chunked, identity\r\n',
            'Transfer-Encoding : chunked\r\n',
            'Content-Length: +5\r\n'
        ]) {
            const heard = await say(
                `${line('POST', '/api/plugins/good/hello', `Content-Type: application/json\r\n${more}`)}0\r\n\r\n${inner}`
            );
            expect((heard.match(/HTTP\/1\.1 200/g) ?? []).length, `${more}: ${heard}`).to.equal(0);
        }
    });

    it('end a task with themselves, and it says so', async () => {
        const { data, status } = await post('/api/plugins/stays/work', {});
        expect([200, 202].includes(status)).to.be.true();
        const off = await put('stays', { enabled: false });
        expect(off.data.state).to.equal('disabled');
        await until(
            async () => (await get(`/api/tasks/${data.id}`)).data.state !== 'running',
            'the task to end'
        );
        expect((await get(`/api/tasks/${data.id}`)).data.state).to.equal('failed');
    });

    it('do for a user only what their capability names, by whichever spelling', async () => {
        const call = async (
            plugin: string,
            body: object
        ): Promise<{ status: number; code: number; data: unknown }> =>
            (await post(`/api/plugins/${plugin}/call`, body)).data;
        for (const path of [
            '../secrets/one',
            'a/../../secrets/one',
            '..',
            './../secrets/one',
            '%2e%2e/secrets/one',
            '..\\secrets\\one',
            '/../secrets/one'
        ]) {
            const answer = await call('narrow', { id: 'mirror.open', params: { path } });
            expect(
                (answer.data as { secret?: boolean } | null)?.secret,
                `${path}: ${JSON.stringify(answer)}`
            ).to.be.undefined();
        }
        expect((await call('narrow', { id: 'mirror.one' })).status).to.be.within(403, 404);
        expect((await call('calls', { id: 'plugins.install', payload: { package: 'x' } })).code).to.equal(
            40301
        );
        expect(
            (await call('calls', { id: 'plugins.update', params: { name: 'good' }, payload: { grants: {} } }))
                .code
        ).to.equal(40301);
        expect(
            (
                await call('calls', {
                    id: 'plugins.update',
                    params: { name: 'good' },
                    payload: { version: '2.0.0' }
                })
            ).code
        ).to.equal(40301);
        expect((await call('calls', { id: 'auth.me' })).status).to.equal(404);
        const loop = await get('/api/plugins/calls/loop');
        expect(loop.status).to.equal(200);
        expect(loop.text.length).to.be.below(5_000);
    });

    it('take no settings that would change what an object is, nor what only the panel could have sealed', async () => {
        const raw = (body: string): Promise<Answer> =>
            put('open', body, { headers: { 'content-type': 'application/json' } });
        for (const body of [
            '{"settings":{"__proto__":{"polluted":true}}}',
            '{"settings":{"any":{"__proto__":{"polluted":true}}}}',
            '{"settings":{"constructor":{"set":true}}}',
            '{"grants":{"__proto__":{"exec":["*"]}}}',
            '{"__proto__":{"enabled":false}}',
            '{"settings":{"toString":{"set":true}}}'
        ]) {
            const { status } = await raw(body);
            expect(status, body).to.be.within(200, 400);
            expect(({} as { polluted?: boolean }).polluted, body).to.be.undefined();
        }
        await put('open', { settings: { secret: 'a secret of mine' } });
        for (const value of [{ '~sealed': 'x' }, { inner: { '~sealed': 'x' } }]) {
            expect((await put('open', { settings: { any: value } })).code, JSON.stringify(value)).to.equal(
                40001
            );
        }
        expect((await put('open', { settings: { list: [{ '~sealed': 'x' }] } })).code).to.equal(40001);
        await put('open', { enabled: false });
        expect((await put('open', { enabled: true })).data.state).to.equal('running');
        expect((await get('/api/plugins/open')).text).not.to.contain('polluted');
    });

    it('and everything about them is for users who may manage plugins', async () => {
        const { data: token } = await post('/api/auth/tokens', {
            name: 'narrow',
            permissions: ['hosts:read', 'good:read']
        });
        const callers = {
            viewer: await panel.tokenOf('viewer'),
            operator: await panel.tokenOf('operator'),
            narrow: token.token as string
        };
        const was = (await get('/api/plugins')).text.replace(/"at":"[^"]+"/g, '');
        for (const [who, bearer] of Object.entries(callers)) {
            const as = { token: bearer };
            const refused = [
                await put('good', { enabled: false }, as),
                await put('good', { grants: {} }, as),
                await put('good', { settings: {} }, as),
                await put('nobody', {}, as),
                await post('/api/plugins', { package: 'x' }, as),
                await panel.client.delete('/api/plugins/good', as),
                await post('/api/plugins/good/hello', {}, as)
            ];
            expect(
                refused.map(({ code }) => code),
                who
            ).to.equal(refused.map(() => 40300));
        }
        expect((await get('/api/plugins', { token: callers.narrow })).code).to.equal(40300);
        expect((await get('/api/plugins/good/hello', { token: callers.narrow })).status).to.equal(200);
        expect((await get('/api/plugins/mirror/secrets/one', { token: callers.narrow })).code).to.equal(
            40300
        );
        expect((await get('/api/plugins/good/hello', { token: null })).code).to.equal(40100);
        expect((await get('/api/plugins')).text.replace(/"at":"[^"]+"/g, '')).to.equal(was);
    });

    it('grant no plugin what the granting user could not do', async () => {
        await post('/api/users/roles', { name: 'keeper', permissions: ['plugins:read', 'plugins:manage'] });
        const keeper = { token: await panel.tokenOf('keeper') };
        for (const grants of [
            { files: ['/'] },
            { exec: ['*'] },
            { sockets: ['*'] },
            { hosts: 'write' },
            { certificates: 'read' },
            { direct: ['native'] },
            { pages: true },
            { taps: ['audit.recorded'] },
            { taps: ['settings.changed'] },
            { taps: ['engine.collect'] },
            { taps: ['host.beforeSave'] },
            { taps: ['auth.beforeLogin'] },
            { taps: ['*'] },
            { collect: ['*'] }
        ]) {
            expect((await put('good', { grants }, keeper)).code, JSON.stringify(grants)).to.equal(40300);
        }
        expect((await put('good', { grants: {} }, keeper)).code).to.equal(0);
    });

    it('that never end their answer are cut when they go', { timeout: 60_000 }, async () => {
        const endless = await new Promise<{ readonly all: Promise<string> }>((begun) => {
            const all = say(line('GET', '/api/plugins/liar/endless'), 60_000, (heard) => {
                if (heard.length > 1_000) {
                    begun({ all });
                }
            });
            all.catch(() => undefined);
        });
        const off = await put('liar', { enabled: false, force: true });
        expect([off.data.state, off.data.released.cut]).to.equal(['disabled', 1]);
        expect((await endless.all.catch(() => '')).length).to.be.above(1_000);
        expect((await get('/api/plugins/good/hello')).status).to.equal(200);
    });
});

describe('installed plugins', { timeout: limitMs }, () => {
    let own: TestPanel;
    const states = async (): Promise<Readonly<Record<string, readonly unknown[]>>> =>
        Object.fromEntries(
            (await own.client.get('/api/plugins')).data.map(
                ({
                    name,
                    state,
                    failure
                }: {
                    name: string;
                    state: string;
                    failure: { code: string } | null;
                }) => [name, [state, failure?.code ?? null]]
            )
        );
    const lockFile = (): string => join(own.config.dataDir, 'plugins.lock.json');

    before({ timeout: limitMs }, async () => {
        own = await startPanel();
        for (const name of ['first', 'second']) {
            const accepted = await own.client.post(
                '/api/plugins',
                packageArchive(...versionedPackage('1.0.0', { name })),
                { headers: { 'content-type': 'application/gzip' } }
            );
            expect((await ended(own.client, accepted)).state).to.equal('succeeded');
        }
    });
    after({ timeout: limitMs }, () => own?.close());

    it('are not run when their files are others, and nothing else suffers', async () => {
        const [file] = readdirSync(own.config.dataDir, { recursive: true, encoding: 'utf8' }).filter(
            (path) =>
                path.endsWith('index.js') && path.includes('first') && !path.includes('node_modules/@portico')
        );
        appendFileSync(join(own.config.dataDir, file ?? ''), '\nglobalThis.tampered = true;');
        await own.restart();
        await own.panel.settled();
        const { first, second } = await states();
        expect([first, second]).to.equal([
            ['failed', 'TREE_CHANGED'],
            ['running', null]
        ]);
        expect((globalThis as { tampered?: boolean }).tampered).to.be.undefined();
        expect((await own.client.get('/api/plugins/first/rows')).data.cause).to.equal('TREE_CHANGED');
    });

    it("are not run when the lock is not the panel's own", async () => {
        writeFileSync(lockFile(), readFileSync(lockFile(), 'utf8').replace('"1.0.0"', '"1.0.1"'));
        await own.restart();
        await own.panel.settled();
        expect(Object.values(await states()).filter(([state]) => state === 'running')).to.equal([]);
        expect((await own.client.get('/api/plugins')).status).to.equal(200);
        expect(own.lines.some((each) => each.includes('lock'))).to.be.true();
    });
});
