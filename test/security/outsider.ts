/** A stranger without an account, who can only send requests. */
import { getEventListeners } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createGateway } from '../../core/src/server/gateway/gateway.ts';
import { liftTicket, ticketOf } from '../../core/src/server/http/request/ticket.ts';
import { stream } from '../../core/src/server/http/route.ts';
import { createHttpServer } from '../../core/src/server/http/server.ts';
import { createTestPorts } from '../support/core/http-ports.ts';
import { createFaultyEngine } from '../support/engine/faulty.ts';
import { Client } from '../support/panel/client.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

/** Milliseconds of processor that this process, panel included, spends on something. */
async function processorOf(work: () => Promise<unknown>): Promise<number> {
    const start = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
}

describe('an outsider', () => {
    let at: TestPanel;

    before(async () => {
        at = await startPanel({ driver: createFaultyEngine() });
    });
    after(() => at.close());

    it('makes the panel neither count a hundred thousand mistakes nor tell of them', async () => {
        const unknown = Object.fromEntries(Array.from({ length: 90_000 }, (_, index) => [`k${index}`, 1]));
        for (const path of ['/api/auth/login', '/api/auth/refresh']) {
            let text = '';
            const spent = await processorOf(async () => {
                const answer = await at.client.post(path, unknown, { token: null });
                expect([answer.code, answer.data.reason], path).to.equal([40000, 'BAD_REQUEST']);
                ({ text } = answer);
            });
            expect(text.length, path).to.be.below(20_000);
            // 90,000 of them cost half a second while a schema looked at each.
            expect(spent, path).to.be.below(150);
        }
        const small = await at.client.post('/api/auth/login', { a: 1, b: 2, username: 3 }, { token: null });
        expect((small.data.errors as { path: string }[]).map(({ path }) => path).sort()).to.equal([
            'a',
            'b',
            'password',
            'username'
        ]);
    });

    it('is not answered with a fault for lists that are too long to be wrong one by one', async () => {
        for (const body of [
            { domain: 'a.test', aliases: Array.from({ length: 200_000 }, () => 1) },
            { domain: 'a.test', access: { allow: Array.from({ length: 100_000 }, () => null) } }
        ]) {
            const answer = await at.client.post('/api/hosts/validate', body);
            expect([answer.code, answer.text.length < 20_000]).to.equal([40000, true]);
        }
    });
});

describe('liftTicket', () => {
    it('leaves none of several tickets in the address', () => {
        for (const [url, rest, ticket] of [
            ['/a?ticket=one&ticket=two', '/a', 'one'],
            ['/a?x=1&ticket=one&ticket=two&y=2', '/a?x=1&y=2', 'one'],
            ['/a?ticket=one&x=1&ticket=two', '/a?x=1', 'one'],
            ['/a?x=1', '/a?x=1', null],
            ['/a?xticket=1', '/a?xticket=1', null],
            ['/a&ticket=1', '/a&ticket=1', null],
            ['/a?ticket=', '/a', '']
        ] as const) {
            const request = new IncomingMessage(new Socket());
            request.url = url;
            liftTicket(request);
            expect([request.url, ticketOf(request)], url).to.equal([rest, ticket]);
        }
    });
});

describe('an event stream', () => {
    it('leaves nothing behind for an event that was sent', async () => {
        let signal!: AbortSignal;
        let sent = 0;
        const ports = createTestPorts();
        const core = createHttpServer({
            name: 'core',
            prefix: '',
            ports,
            routes: [
                stream({
                    id: 'flood',
                    path: '/api/flood',
                    access: { public: 'The test looks at the stream alone' },
                    summary: 'Floods',
                    async *handler(request) {
                        ({ signal } = request);
                        for (; sent < 2_000; sent += 1) {
                            yield { data: sent };
                        }
                        expect(getEventListeners(request.signal, 'abort').length).to.be.below(10);
                        yield { event: 'checked', data: null };
                    }
                })
            ]
        });
        const gateway = await createGateway({ core, log: ports.log });
        try {
            const { port } = await gateway.listen('127.0.0.1', 0);
            const { status, text } = await new Client(port).get('/api/flood');
            expect([status, sent, text.match(/^data: \d+$/gm)?.length]).to.equal([200, 2_000, 2_000]);
            expect(text).to.contain('event: checked').and.to.not.contain('event: error');
            expect(getEventListeners(signal, 'abort').length).to.be.below(10);
        } finally {
            await gateway.close();
        }
    });
});
