import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createTestHost, type TestHost } from '@portico/testing';

import { createPluginRig, type PluginRig } from '../../support/plugins/host.ts';
import { math, probe } from '../../support/plugins/probe.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const capabilities = { taps: ['backup.collect'], api: { read: ['things.list', 'auth.me'], write: ['*'] } };
const requests: readonly (readonly [
    as: string | null,
    method: string,
    path: string,
    body?: object | string | undefined,
    headers?: Readonly<Record<string, string>>
])[] = [
    ['viewer', 'GET', '/hello/Ann'],
    ['viewer', 'GET', '/hello/Annabel'],
    [null, 'GET', '/hello/Ann'],
    ['viewer', 'GET', '/hello/Ann?x=1'],
    ['viewer', 'POST', '/notes', { text: 'x' }],
    ['admin', 'POST', '/notes', { text: 'one' }],
    ['admin', 'POST', '/notes', { txt: 1 }],
    ['admin', 'POST', '/notes', '[1]', { 'content-type': 'application/json' }],
    ['admin', 'POST', '/notes', 'text=1', { 'content-type': 'text/plain' }],
    ['admin', 'POST', '/notes', { text: 'two' }, { 'idempotency-key': 'a' }],
    ['admin', 'POST', '/notes', { text: 'two' }, { 'idempotency-key': 'a' }],
    ['admin', 'POST', '/notes', { text: 'three' }, { 'idempotency-key': 'a' }],
    ['viewer', 'GET', '/notes'],
    ['viewer', 'GET', '/notes', undefined, { 'if-none-match': '"nothing"' }],
    ['admin', 'PUT', '/notes/1', { text: 'new' }],
    ['admin', 'PUT', '/notes/1', { text: 'new' }, { 'if-match': '"1"' }],
    ['admin', 'PUT', '/notes/x', { text: 'new' }],
    ['viewer', 'GET', '/tea'],
    ['viewer', 'GET', '/bug'],
    ['viewer', 'GET', '/forged-failure'],
    ['viewer', 'GET', '/headers'],
    ['admin', 'GET', '/me'],
    ['viewer', 'GET', '/me'],
    ['admin', 'GET', '/refused'],
    ['admin', 'GET', '/forged'],
    ['admin', 'GET', '/kept'],
    ['admin', 'GET', '/kept'],
    ['admin', 'GET', '/unread'],
    ['admin', 'GET', '/unread'],
    ['viewer', 'GET', '/sum'],
    ['viewer', 'GET', '/count'],
    ['viewer', 'GET', '/ticks'],
    ['viewer', 'GET', '/ticks', undefined, { 'last-event-id': '2' }],
    ['admin', 'PUT', '/upload', '12345', { 'content-type': 'text/x-any' }],
    ['admin', 'PUT', '/upload', '12345678901', { 'content-type': 'text/x-any' }],
    ['viewer', 'GET', '/file'],
    ['viewer', 'GET', '/file', undefined, { range: 'bytes=2-4' }],
    ['viewer', 'GET', '/file', undefined, { range: 'bytes=20-' }],
    ['viewer', 'GET', '/file', undefined, { 'if-none-match': '"v1"' }],
    ['viewer', 'HEAD', '/file'],
    ['admin', 'PATCH', '/raw', 'abc'],
    ['admin', 'GET', '/raw'],
    ['viewer', 'GET', '/none'],
    ['viewer', 'GET', '/socket/none'],
    ['viewer', 'DELETE', '/tea']
];
/** Differ from request to request, or belong to the connection. */
const passing = new Set([
    'date',
    'x-request-id',
    'keep-alive',
    'connection',
    'transfer-encoding',
    'content-length',
    'vary',
    'content-encoding'
]);

let rig: PluginRig;
let kit: TestHost;

describe('createTestHost', () => {
    before(async () => {
        rig = await createPluginRig();
        await rig.run(math, { name: 'math' });
        await rig.run(probe, { capabilities, manifest: { permissions: { use: 'Use it' } } });
        kit = await createTestHost(probe, {
            quiet: true,
            manifest: { name: 'probe', permissions: { use: 'Use it' }, capabilities },
            partners: {
                math: {
                    add: async ({ a, b }: { a: number; b: number }, { plugin, actor }) => ({
                        sum: a + b,
                        caller: plugin,
                        actor: actor?.username ?? null
                    }),
                    async *count({ to }: { to: number }) {
                        yield* Array.from({ length: to }, (_none, n) => ({ n }));
                    }
                }
            }
        });
        kit.api.route({
            id: 'things.list',
            path: '/api/things',
            permission: 'things:read',
            handler: ({ actor }) => [{ for: actor.username, via: 'probe' }]
        });
        kit.api.route({
            id: 'things.wipe',
            method: 'DELETE',
            path: '/api/things',
            permission: 'things:write',
            stepUp: true
        });
        kit.api.route({ id: 'auth.me', path: '/api/auth/me' });
    });

    after(async () => {
        await rig?.close();
        await kit?.close();
    });

    it('answers as the panel does: status, headers and bytes', async () => {
        for (const [as, method, path, body, headers = {}] of requests) {
            const there = await rig.ask(as, method, `/api/plugins/probe${path}`, body, headers);
            const here = await kit.as((as ?? 'anonymous') as 'viewer').ask(method, path, body, { headers });
            const shown = (all: Headers): object =>
                Object.fromEntries([...all].filter(([name]) => !passing.has(name)));
            expect(
                { status: here.status, text: here.text, headers: shown(here.headers) },
                `${method} ${path} ${JSON.stringify(body)}`
            ).to.equal({ status: there.status, text: there.text, headers: shown(there.headers) });
        }
    });

    it('puts on record what the panel puts there', () => {
        const there = rig.http.recorded.map(({ action, resource, resourceId, after: now, outcome, code }) => [
            action,
            resource,
            resourceId,
            now,
            outcome,
            code
        ]);
        const here = kit.audit
            .filter(({ outcome }) => outcome === 'success')
            .map(({ action, resource, resourceId, after: now, outcome, code }) => [
                action,
                resource,
                resourceId,
                now,
                outcome,
                code
            ]);
        expect(here).to.equal(there);
    });
});
