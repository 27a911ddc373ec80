import { getCACertificates, setDefaultCACertificates } from 'node:tls';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { triesPerMinute } from '../../../../extensions/monitoring/src/routes/tries.ts';
import { until } from '../../../support/until.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';
import { Servers } from './servers.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('/api/plugins/monitoring/checks', () => {
    const servers = new Servers();
    const usual = getCACertificates('default');
    let rig: MonitoringRig;
    let answer: { status: number; body: string; delayMs: number };
    let web: number;
    const seen: (string | undefined)[] = [];

    before(async () => {
        setDefaultCACertificates([...usual, servers.authority]);
        answer = { status: 200, body: '{"services":[{"state":"ok"}]}', delayMs: 0 };
        web = await servers.http((request, response) => {
            seen.push(request.headers['x-key'] as string | undefined);
            setTimeout(
                () => response.writeHead(answer.status, { location: 'http://127.0.0.1:1/' }).end(answer.body),
                answer.delayMs
            );
        });
        rig = await createMonitoringRig({ reach: ['127.0.0.0/8', 'localhost'] });
    });
    after(async () => {
        await rig.end();
        servers.end();
        setDefaultCACertificates(usual);
    });

    const test = async (check: object) => {
        const { status, data, ...rest } = await rig.ask('op', 'POST', `${base}/checks/test`, {
            name: 'Test',
            timeoutSeconds: 60,
            ...check
        });
        expect([status, rest.code]).to.equal([200, 0]);
        return data;
    };
    const http = (expected: object = {}) =>
        test({ kind: 'http', target: `http://127.0.0.1:${web}/health?x=1`, expect: expected });

    it('asks web servers, and says which step fails', async () => {
        const good = await http({ text: 'services', json: { path: 'services.0.state', equals: 'ok' } });
        expect(good).to.include({ state: 'up', code: null, message: null });
        expect([
            good.phases.name,
            good.phases.tls,
            good.phases.connect > 0,
            good.phases.firstByte > 0
        ]).to.equal([null, null, true, true]);
        expect(await http({ text: 'absent' })).to.include({
            state: 'down',
            code: 'TEXT_MISSING',
            latencyMs: null
        });
        expect(await http({ json: { path: 'services.1.state', equals: 'ok' } })).to.include({
            code: 'JSON_DIFFERS'
        });
        answer = { ...answer, status: 302 };
        expect(await http()).to.include({ state: 'up' });
        expect(await http({ status: ['2xx'] })).to.include({
            code: 'HTTP_STATUS',
            message: 'It answered 302; wanted: 2xx'
        });
        answer = { ...answer, status: 200, delayMs: 1_500 };
        const late = await test({
            kind: 'http',
            target: `http://127.0.0.1:${web}/`,
            timeoutSeconds: 1
        });
        expect(late).to.include({ state: 'down', code: 'ANSWER_TIMEOUT' });
        expect([late.phases.connect === null, late.phases.firstByte]).to.equal([false, null]);
        answer = { ...answer, delayMs: 0 };
        expect(await test({ kind: 'http', target: 'http://127.0.0.1:1/' })).to.include({
            state: 'down',
            code: 'CONNECT_REFUSED'
        });
        const garbage = await servers.tcp((socket) =>
            socket.on('error', () => undefined).end('garbage\r\n\r\n')
        );
        expect(await test({ kind: 'http', target: `http://127.0.0.1:${garbage}/` })).to.include({
            state: 'down',
            code: 'ANSWER_FAILED'
        });
        const endless = await servers.http((_request, response) => {
            const more = (): void => {
                while (!response.destroyed && response.write('x'.repeat(65_536)));
            };
            response.on('drain', more);
            more();
        });
        expect(
            await test({ kind: 'http', target: `http://127.0.0.1:${endless}/`, expect: { text: 'absent' } })
        ).to.include({ code: 'TEXT_MISSING' });
        // Of an answer the first MiB is looked at, to the byte.
        for (const [fill, state] of [
            [1024 * 1024 - 6, 'up'],
            [1024 * 1024 - 5, 'down']
        ] as const) {
            answer = { ...answer, body: `${'x'.repeat(fill)}needle` };
            expect(await http({ text: 'needle' })).to.include({ state });
        }
        answer = { ...answer, body: '{"services":[{"state":"ok"}]}' };
    });

    it('looks at certificates before it sends anything', async () => {
        let asked = 0;
        const listener = (_request: unknown, response: { end(text: string): void }): void => {
            asked += 1;
            response.end('ok');
        };
        const good = await servers.https(servers.certificate(200), listener);
        const short = servers.certificate(5);
        const expired = await servers.https(servers.certificate(-1), listener);
        const url = (port: number, host = 'localhost') => ({
            kind: 'http',
            target: `https://${host}:${port}/`
        });
        const up = await test(url(good));
        expect([up.state, up.phases.name !== null, up.phases.tls > 0]).to.equal(['up', true, true]);
        expect(await test({ ...url(good), expect: { certificateDays: 300 } })).to.include({
            state: 'degraded',
            code: 'CERTIFICATE_ENDS'
        });
        expect(asked).to.equal(2);
        expect(await test(url(expired))).to.include({
            state: 'down',
            code: 'TLS_CERTIFICATE',
            message: 'The certificate has expired'
        });
        expect(await test(url(good, '127.0.0.2'))).to.include({ state: 'down' });
        expect(asked).to.equal(2);
        expect(await test({ kind: 'http', target: `https://127.0.0.1:${web}/` })).to.include({
            code: 'TLS_FAILED'
        });
        const port = await servers.tls(short);
        expect(await test({ kind: 'tls', target: `localhost:${port}` })).to.include({ state: 'degraded' });
        expect(
            await test({ kind: 'tls', target: `localhost:${port}`, expect: { certificateDays: 2 } })
        ).to.include({ state: 'up' });
    });

    it('talks TCP, asks name servers and pings', async () => {
        const port = await servers.tcp((socket) => {
            socket.on('error', () => undefined);
            socket.on('data', (text) => socket.write(`+PONG ${String(text)}`));
        });
        const target = `127.0.0.1:${port}`;
        expect(await test({ kind: 'tcp', target })).to.include({ state: 'up' });
        expect(
            await test({ kind: 'tcp', target, expect: { send: 'PING\r\n', receive: '+PONG' } })
        ).to.include({ state: 'up' });
        const waiting = { timeoutSeconds: 1, expect: { receive: '+PONG' } };
        expect(await test({ kind: 'tcp', target, ...waiting })).to.include({ code: 'ANSWER_TIMEOUT' });
        const closes = await servers.tcp((socket) => socket.end('bye'));
        expect(
            await test({ kind: 'tcp', target: `127.0.0.1:${closes}`, expect: { receive: '+PONG' } })
        ).to.include({ code: 'TEXT_MISSING' });
        const server = `127.0.0.1:${await servers.dns('192.0.2.7')}`;
        const dns = (name: string, expected: object = {}) =>
            test({ kind: 'dns', target: name, expect: { server, ...expected } });
        expect(await dns('good.test', { values: ['192.0.2.7'] })).to.include({ state: 'up' });
        expect(await dns('good.test', { values: ['192.0.2.8'] })).to.include({ code: 'VALUE_MISSING' });
        expect(await dns('bad.test')).to.include({ code: 'NAME_NOT_FOUND' });
        const silent = await servers.tcp(() => undefined);
        expect(
            await test({
                kind: 'dns',
                target: 'good.test',
                timeoutSeconds: 1,
                expect: { server: `127.0.0.1:${silent}` }
            })
        ).to.include({ state: 'down' });
        const pong = await test({ kind: 'ping', target: '127.0.0.1' });
        expect([pong.state, pong.latencyMs > 0 && pong.latencyMs < 1_000]).to.equal(['up', true]);
    });

    it('refuses what does not fit to the kind, and keeps values of headers to itself', async () => {
        const refused = async (check: object): Promise<string[]> => {
            const { code, data } = await rig.ask('op', 'POST', `${base}/checks`, { name: 'Bad', ...check });
            expect(code).to.equal(40001);
            return data.errors.map(({ path }: { path: string }) => path);
        };
        expect(await refused({ kind: 'http', target: 'ftp://x' })).to.equal(['target']);
        expect(await refused({ kind: 'http', target: 'http://me:secret@x/' })).to.equal(['target']);
        expect(await refused({ kind: 'ping', target: '-f' })).to.equal(['target']);
        expect(await refused({ kind: 'tcp', target: 'x', expect: { text: 'a' } })).to.equal([
            'target',
            'expect.text'
        ]);
        const http = { kind: 'http', target: `http://127.0.0.1:${web}/` };
        expect(await refused({ ...http, expect: { headers: { 'Transfer-Encoding': 'chunked' } } })).to.equal([
            'expect.headers.Transfer-Encoding'
        ]);
        expect(await refused({ ...http, expect: { headers: { a: { set: true } } } })).to.equal([
            'expect.headers.a'
        ]);
        const made = await rig.ask('op', 'POST', `${base}/checks`, {
            name: 'Keyed',
            ...http,
            expect: { headers: { 'X-Key': 'sesame' } }
        });
        const { id } = made.data;
        expect([made.status, made.data.expect]).to.equal([201, { headers: { 'X-Key': { set: true } } }]);
        const renamed = await rig.ask('op', 'PUT', `${base}/checks/${id}`, {
            name: 'Keyed 2',
            expect: made.data.expect
        });
        expect([renamed.status, renamed.data.version]).to.equal([200, 2]);
        expect(
            (await rig.ask('op', 'PUT', `${base}/checks/${id}`, { name: 'Late', version: 1 })).code
        ).to.equal(41200);
        await rig.ask('op', 'POST', `${base}/checks/${id}/run`);
        expect(seen.at(-1)).to.equal('sesame');
        expect(
            JSON.stringify([rig.host.audit, rig.host.log, (await rig.get('/checks')).data])
        ).to.not.contain('sesame');
        expect(
            (await rig.ask('viewer', 'POST', `${base}/checks/test`, { name: 'x', ...http })).status
        ).to.equal(403);
        expect((await rig.ask('op', 'DELETE', `${base}/checks/${id}`)).status).to.equal(200);
        expect((await rig.get(`/checks/${id}`)).status).to.equal(404);
    });

    it('is down after more tries, tells of it, knows its uptime, and keeps all of that over a restart', async () => {
        const { data: made } = await rig.ask('op', 'POST', `${base}/checks`, {
            name: 'Shop',
            kind: 'http',
            target: `http://127.0.0.1:${web}/`,
            tags: ['web'],
            intervalSeconds: 86_400
        });
        const run = async (status: number): Promise<string> => {
            answer = { ...answer, status };
            rig.machine.pass(1_000);
            await rig.ask('op', 'POST', `${base}/checks/${made.id}/run`);
            return (await rig.get(`/checks/${made.id}`)).data.state;
        };
        expect([await run(200), await run(500), await run(200), await run(500), await run(500)]).to.equal([
            'up',
            'up',
            'up',
            'up',
            'down'
        ]);
        const { findings } = (await rig.get('/unhealthy')).data;
        expect(findings.find(({ kind }: { kind: string }) => kind === 'check')).to.include({
            severity: 'critical',
            subject: 'Shop',
            message: 'It answered 500; wanted: 2xx, 3xx'
        });
        await rig.machine.tick();
        const [alert] = (await rig.get('/alerts?state=firing')).data;
        expect([alert.metric, alert.instance, rig.host.notifications.at(-1)?.title]).to.equal([
            'check.up',
            'Shop',
            'A check is down: Shop'
        ]);
        const { data: check } = await rig.get(`/checks/${made.id}`);
        expect(check).to.include({ state: 'down', lastError: 'It answered 500; wanted: 2xx, 3xx' });
        expect([check.uptime.day > 60, check.uptime.day < 85]).to.equal([true, true]);
        const results = await rig.get(`/checks/${made.id}/results?limit=3`);
        expect(results.data.map(({ code }: { code: string | null }) => code)).to.equal([
            'HTTP_STATUS',
            'HTTP_STATUS',
            null
        ]);
        const next = /<([^>]+)>/.exec(results.headers.get('link') ?? '')?.[1] ?? '';
        expect(
            (await rig.ask('viewer', 'GET', next)).data
                .map(({ state }: { state: string }) => state)
                .slice(0, 2)
        ).to.equal(['down', 'up']);
        await rig.host.restart();
        expect((await rig.get(`/checks/${made.id}`)).data).to.equal(check);
        expect((await rig.get('/checks?state=down&tag=web&q=sho&kind=http')).data).to.have.length(1);
        expect((await rig.get('/checks?state=up')).data).to.equal([]);
        expect(await run(200)).to.equal('up');
        await rig.machine.tick();
        expect(rig.host.notifications.at(-1)?.title).to.equal('Over: A check is down: Shop');
        expect((await rig.get('/metrics/history?metric=check.up:Shop')).status).to.equal(200);
        await rig.ask('op', 'PUT', `${base}/checks/${made.id}`, { enabled: false });
        expect((await rig.get('/checks')).data[0].state).to.equal('paused');
    });

    it('are tried by hand so often only, by each user', async () => {
        const check = { name: 'Often', kind: 'tcp', target: '127.0.0.1:1', timeoutSeconds: 1 };
        const { data } = await rig.ask('root', 'POST', `${base}/checks`, check);
        // To make it was a try, too.
        const first = await rig.ask('root', 'POST', `${base}/checks/${data.id}/run`);
        expect(first.code).to.equal(0);
        for (let n = 2; n < triesPerMinute; n += 1) {
            expect((await rig.ask('root', 'POST', `${base}/checks/test`, check)).code).to.equal(0);
        }
        const { status, code, headers } = await rig.ask('root', 'POST', `${base}/checks/${data.id}/run`);
        expect([status, code]).to.equal([429, 42950]);
        expect(Number(headers.get('retry-after'))).to.be.between(0, 61);
        expect((await rig.ask('root', 'POST', `${base}/checks/test`, check)).code).to.equal(42950);
        expect((await rig.ask('op', 'POST', `${base}/checks/test`, check)).code).to.equal(0);
        const tried = seen.length;
        const target = `http://127.0.0.1:${web}/often`;
        const later = { kind: 'http', target, intervalSeconds: 86_400 };
        const waits = await rig.ask('root', 'POST', `${base}/checks`, { name: 'Later', ...later });
        await rig.ask('root', 'PUT', `${base}/checks/${waits.data.id}`, { target: `${target}/again` });
        const by = await rig.ask('op', 'POST', `${base}/checks`, { name: 'Other', ...later });
        await until(async () => (await rig.get(`/checks/${by.data.id}`)).data.state === 'up');
        expect((await rig.get(`/checks/${waits.data.id}`)).data.state).to.equal('unknown');
        expect(seen.length).to.equal(tried + 1);
        rig.machine.pass(61_000);
        expect((await rig.ask('root', 'POST', `${base}/checks/test`, check)).code).to.equal(0);
    });
});

describe('Checks without a grant', () => {
    it('reach nothing of the own network, by name or address', async () => {
        const servers = new Servers();
        const rig = await createMonitoringRig();
        try {
            const port = await servers.http((_request, response) => response.end('secret'));
            rig.host.network.name('inside.test', ['127.0.0.1', '10.0.0.1', '169.254.169.254']);
            for (const host of [
                '127.0.0.1',
                'inside.test',
                '[::1]',
                '[::ffff:127.0.0.1]',
                '169.254.169.254'
            ]) {
                const { data } = await rig.ask('op', 'POST', `${base}/checks/test`, {
                    name: 'Spy',
                    kind: 'http',
                    target: `http://${host}:${port}/`,
                    timeoutSeconds: 1
                });
                expect([host, data.state, data.code]).to.equal([host, 'down', 'ADDRESS_FORBIDDEN']);
            }
            rig.host.programs.missing('ping');
            rig.host.network.name('out.test', ['93.184.215.14']);
            const ping = { name: 'Ping', kind: 'ping', target: 'out.test' };
            expect((await rig.ask('op', 'POST', `${base}/checks/test`, ping)).code).to.equal(50302);
            rig.host.programs.answer('ping', 'From 192.0.2.1: 64 bytes: icmp_seq=1 ttl=64 time=0.042 ms\n');
            const { data } = await rig.ask('op', 'POST', `${base}/checks/test`, ping);
            expect([data.state, data.latencyMs]).to.equal(['up', 0.042]);
            expect(rig.host.programs.calls.at(-1)?.args.slice(-2)).to.equal(['--', '93.184.215.14']);
        } finally {
            await rig.end();
            servers.end();
        }
    });
});
