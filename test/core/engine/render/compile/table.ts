import { once } from 'node:events';
import { connect } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { WebSocket } from 'ws';

import { bridgeOf } from '../../../../../core/src/engine/files/table/entry.ts';
import { startCaddy, type TestCaddy } from '../../../../support/engine/caddy.ts';
import { testSite } from '../../../../support/engine/site.ts';
import { received, startUpstream, type TestUpstream } from '../../../../support/servers/upstream.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

/** One request as raw bytes, for what a client library would not send. */
const raw = (port: number, text: string): Promise<string> =>
    new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(text));
        let answer = '';
        socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')));
        socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
        socket.on('error', reject);
        socket.on('close', () => resolve(answer));
    });

describe('the file table in a running engine', { timeout: 60_000 }, () => {
    let caddy: TestCaddy;
    let one: TestUpstream;
    let two: TestUpstream;
    const site = (id: number, domain: string, over: Parameters<typeof testSite>[0] = {}) => ({
        id,
        site: testSite({ id, domain, upstreams: [{ address: one.address, weight: 1 }], ...over })
    });

    before(async () => {
        [caddy, one, two] = await Promise.all([startCaddy(), startUpstream('one'), startUpstream('two')]);
        await caddy.apply({ sites: [site(1, 'a.test', { aliases: ['www.a.test'] })] });
    });

    after(async () => {
        await Promise.all([caddy.close(), one.close(), two.close()]);
    });

    it('serves a name and its alias, and answers 404 to every other', async () => {
        for (const host of ['a.test', 'www.a.test', `a.test:${caddy.settings.httpPort}`, 'a.test:']) {
            const reply = await caddy.ask({ host });
            expect([host, reply.status]).to.equal([host, 200]);
            expect(received(reply.body).name).to.equal('one');
        }

        for (const host of [
            'b.test',
            'x.a.test',
            'test',
            'a',
            '127.0.0.1',
            `127.0.0.1:${caddy.settings.httpPort}`,
            '[::1]'
        ]) {
            const reply = await caddy.ask({ host });
            expect([host, reply.status, reply.body]).to.equal([host, 404, '404 Not Found\n']);
        }
    });

    it('refuses capitals and a final dot with 421 whether the site exists or not', async () => {
        for (const host of ['A.test', 'a.Test:80', 'NOBODY.test', 'a.test.', 'a.test.:80']) {
            expect([host, (await caddy.ask({ host })).status]).to.equal([host, 421]);
        }
    });

    it('gives hostile names nothing', async () => {
        const hosts = [
            '*',
            '*.test',
            '?.test',
            'a.tes?',
            '[a].test',
            '[a-z].test',
            '..',
            '.',
            '../table/a.test',
            'a.test/..',
            '..%2fa.test',
            'a%2etest',
            'a.test%00',
            'a..test',
            '.a.test',
            '-a.test',
            'a.test\\',
            '\\a.test',
            '+.a.test',
            '{a.test}',
            '{env.HOME}',
            'a.test,on',
            `${'a'.repeat(300)}.test`,
            `${'a.'.repeat(2000)}test`,
            'xn--',
            '_.a.test',
            'ä.test',
            'a.test a.test',
            'on,none'
        ];
        for (const host of hosts) {
            const answer = await raw(
                caddy.settings.httpPort,
                `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
            );
            const status = Number(answer.slice(9, 12));
            expect([host, [400, 404, 421].includes(status)]).to.equal([host, true]);
            expect(answer).to.not.include('"name"');
        }

        expect(
            await raw(caddy.settings.httpPort, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')
        ).to.startWith('HTTP/1.1 400');
        expect(await raw(caddy.settings.httpPort, 'GET / HTTP/1.0\r\n\r\n')).to.startWith('HTTP/1.0 404');
        expect(
            await raw(
                caddy.settings.httpPort,
                'GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\nConnection: close\r\n\r\n'
            )
        ).to.startWith('HTTP/1.1 400');
    });

    it('serves an IDN by its A-label', async () => {
        const step = await caddy.apply({ sites: [site(2, 'xn--bcher-kva.test')] });
        expect(step.needsReload).to.be.false();
        expect((await caddy.ask({ host: 'xn--bcher-kva.test' })).status).to.equal(200);
    });

    it('matches one label by a wildcard, after the exact name, also when that is off', async () => {
        const exact = site(4, 'x.w.test', { upstreams: [{ address: two.address, weight: 1 }] });
        const step = await caddy.apply({ sites: [site(3, '*.w.test'), exact] });
        expect(step.needsReload).to.be.false();
        expect(received((await caddy.ask({ host: 'y.w.test' })).body).name).to.equal('one');
        expect(received((await caddy.ask({ host: 'x.w.test' })).body).name).to.equal('two');
        expect((await caddy.ask({ host: 'y.y.w.test' })).status).to.equal(404);
        expect((await caddy.ask({ host: 'w.test' })).status).to.equal(404);

        await caddy.apply({ sites: [{ id: 4, site: { ...exact.site, enabled: false } }] });
        expect((await caddy.ask({ host: 'x.w.test' })).status).to.equal(404);
        expect((await caddy.ask({ host: 'y.w.test' })).status).to.equal(200);

        await caddy.apply({ sites: [{ id: 4, site: null }] });
        expect(received((await caddy.ask({ host: 'x.w.test' })).body).name).to.equal('one');
    });

    it('brings a new host, another upstream, off, on and maintenance without a reload, with a WebSocket open all the time', async () => {
        const socket = new WebSocket(`ws://127.0.0.1:${caddy.settings.httpPort}/`, {
            headers: { host: 'a.test' }
        });
        const said: string[] = [];
        let closed = false;
        socket.on('message', (data) => said.push(String(data)));
        socket.on('close', () => (closed = true));
        await new Promise((resolve, reject) => {
            socket.once('open', resolve);
            socket.once('error', reject);
        });

        const host = site(5, 'n.test');
        const states: readonly [Parameters<typeof testSite>[0], number, string | null][] = [
            [{}, 200, 'one'],
            [{ upstreams: [{ address: two.address, weight: 1 }] }, 200, 'two'],
            [{ upstreams: [{ address: `http://${one.address}`, weight: 1 }] }, 200, 'one'],
            [{ enabled: false }, 404, null],
            [{ maintenance: true }, 503, null],
            [{ aliases: ['m.test'] }, 200, 'one']
        ];
        for (const [over, status, name] of states) {
            const step = await caddy.apply({ sites: [{ id: 5, site: { ...host.site, ...over } }] });
            expect(step.needsReload).to.be.false();
            const reply = await caddy.ask({ host: 'n.test' });
            expect(reply.status).to.equal(status);
            expect(name === null ? null : received(reply.body).name).to.equal(name);
            expect(reply.headers['retry-after']).to.equal(status === 503 ? '300' : undefined);
        }

        socket.send('still here');
        await until(() => said.length > 0, 'the WebSocket answers');
        expect(said).to.equal(['one:still here']);
        expect(closed).to.be.false();
        socket.close();
        await until(() => closed, 'the WebSocket is closed');
        await caddy.apply({ sites: [{ id: 5, site: null }] });
        expect((await caddy.ask({ host: 'n.test' })).status).to.equal(404);
    });

    it('never misses a name while its entry is renamed', async () => {
        const host = site(6, 'busy.test');
        await caddy.apply({ sites: [host] });
        let running = true;
        const answers = new Map<string, number>();
        const askers = Array.from({ length: 4 }, async () => {
            while (running) {
                const reply = await caddy.ask({ host: 'busy.test' });
                const key = reply.status === 200 ? received(reply.body).name : String(reply.status);
                answers.set(key, (answers.get(key) ?? 0) + 1);
            }
        });
        for (let turn = 0; turn < 300; turn += 1) {
            await caddy.apply({
                sites: [
                    {
                        id: 6,
                        site: {
                            ...host.site,
                            upstreams: [{ address: turn % 2 === 0 ? two.address : one.address, weight: 1 }]
                        }
                    }
                ]
            });
            await new Promise((resolve) => setImmediate(resolve));
        }

        running = false;
        await Promise.all(askers);
        expect([...answers.keys()].filter((key) => key !== 'one' && key !== 'two')).to.equal([]);
    });

    it('leads a connection from before a load by the former behaviour, and each new one by the new', async () => {
        const marked = (mark: string) =>
            site(7, 'moved.test', {
                headers: { request: [], response: [{ op: 'set', name: 'X-Behaviour', value: mark }] }
            });
        const behaviour = async (): Promise<unknown> =>
            (await caddy.ask({ host: 'moved.test' })).headers['x-behaviour'];
        await caddy.apply({ sites: [marked('former')] });
        const early = connect(caddy.settings.httpPort, '127.0.0.1');
        const heard = new Promise<string>((resolve, reject) => {
            let text = '';
            early.on('data', (chunk) => (text += chunk.toString('latin1')));
            early.on('error', reject).on('close', () => resolve(text));
        });
        await once(early, 'connect');
        // Connections are accepted in turn: the early one was, when this one is answered.
        expect(await behaviour()).to.equal('former');
        const step = caddy.projection.change({ sites: [marked('latter')] });
        await caddy.load(step.config());
        caddy.projection.loaded();
        const [move] = step.table;
        const { name, from, to } = move ?? { name: '', from: null, to: null };
        const bridge = bridgeOf(from ?? '', to ?? '');
        await caddy.table.apply([{ name, from, to: bridge }]);
        expect(await behaviour()).to.equal('latter');
        early.write('GET / HTTP/1.1\r\nHost: moved.test\r\nConnection: close\r\n\r\n');
        expect(await heard)
            .to.startWith('HTTP/1.1 200 ')
            .and.contain('X-Behaviour: former')
            .and.contain('one');
        await caddy.table.apply([{ name, from: bridge, to }]);
        expect(await behaviour()).to.equal('latter');
        await caddy.apply({ sites: [{ id: 7, site: null }] });
    });

    it('tells profiles apart when there are more than a linear search should see', async () => {
        const sites = Array.from({ length: 80 }, (_, index) =>
            site(100 + index, `p${index}.test`, {
                headers: { request: [{ op: 'set', name: 'X-Profile', value: String(index) }], response: [] }
            })
        );
        const step = await caddy.apply({ sites });
        expect(step.needsReload).to.be.true();
        for (const index of [0, 1, 17, 40, 79]) {
            const reply = await caddy.ask({ host: `p${index}.test` });
            expect(received(reply.body).headers['x-profile']).to.equal(String(index));
        }

        expect(
            (await caddy.apply({ sites: sites.map(({ id }) => ({ id, site: null })) })).needsReload
        ).to.be.false();
        expect((await caddy.ask({ host: 'p0.test' })).status).to.equal(404);
        expect((await caddy.ask({ host: 'a.test' })).status).to.equal(200);
    });
});
