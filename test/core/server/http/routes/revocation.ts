/** What is under way when its caller may not go on: a session that ended, an account that was disabled, a token that was revoked. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createGateway, type Gateway } from '../../../../../core/src/server/gateway/gateway.ts';
import {
    download,
    http,
    type Route,
    socket,
    stream,
    upload
} from '../../../../../core/src/server/http/route.ts';
import { createHttpServer } from '../../../../../core/src/server/http/server.ts';
import { createTestPorts, type TestPorts } from '../../../../support/core/http-ports.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const authorization = 'Bearer admin';

let ports: TestPorts;
let gateway: Gateway;
let port: number;
/** What the handlers of the test saw. */
let seen: string[];
let goOn: () => void;

/** A text message as a client sends it: masked with zeros. */
function frame(text: string): Buffer {
    return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
}

function routes(): Route[] {
    const gate = new Promise<void>((resolve) => {
        goOn = resolve;
    });
    async function* endless(): AsyncGenerator<Uint8Array> {
        for (;;) {
            yield Buffer.from('x');
            await new Promise((resolve) => setTimeout(resolve, 5));
        }
    }
    return [
        socket({
            id: 'shell',
            path: '/api/shell',
            access: 'things:read',
            summary: 'Runs commands',
            async handler(peer, { signal }) {
                signal.addEventListener('abort', () => seen.push('aborted'));
                for await (const message of peer) {
                    seen.push(String(message));
                    await gate;
                }
                seen.push('over');
            }
        }),
        stream({
            id: 'events',
            path: '/api/events',
            access: 'things:read',
            summary: 'Tells',
            async *handler() {
                for await (const _chunk of endless()) {
                    yield { data: 1 };
                }
            }
        }),
        download({
            id: 'download',
            path: '/api/download',
            access: 'things:read',
            summary: 'Gives',
            handler: () => ({ size: null, type: 'text/plain', open: endless })
        }),
        http({
            id: 'raw',
            methods: ['GET', 'POST'],
            effect: 'read',
            path: '/api/raw',
            access: 'things:read',
            summary: 'Answers for as long as it is read, and looks at no signal',
            raw: 'A foreign protocol of the tests',
            maxBytes: 100,
            async handler(asked) {
                if (asked.method === 'GET') {
                    return new Response(ReadableStream.from(endless()));
                }
                seen.push(await asked.text());
                return new Response(`got ${seen.join()}`);
            }
        }),
        upload({
            id: 'upload',
            method: 'POST',
            path: '/api/upload',
            access: 'things:write',
            summary: 'Takes',
            accepts: ['application/octet-stream'],
            maxBytes: 1000,
            async handler({ body }) {
                for await (const chunk of body) {
                    seen.push(String(Buffer.from(chunk)));
                }
                return null;
            }
        })
    ];
}

describe('the end of a session while a request is under way', () => {
    beforeEach(async () => {
        ports = createTestPorts();
        seen = [];
        gateway = await createGateway({
            core: createHttpServer({ name: 'core', prefix: '', ports, routes: routes() }),
            log: ports.log
        });
        ({ port } = await gateway.listen('127.0.0.1', 0));
    });

    afterEach(() => gateway.close());

    it('drops the commands that wait on a socket, aborts its work, and cuts a peer that does not close', async () => {
        const peer = connect(port, '127.0.0.1');
        peer.on('error', () => undefined);
        let isClosed = false;
        peer.once('close', () => (isClosed = true));
        peer.write(
            `GET /api/shell HTTP/1.1\r\nHost: panel\r\nAuthorization: ${authorization}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`
        );
        expect(String((await once(peer, 'data'))[0])).to.contain(' 101 ');
        const answered = once(peer, 'data');
        peer.write(Buffer.concat([frame('first'), frame('second'), frame('third')]));
        await until(() => seen.includes('first'), 'the first command');
        ports.end('admin');
        expect(seen).to.equal(['first', 'aborted']);
        // A close frame with the code 4401; the peer does not answer it, and goes on to send commands.
        expect(((await answered)[0] as Buffer).readUInt16BE(2)).to.equal(4401);
        peer.write(frame('fourth'));
        goOn();
        await until(() => seen.includes('over'), 'the end of the handler');
        // The panel cuts after a second. The library alone would do so after 30 s, which is far past this limit.
        await until(() => isClosed, 'the end of the connection', 10_000);
        expect(seen).to.equal(['first', 'aborted', 'over']);
    });

    for (const path of ['/api/events', '/api/download', '/api/raw']) {
        it(`cuts the answer of ${path}`, async () => {
            const sent = request({ host: '127.0.0.1', port, path, headers: { authorization }, agent: false });
            sent.on('error', () => undefined).end();
            const [answer] = (await once(sent, 'response')) as [IncomingMessage];
            const over = new Promise((resolve) => answer.once('close', resolve));
            answer.on('error', () => undefined);
            await once(answer, 'data');
            answer.resume();
            ports.end('admin');
            await over;
        });
    }

    it('waits for the rest of a small body, unless its caller may not go on', async () => {
        const send = () =>
            request({
                host: '127.0.0.1',
                port,
                method: 'POST',
                path: '/api/raw',
                headers: { authorization, 'content-length': 6 },
                agent: false
            });
        const whole = send();
        whole.write('one');
        whole.end('two');
        const [answer] = (await once(whole, 'response')) as [IncomingMessage];
        expect([answer.headers['content-length'], await text(answer)]).to.equal(['10', 'got onetwo']);
        const cut = send();
        let refused: IncomingMessage | null = null;
        cut.on('error', () => undefined).once('response', (response: IncomingMessage) => {
            refused = response.resume();
        });
        cut.write('one');
        const status = await until(() => {
            ports.end('admin'); // only a request that is under way hears it
            return refused?.statusCode;
        }, 'the refusal');
        cut.destroy();
        expect([status, seen]).to.equal([401, ['onetwo']]);
    });

    it('takes no more bytes of an upload, and says why', async () => {
        const sent = request({
            host: '127.0.0.1',
            port,
            method: 'POST',
            path: '/api/upload',
            headers: { authorization, 'content-type': 'application/octet-stream' },
            agent: false
        });
        sent.write('one');
        await until(() => seen.includes('one'), 'the first bytes');
        const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
        ports.end('admin');
        sent.write('two');
        const [answer] = await answered;
        answer.resume();
        sent.destroy();
        expect([answer.statusCode, seen]).to.equal([401, ['one']]);
    });
});
