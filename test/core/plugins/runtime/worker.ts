import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Guest, type HostApi, Link } from '@portico/sdk/host';
import { WebSocket } from 'ws';

import { portOf } from '../../../../sdk/testing/src/panel/runtime.ts';
import { createPluginRig, type PluginRig } from '../../../support/plugins/host.ts';
import { math, probe } from '../../../support/plugins/probe.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const options = {
    capabilities: {
        api: { read: ['things.list', 'auth.me'], write: ['*'] },
        exec: ['sh'],
        logs: ['access' as const],
        panel: ['listeners' as const, 'folders' as const, 'rehearse' as const],
        taps: ['backup.collect'],
        files: ['/usr'],
        services: true as const
    },
    manifest: { permissions: { use: 'Use it' } }
};
const requests: readonly (readonly [
    as: string | null,
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>
])[] = [
    ['viewer', 'GET', '/hello/Ann'],
    ['viewer', 'GET', '/hello/Annabel'],
    [null, 'GET', '/hello/Ann'],
    ['viewer', 'GET', '/hello/Ann?x=1'],
    ['viewer', 'POST', '/notes', { text: 'x' }],
    ['admin', 'POST', '/notes', { text: 'one' }],
    ['admin', 'POST', '/notes', { txt: 1 }],
    ['admin', 'POST', '/notes', { text: 'two' }, { 'idempotency-key': 'a' }],
    ['admin', 'POST', '/notes', { text: 'two' }, { 'idempotency-key': 'a' }],
    ['viewer', 'GET', '/notes'],
    ['admin', 'PUT', '/notes/1', { text: 'new' }],
    ['admin', 'PUT', '/notes/1', { text: 'new' }, { 'if-match': '"1"' }],
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
    ['admin', 'POST', '/plans'],
    ['admin', 'POST', '/mandate'],
    ['viewer', 'POST', '/mandate'],
    ['admin', 'GET', '/panel'],
    ['admin', 'POST', '/services'],
    ['admin', 'POST', '/programs'],
    ['viewer', 'GET', '/visits'],
    ['viewer', 'GET', '/sum'],
    ['viewer', 'GET', '/count'],
    ['viewer', 'GET', '/ticks'],
    ['viewer', 'GET', '/ticks', undefined, { 'last-event-id': '2' }],
    ['admin', 'PUT', '/upload', '12345', { 'content-type': 'text/x-any' }],
    ['admin', 'PUT', '/upload', '12345678901', { 'content-type': 'text/x-any' }],
    ['viewer', 'GET', '/file'],
    ['viewer', 'GET', '/file', undefined, { range: 'bytes=2-4' }],
    ['viewer', 'GET', '/file', undefined, { 'if-none-match': '"v1"' }],
    ['admin', 'PATCH', '/raw', 'abc'],
    ['admin', 'GET', '/raw'],
    ['viewer', 'GET', '/none']
];
/** Differ from request to request, wherever the code runs. */
const passing = new Set(['date', 'x-request-id', 'keep-alive', 'connection']);
/** Say how a body is sent. That of a raw route goes as a stream, or whole where all of it is there at once, as it is less often from another thread. */
const framing = new Set(['content-length', 'content-encoding', 'transfer-encoding', 'vary']);

let inline: PluginRig;
let threaded: PluginRig;
let worker: Worker;
let link: Link<Guest>;

describe('Link', () => {
    before(async () => {
        [inline, threaded] = [await createPluginRig(), await createPluginRig()];
        for (const { accessLog } of [inline, threaded]) {
            [0, 1000, 2000].forEach((at) => accessLog.add({ at: new Date(at), path: `/${at}` }));
        }
        await inline.run(math, { name: 'math' });
        await inline.run(probe, options);
        await threaded.run(math, { name: 'math' });
        const dataDir = join(threaded.root, 'thread');
        mkdirSync(dataDir);
        worker = new Worker(new URL('../../../support/plugins/processes/worker.ts', import.meta.url), {
            workerData: { dataDir },
            execArgv: ['--conditions=portico-source']
        });
        await threaded.run(probe, {
            ...options,
            runtime({ hostApi }: { readonly hostApi: HostApi }) {
                link = new Link<Guest>(portOf(worker), hostApi);
                return link.remote;
            }
        });
    });

    after(async () => {
        await Promise.all([inline.close(), threaded.close()]);
        link.close(new Error('The test ends'));
        await worker.terminate();
    });

    it('gives from another thread, byte for byte, what is answered in this one', async () => {
        for (const [as, method, path, body, headers] of requests) {
            const [here, there] = await Promise.all(
                [inline, threaded].map(async (rig) => {
                    const answer = await rig.ask(as, method, `/api/plugins/probe${path}`, body, headers);
                    return {
                        status: answer.status,
                        text: answer.text,
                        headers: [...answer.headers].filter(
                            ([name]) => !passing.has(name) && !(path === '/raw' && framing.has(name))
                        )
                    };
                })
            );
            expect(there, `${method} ${path}`).to.equal(here);
        }
        const recorded = ({ http }: PluginRig): unknown =>
            http.recorded.map(({ action, resource, resourceId, after: now, status, code }) => [
                action,
                resource,
                resourceId,
                now,
                status,
                code
            ]);
        expect(recorded(threaded)).to.equal(recorded(inline));
    });

    it('runs programs with their files, limits and isolation there', async () => {
        const { data } = await threaded.ask('admin', 'POST', '/api/plugins/probe/programs');
        expect(data.files).to.equal([0, 'a secret\n600\nsecret\n']);
        expect(data.isolated).to.equal([0, '1\nCapBnd:\t0000000000000000\n']);
        expect(data.usage).to.equal([true, 3, true, true]);
        expect(data.refusals.map(([code]: readonly unknown[]) => code)).to.equal([null, null, null, null]);
    });

    it('carries a socket both ways', async () => {
        const talk = async (rig: PluginRig): Promise<string[]> => {
            const { data } = await rig.ask('admin', 'POST', '/api/plugins/probe/tickets');
            return new Promise((resolve, reject) => {
                const messages: string[] = [];
                const socket = new WebSocket(
                    `${rig.url.replace('http', 'ws')}/api/plugins/probe/socket/${data.ticket}`
                );
                socket.on('error', reject);
                socket.on('open', () => socket.send('hi'));
                socket.on(
                    'message',
                    (message) => messages.push(String(message)) === 2 && (socket.close(), resolve(messages))
                );
            });
        };
        expect(await talk(threaded)).to.equal(await talk(inline));
    });

    it('lends a folder to a tap, until the tap ends', async () => {
        for (const rig of [inline, threaded]) {
            const folder = join(rig.root, 'lent');
            mkdirSync(folder);
            const [outcome] = await rig.hooks.backupCollect.run({ folder, only: ['a', 'b'] });
            expect(outcome).to.equal({
                plugin: 'probe',
                version: '1.0.0',
                ok: true,
                result: [{ name: 'notes', title: 'Notes', path: join(folder, 'notes.txt') }]
            });
            expect(readFileSync(join(folder, 'notes.txt'), 'utf8')).to.equal('a,b');
        }
    });

    it('fails what is under way when the other side is gone', async () => {
        const channel = new MessageChannel();
        const there = new Link<{ hang(input: object): Promise<void> }>(portOf(channel.port1), {});
        const call = there.remote.hang({});
        there.close(new Error('gone'));
        await expect(call).to.reject('gone');
        await expect(there.remote.hang({})).to.reject('gone');
        channel.port2.close();
    });
});
