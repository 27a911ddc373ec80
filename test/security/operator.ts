/** A user who may change hosts, and reaches through them for more. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineHome } from '../../core/src/engine/files/home.ts';
import { createFaultyEngine } from '../support/engine/faulty.ts';
import type { Answer } from '../support/panel/client.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const faults = (answer: Answer): string[] =>
    (answer.data.errors as { path: string }[]).map(({ path }) => path);

describe('an operator', () => {
    let at: TestPanel;
    let operator = '';
    let viewer = '';

    before(async () => {
        at = await startPanel({ driver: createFaultyEngine() });
        operator = await at.tokenOf('operator');
        viewer = await at.tokenOf('viewer');
    });
    after(() => at.close());

    const needsUnsafe = async (answer: Promise<Answer>, what: string): Promise<void> => {
        const { code, data, text } = await answer;
        expect([code, data.permission], `${what}: ${text.slice(0, 200)}`).to.equal([40300, 'hosts:unsafe']);
    };

    it('does not set Host on requests by having an answer of another server copied into it', async () => {
        for (const name of ['Host', 'hOST']) {
            const body = {
                domain: 'copied.test',
                upstream: '127.0.0.1:9',
                access: { forwardAuth: { url: 'http://198.51.100.7/', copyHeaders: ['X-User', name] } }
            };
            await needsUnsafe(at.client.post('/api/hosts', body, { token: operator }), name);
            await needsUnsafe(at.client.post('/api/hosts/validate', body, { token: viewer }), name);
        }
    });

    it('does not open more of a socket than an admin did', async () => {
        const location = { path: '/version', upstream: 'unix//run/service.sock', stripPrefix: false };
        const { data: host, status } = await at.client.post('/api/hosts', {
            domain: 'socket.test',
            upstream: '127.0.0.1:9',
            locations: [location]
        });
        expect(status).to.equal(201);
        for (const [what, change] of Object.entries({
            path: { path: '/containers' },
            stripPrefix: { stripPrefix: true },
            upstream: { upstream: 'unix//run/other.sock' }
        })) {
            await needsUnsafe(
                at.client.put(
                    `/api/hosts/${host.id}`,
                    { locations: [{ ...location, ...change }] },
                    { token: operator }
                ),
                what
            );
        }
        await needsUnsafe(
            at.client.put(
                `/api/hosts/${host.id}`,
                { locations: [location, { ...location, path: '/containers' }] },
                { token: operator }
            ),
            'a second one'
        );
        await needsUnsafe(
            at.client.put(`/api/hosts/${host.id}`, { locations: null }, { token: operator }),
            'none'
        );
        await needsUnsafe(
            at.client.post(`/api/hosts/${host.id}/clone`, { domain: 'socket2.test' }, { token: operator }),
            'clone'
        );
        expect((await at.client.get(`/api/hosts/${host.id}`)).data).to.equal(host);
        const other = await at.client.put(
            `/api/hosts/${host.id}`,
            { locations: [{ path: '/plain', upstream: '127.0.0.1:9', stripPrefix: false }, location] },
            { token: operator }
        );
        expect(other.status, "what reaches no socket is the operator's").to.equal(200);
    });

    it('does not lead the engine to itself by any name that this machine has', async () => {
        const names = readFileSync('/etc/hosts', 'utf8')
            .split('\n')
            .map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
            .filter(([address = '']) => isIP(address) > 0 && /^(?:127\.|::1$)/.test(address))
            .flatMap(([, ...rest]) => rest);
        for (const name of [
            'localhost',
            'LOCALHOST',
            'x.localhost',
            '127.0.0.9',
            '0.0.0.0',
            '[::1]',
            '[::]',
            '[::ffff:127.0.0.1]',
            '[0:0:0:0:0:ffff:7f00:1]',
            ...names
        ]) {
            for (const port of [at.httpPort, at.httpsPort]) {
                const answer = await at.client.post(
                    '/api/hosts/validate',
                    { domain: 'round.test', upstream: `${name}:${port}` },
                    { token: operator }
                );
                expect([answer.code, ...faults(answer)], `${name}:${port}`).to.equal([
                    40001,
                    'upstreams.0.address'
                ]);
            }
        }
        for (const name of [
            '0',
            '127.1',
            '0x7f.1',
            '0177.0.0.1',
            '2130706433',
            'localhost.',
            '[::1%lo]',
            '127.0.0.1@a',
            '①27.0.0.1'
        ]) {
            expect(
                (
                    await at.client.post(
                        '/api/hosts/validate',
                        { domain: 'round.test', upstream: `${name}:${at.httpPort}` },
                        { token: operator }
                    )
                ).code,
                name
            ).to.equal(40001);
        }
    });

    it("does not lead visitors to a cloud's metadata or the engine's admin socket by any spelling or field", async () => {
        const spellings = [
            '169.254.169.254',
            '169.254.0.1',
            'fe80::a9fe:a9fe',
            'FE80:0:0:0:0:0:0:1',
            '::ffff:169.254.169.254',
            '::FFFF:A9FE:A9FE',
            '0:0:0:0:0:ffff:a9fe:a9fe',
            '::169.254.169.254',
            '::ffff:0:169.254.169.254',
            '64:ff9b::169.254.169.254',
            '64:ff9b:1::a9fe:a9fe',
            '2002:a9fe:a9fe::1',
            'fd00:ec2::254',
            'fd20:ce::254',
            'fd00:42::42',
            '100.100.100.200',
            '::ffff:100.100.100.200',
            '192.0.0.192',
            '168.63.129.16',
            'metadata.google.internal',
            'METADATA.Google.Internal',
            'metadata'
        ].map((host) => (host.includes(':') ? `[${host}]` : host));
        const { adminSocket } = engineHome(at.config.dataDir, at.config.engineUser);
        const fields = (address: string): Record<string, object> => ({
            upstream: { upstream: address },
            upstreams: { upstreams: [{ address: '127.0.0.1:9' }, { address }] },
            locations: { upstream: '127.0.0.1:9', locations: [{ path: '/x', upstream: address }] },
            forwardAuth: {
                upstream: '127.0.0.1:9',
                access: { forwardAuth: { url: `http://${address}/latest` } }
            }
        });
        const ask = (change: object): Promise<Answer> =>
            at.client.post('/api/hosts', { domain: 'led.test', ...change }, { token: operator });
        for (const host of spellings) {
            for (const [field, change] of Object.entries(fields(`${host}:80`))) {
                await needsUnsafe(ask(change), `${field} ${host}`);
            }
        }
        // What the engine would read as the same address is not an address here.
        for (const host of [
            '2852039166',
            '0xa9fea9fe',
            '0xa9.0xfe.0xa9.0xfe',
            '0251.0376.0251.0376',
            '169.254.43518',
            '169.254.169.254.',
            '１６９.254.169.254',
            '169。254。169。254',
            '[fe80::1%eth0]',
            '[::ffff:169.254.169.254%lo]',
            '169.254.169.254%00',
            'x@169.254.169.254'
        ]) {
            for (const [field, change] of Object.entries(fields(`${host}:80`))) {
                const { code, data, text } = await ask(change);
                const isRefused = code === 40001 || (code === 40300 && data.permission === 'hosts:unsafe');
                expect(isRefused, `${field} ${host}: ${text.slice(0, 200)}`).to.be.true();
            }
        }
        for (const socket of [adminSocket, adminSocket.replace('/admin/', '//admin/./'), `/${adminSocket}`]) {
            for (const change of [
                { upstream: `unix/${socket}` },
                { upstreams: [{ address: `unix/${socket}` }] },
                { upstream: '127.0.0.1:9', locations: [{ path: '/', upstream: `unix/${socket}` }] }
            ]) {
                const { code, data } = await ask(change);
                expect([40001, 40300], `${socket} ${data.permission}`).to.include(code);
                const admin = await at.client.post('/api/hosts', { domain: 'led.test', ...change });
                expect(admin.code, `${socket} ${JSON.stringify(change)}`).to.equal(40001);
            }
        }
        expect((await at.client.get('/api/hosts?q=led.test')).data).to.equal([]);
    });

    it('costs no password hash by trying, nor does a viewer', async () => {
        const basicAuth = Array.from({ length: 50 }, (_, index) => ({
            username: `u${index}`,
            password: 'x'.repeat(72)
        }));
        const start = process.cpuUsage();
        const { data } = await at.client.post(
            '/api/hosts/validate',
            { domain: 'tried.test', upstream: '127.0.0.1:9', access: { basicAuth } },
            { token: viewer }
        );
        const { user, system } = process.cpuUsage(start);
        expect(data).to.equal({ reload: true });
        expect((user + system) / 1000).to.be.below(1_000);
    });
});

describe('a user with hosts:unsafe', () => {
    let at: TestPanel;

    before(async () => {
        at = await startPanel({ driver: createFaultyEngine() });
    });
    after(() => at.close());

    it('still does not leave it to a request where the engine dials or reads', async () => {
        const bad: Record<string, object> = {
            'advanced.0.upstreams.0.dial': {
                handler: 'reverse_proxy',
                upstreams: [{ dial: '{http.request.header.X-Dial}' }]
            },
            'advanced.0.routes.0.handle.0.root': {
                handler: 'subroute',
                routes: [{ handle: [{ handler: 'file_server', browse: {} }] }]
            },
            'advanced.0.root': { handler: 'file_server', root: '/{http.request.header.X-Root}' },
            'advanced.0.handler': { handler: 'templates' },
            'advanced.0.routes.0.handle.0.vars.root': {
                handler: 'subroute',
                routes: [{ handle: [{ handler: 'vars', vars: { root: '/srv/{http.request.host}' } }] }]
            }
        };
        for (const [path, handler] of Object.entries(bad)) {
            const answer = await at.client.post('/api/hosts', {
                domain: 'led.test',
                upstream: '127.0.0.1:9',
                advanced: [handler]
            });
            expect([answer.code, ...faults(answer)], path).to.equal([40001, path]);
        }
        expect((await at.client.get('/api/hosts')).data).to.equal([]);
    });
});
