import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { joi, type Socket } from '@portico/sdk';
import { WebSocket } from 'ws';

import { Gate, type GateLimits } from '../../../../core/src/server/gateway/gate.ts';
import { createGateway, type Gateway } from '../../../../core/src/server/gateway/gateway.ts';
import type { StartOf } from '../../../../core/src/server/gateway/waiting.ts';
import { json, type Route, socket, stream, upload } from '../../../../core/src/server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../../../core/src/server/http/server.ts';
import { createTestPorts, type TestPorts } from '../../../support/core/http-ports.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

interface Answer {
    readonly status: number;
    readonly retryAfter: string | undefined;
    readonly body: { readonly code: number; readonly data: Readonly<Record<string, unknown>> };
}

const authorization = 'Bearer admin';
let ports: TestPorts;
let gateway: Gateway;
let port: number;
/** Resolved by tests that want a request to stay inside. */
let stay = Promise.withResolvers<void>();
const handled: string[] = [];

/** A plugin's server; every answer tells the generation. */
function generation(word: string, more: readonly Route[] = []): HttpServer {
    const routes = [
        json({
            id: 'say',
            method: 'GET',
            path: '/say',
            access: 'things:read',
            summary: 'Says',
            handler: () => ({ word })
        }),
        json({
            id: 'slow',
            method: 'GET',
            path: '/slow',
            access: 'things:read',
            summary: 'Stays',
            handler: () => stay.promise.then(() => ({ word }))
        }),
        json({
            id: 'put',
            method: 'POST',
            path: '/put',
            access: 'things:write',
            summary: 'Takes',
            maxBytes: 2_000_000,
            validate: { payload: joi.object({ text: joi.string().required() }) },
            handler: ({ payload }) => {
                handled.push(word);
                return { word, length: payload.text.length };
            }
        }),
        upload({
            id: 'upload',
            method: 'POST',
            path: '/upload',
            access: 'things:write',
            summary: 'Takes bytes',
            accepts: ['application/octet-stream'],
            maxBytes: 10_000_000,
            async handler({ body }) {
                let bytes = 0;
                for await (const chunk of body) {
                    bytes += chunk.length;
                }
                return { word, bytes };
            }
        }),
        stream({
            id: 'stream',
            path: '/stream',
            access: 'things:read',
            summary: 'Streams',
            async *handler({ signal }) {
                yield { data: word };
                await new Promise((resolve) => signal.addEventListener('abort', resolve));
            }
        }),
        socket({
            id: 'socket',
            path: '/socket',
            access: 'things:read',
            summary: 'Talks',
            async handler(peer: Socket) {
                for await (const message of peer) {
                    await peer.send(`${word}:${String(message)}`);
                }
            }
        }),
        ...more
    ];
    return createHttpServer({ name: word, prefix: '/api/plugins/hello', ports, routes });
}

async function answerOf(sent: ClientRequest): Promise<Answer> {
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer) {
        text += chunk;
    }
    return {
        status: answer.statusCode ?? 0,
        retryAfter: answer.headers['retry-after'],
        body: JSON.parse(text) as Answer['body']
    };
}

function send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body?: string
): ClientRequest {
    const sent = request({
        host: '127.0.0.1',
        port,
        method,
        path,
        agent: false,
        headers: { authorization, ...headers }
    });
    sent.on('error', () => undefined);
    if (body !== undefined) {
        sent.end(body);
    }
    return sent;
}
const ask = (method: string, path: string, value?: unknown): Promise<Answer> =>
    answerOf(
        send(
            method,
            path,
            value === undefined ? {} : { 'content-type': 'application/json' },
            value === undefined ? '' : JSON.stringify(value)
        )
    );

async function open(waiting: Partial<GateLimits> = {}, startOf: StartOf = () => null): Promise<void> {
    await gateway?.close();
    ports = createTestPorts();
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        ports,
        routes: [
            json({
                id: 'things.around',
                method: 'GET',
                path: '/api/around',
                access: 'things:read',
                summary: 'Goes around',
                handler: async () =>
                    JSON.parse(
                        (await gateway.inject({ url: '/api/plugins/hello/say', headers: { authorization } }))
                            .payload
                    ) as object
            })
        ]
    });
    gateway = await createGateway({ core, log: ports.log, drainMs: 2_000, waiting, startOf });
    ({ port } = await gateway.listen('127.0.0.1', 0));
}

describe('Gateway: park', { timeout: 30_000 }, () => {
    beforeEach(async () => {
        stay = Promise.withResolvers<void>();
        handled.length = 0;
        await open();
        await gateway.mount('hello', generation('old'));
    });
    afterEach(async () => {
        stay.resolve();
        await gateway.close();
    });

    it('lets requests wait with their bodies, and hands them to the server that owns the name afterwards', async () => {
        const parking = gateway.park('hello');
        const text = 'x'.repeat(500_000);
        const plain = ask('POST', '/api/plugins/hello/put', { text });
        const reading = ask('GET', '/api/plugins/hello/say');
        const chunked = send('POST', '/api/plugins/hello/upload', {
            'content-type': 'application/octet-stream',
            'transfer-encoding': 'chunked'
        });
        const uploading = answerOf(chunked);
        for (let round = 0; round < 4; round += 1) {
            chunked.write(Buffer.alloc(300_000));
            await wait(1);
        }
        const expecting = send('POST', '/api/plugins/hello/put', {
            'content-type': 'application/json',
            'content-length': '15',
            expect: '100-continue'
        });
        expecting.flushHeaders();
        let continued = false;
        expecting.once('continue', () => {
            continued = true;
            expecting.end('{"text":"after"}'.slice(0, 15));
        });
        const expected = answerOf(expecting);
        await wait(50);
        expect([continued, handled]).to.equal([false, []]);
        expect(await parking.drain(1_000)).to.equal(0);
        expect(await gateway.unmount('hello')).to.equal(0);
        // Between the two the routes are still known to lookups and to tickets.
        expect([gateway.servers().length, gateway.resolve('/api/plugins/hello/say')?.id]).to.equal([
            2,
            'say'
        ]);
        await gateway.mount('hello', generation('new'));
        parking.open();
        chunked.end(Buffer.alloc(1));
        expect((await plain).body.data).to.equal({ word: 'new', length: 500_000 });
        expect((await reading).body.data).to.equal({ word: 'new' });
        expect((await uploading).body.data).to.equal({ word: 'new', bytes: 1_200_001 });
        expect([(await expected).status, continued]).to.equal([400, true]);
        expect(handled).to.equal(['new']);
    });

    it('hands them to the old server when the change is called off, whose streams last again', async () => {
        const parking = gateway.park('hello');
        const [streaming] = (await once(send('GET', '/api/plugins/hello/stream', {}, ''), 'response', {
            signal: AbortSignal.timeout(50)
        }).catch(() => [null])) as [IncomingMessage | null];
        expect(streaming).to.be.null();
        const reading = ask('GET', '/api/plugins/hello/say');
        await parking.drain(1_000);
        parking.open();
        expect((await reading).body.data).to.equal({ word: 'old' });
        const sent = send('GET', '/api/plugins/hello/stream', {}, '');
        const [answer] = (await once(sent, 'response')) as [IncomingMessage];
        let text = '';
        answer.on('data', (chunk) => (text += chunk));
        await until(() => text.includes('"old"'));
        await wait(20);
        expect(text).to.not.contain('retry:');
        sent.destroy();
    });

    it('ends streams with a hint to come back and sockets with 1012, and says how many stay', async () => {
        const [events] = (await once(send('GET', '/api/plugins/hello/stream', {}, ''), 'response')) as [
            IncomingMessage
        ];
        const peer = new WebSocket(`ws://127.0.0.1:${port}/api/plugins/hello/socket`, {
            headers: { authorization }
        });
        await once(peer, 'open');
        const slow = ask('GET', '/api/plugins/hello/slow');
        await until(() => gateway.gate('hello').pass() !== null);
        const closed = once(peer, 'close') as Promise<[number]>;
        await wait(20);
        const parking = gateway.park('hello');
        let left = parking.drain(300);
        let text = '';
        for await (const chunk of events) {
            text += chunk;
        }
        expect(text).to.endWith('retry: 1000\n\n');
        expect((await closed)[0]).to.equal(1012);
        // The look above passed the gate and never left.
        expect(await left).to.be.between(0, 3);
        left = parking.drain(50);
        stay.resolve();
        expect((await slow).body.data).to.equal({ word: 'old' });
        await left;
        parking.open();
    });

    it('lets an upgrade wait, and what was sent right behind it', async () => {
        const parking = gateway.park('hello');
        const peer = new WebSocket(`ws://127.0.0.1:${port}/api/plugins/hello/socket`, {
            headers: { authorization }
        });
        const opened = once(peer, 'open');
        await wait(30);
        await parking.drain(1_000);
        await gateway.unmount('hello');
        await gateway.mount('hello', generation('new'));
        parking.open();
        await opened;
        peer.send('hi');
        expect(String((await once(peer, 'message'))[0])).to.equal('new:hi');
        peer.terminate();
    });

    it('answers 50300 to those that are too many or wait too long, and tells when to come back', async () => {
        await open({ most: 2, patienceMs: 150 });
        await gateway.mount('hello', generation('old'));
        const parking = gateway.park('hello');
        const waiting = [
            ask('GET', '/api/plugins/hello/say'),
            ask('POST', '/api/plugins/hello/put', { text: 'x' })
        ];
        await wait(30);
        const third = await ask('GET', '/api/plugins/hello/say');
        expect([third.status, third.body.code, third.body.data, third.retryAfter]).to.equal([
            503,
            50300,
            { reason: 'NOT_READY', plugin: 'hello', retryAfterSeconds: 2 },
            '2'
        ]);
        const refused = new WebSocket(`ws://127.0.0.1:${port}/api/plugins/hello/socket`, {
            headers: { authorization }
        });
        refused.on('error', () => undefined);
        const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage];
        expect(answer.statusCode).to.equal(503);
        answer.resume();
        expect((await Promise.all(waiting)).map(({ status, retryAfter }) => [status, retryAfter])).to.equal([
            [503, '2'],
            [503, '2']
        ]);
        expect(handled).to.equal([]);
        parking.open();
        expect((await ask('GET', '/api/plugins/hello/say')).status).to.equal(200);
    });

    it('drops a client that goes away while it waits', async () => {
        const parking = gateway.park('hello');
        const sent = send(
            'POST',
            '/api/plugins/hello/put',
            { 'content-type': 'application/json' },
            '{"text":"gone"}'
        );
        const raw = connect(port, '127.0.0.1').on('error', () => undefined);
        raw.write(
            `GET /api/plugins/hello/socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${Buffer.alloc(16).toString('base64')}\r\nauthorization: ${authorization}\r\n\r\n`
        );
        await wait(50);
        sent.destroy();
        raw.resetAndDestroy();
        await wait(50);
        parking.open();
        expect((await ask('GET', '/api/plugins/hello/say')).status).to.equal(200);
        expect(handled).to.equal([]);
        expect(await gateway.park('hello').drain(1_000)).to.equal(0);
    });

    it('counts injected calls, lets in what a request inside causes, and lets all others wait', async () => {
        await open();
        const nested = json({
            id: 'nested',
            method: 'GET',
            path: '/nested',
            access: 'things:read',
            summary: 'Calls on',
            handler: async () => {
                await stay.promise;
                return gateway
                    .gate('hello')
                    .within(
                        async () =>
                            JSON.parse(
                                (await gateway.inject({ url: '/api/around', headers: { authorization } }))
                                    .payload
                            ) as object
                    );
            }
        });
        await gateway.mount('hello', generation('old', [nested]));
        const inside = gateway.inject({ url: '/api/plugins/hello/nested', headers: { authorization } });
        await wait(20);
        const parking = gateway.park('hello');
        expect(await parking.drain(30)).to.equal(1);
        const outside = gateway.inject({ url: '/api/plugins/hello/say', headers: { authorization } });
        const around = ask('GET', '/api/around');
        await wait(30);
        stay.resolve();
        expect(JSON.parse((await inside).payload)).to.include({
            code: 0,
            data: { code: 0, message: 'ok', data: { code: 0, message: 'ok', data: { word: 'old' } } }
        });
        expect(await parking.drain(1_000)).to.equal(0);
        await gateway.unmount('hello');
        await gateway.mount('hello', generation('new'));
        parking.open();
        expect(JSON.parse((await outside).payload)).to.include({ data: { word: 'new' } });
        expect((await around).body.data).to.include({ data: { word: 'new' } });
    });

    it('cuts those who do not leave, when it is told to', async () => {
        const slow = answerOf(send('GET', '/api/plugins/hello/slow', {}, '')).then(
            () => 'answered',
            () => 'cut'
        );
        await wait(30);
        const parking = gateway.park('hello');
        expect(await parking.drain(30)).to.equal(1);
        expect(parking.cut()).to.equal(1);
        expect(await slow).to.equal('cut');
        expect(await gateway.unmount('hello')).to.equal(0);
        parking.open();
        expect((await ask('GET', '/api/plugins/hello/say')).body.code).to.equal(40400);
    });

    it('swaps under load without one failed request', async () => {
        let running = true;
        const failures: string[] = [];
        const seen = new Set<string>();
        let count = 0;
        const client = async (index: number): Promise<void> => {
            while (running) {
                const answer =
                    index % 2 === 0
                        ? await ask('GET', '/api/plugins/hello/say')
                        : await ask('POST', '/api/plugins/hello/put', { text: 'x' });
                count += 1;
                seen.add(String(answer.body.data['word']));
                if (answer.status !== 200) {
                    failures.push(`${answer.status} ${JSON.stringify(answer.body)}`);
                }
            }
        };
        const clients = [client(0), client(1), client(2), client(3)];
        for (let round = 0; round < 40; round += 1) {
            const before = count;
            const parking = gateway.park('hello');
            expect(await parking.drain(5_000)).to.equal(0);
            expect(await gateway.unmount('hello')).to.equal(0);
            await wait(2);
            await gateway.mount('hello', generation(`gen${round}`));
            parking.open();
            await until(() => count > before + 4);
        }
        running = false;
        await Promise.all(clients);
        expect(failures).to.equal([]);
        expect(seen.size).to.be.above(20);
    });

    it('lets clients wait for a plugin that starts, but not too many and not for ever', async () => {
        const start = Promise.withResolvers<void>();
        await open({ most: 2, patienceMs: 10_000 }, () => start.promise);
        const made = ask('POST', '/api/plugins/hello/put', { text: 'early' });
        const peer = new WebSocket(`ws://127.0.0.1:${port}/api/plugins/hello/socket`, {
            headers: { authorization }
        });
        await wait(50);
        expect((await ask('GET', '/api/plugins/hello/say')).status).to.equal(404); // two wait already
        await gateway.mount('hello', generation('new'));
        expect((await ask('GET', '/api/plugins/hello/say')).status).to.equal(200);
        start.resolve();
        await once(peer, 'open');
        peer.terminate();
        expect([(await made).status, handled]).to.equal([200, ['new']]);
        const asked: string[] = [];
        await open({}, (name) => {
            asked.push(name);
            return Promise.resolve();
        });
        for (const path of ['/api/openapi.json?tag=hello', '/api/openapi.json', '/api/around?tag=hello']) {
            await ask('GET', path);
        }
        expect(asked).to.equal(['hello']);
        await open({ patienceMs: 100 }, (name) => (name === 'hello' ? new Promise(() => undefined) : null));
        expect((await ask('GET', '/api/plugins/none/say')).status).to.equal(404);
        expect((await ask('GET', '/api/plugins/hello/say')).status).to.equal(404);
    });

    it('sends away the requests that wait when the panel stops', async () => {
        gateway.park('hello');
        const waiting = ask('GET', '/api/plugins/hello/say');
        await wait(30);
        await gateway.close();
        expect((await waiting).body.code).to.equal(50300);
    });
});

describe('Gate', () => {
    it('is parked once, and opened as often as one likes', () => {
        const gate = new Gate('x');
        gate.open();
        gate.park();
        expect(() => gate.park()).to.throw(TypeError, /parked already/);
        gate.open();
        gate.open();
        expect(gate.isParked).to.be.false();
    });

    it('counts no request twice as it leaves', async () => {
        const gate = new Gate('x');
        const [one, two] = [gate.pass(), gate.pass()];
        one?.();
        one?.();
        expect(await gate.empty(10)).to.equal(1);
        two?.();
        expect(await gate.empty(10)).to.equal(0);
    });

    it('ends a wait with the reason of its signal', async () => {
        const gate = new Gate('x');
        gate.park();
        const leaving = new AbortController();
        const waiting = gate.wait({ signal: leaving.signal });
        leaving.abort(new Error('I left'));
        await expect(waiting).to.reject('I left');
        await expect(gate.wait({ signal: leaving.signal })).to.reject('I left');
    });

    it('lets in what is caused within, a timer later too, and not what is outside of it', async () => {
        const [gate, other] = [new Gate('x'), new Gate('y')];
        gate.park();
        expect(gate.pass()).to.be.null();
        const later = await gate.within(() =>
            other.within(async () => {
                await wait(1);
                return gate.pass();
            })
        );
        expect(later).to.be.a.function();
        expect(other.within(() => gate.pass())).to.be.null();
    });
});
