/** Tasks that send a request, and tasks that call a route of the panel. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { errors } from '@portico/sdk';

import { freePort } from '../../../support/ports.ts';
import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('a task with a request', { timeout: 60_000 }, () => {
    let rig: CronjobRig;
    let server: Server;
    let url: string;
    const seen: { method: string; authorization: string; body: string }[] = [];

    before(async () => {
        rig = await createCronjobRig();
        server = createServer((request, answer) => {
            let body = '';
            request.on('data', (chunk) => (body += String(chunk)));
            request.on('end', () => {
                seen.push({
                    method: request.method ?? '',
                    authorization: request.headers.authorization ?? '',
                    body
                });
                if (request.url === '/slow') {
                    return; // it never answers
                }
                const location = new URLSearchParams(request.url?.split('?')[1]).get('to');
                answer
                    .writeHead(
                        request.url === '/broken' ? 503 : location === null ? 200 : 302,
                        location === null ? {} : { location }
                    )
                    .end('all is well here');
            });
        });
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        url = 'http://status.test';
        const real = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        rig.host.network.answer('status.test', (request) =>
            fetch(request.url.replace(url, real), {
                method: request.method,
                headers: request.headers,
                signal: request.signal,
                redirect: 'manual',
                ...(request.body === null ? {} : { body: request.body, duplex: 'half' })
            } as RequestInit)
        );
    });
    after(async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
        await rig.close();
    });

    it('sends it with its sealed headers, and judges status and text', async () => {
        const request = {
            url: `${url}/`,
            method: 'POST',
            headers: { Authorization: 'Bearer open-sesame' },
            body: 'ping',
            expectText: 'is well'
        };
        const id = await rig.task({ request });
        const run = await rig.finish(id);
        expect([run.state, run.status, run.output]).to.equal(['succeeded', 200, '200\n\nall is well here']);
        expect(seen.at(-1)).to.equal({ method: 'POST', authorization: 'Bearer open-sesame', body: 'ping' });
        const { data, text } = await rig.ask('GET', `/tasks/${id}`);
        expect([data.kind, data.request.headers]).to.equal(['request', { Authorization: { set: true } }]);
        expect(text).to.not.contain('sesame');
        expect(
            (await rig.ask('GET', `/tasks/${id}`, undefined, { as: 'viewer' })).data.request
        ).to.be.undefined();
        // A write that sends back what it read keeps the header.
        await rig.ask('PUT', `/tasks/${id}`, { request: { ...data.request, expectText: 'something else' } });
        expect(await rig.finish(id)).to.include({ state: 'failed', reason: 'TEXT_MISSING', status: 200 });
        expect(seen.at(-1)?.authorization).to.equal('Bearer open-sesame');
        await rig.ask('PUT', `/tasks/${id}`, { request: { url: `${url}/broken` } });
        expect(await rig.finish(id)).to.include({ state: 'failed', reason: 'HTTP_STATUS', status: 503 });
        await rig.ask('PUT', `/tasks/${id}`, { request: { url: `${url}/broken`, expectStatus: ['503'] } });
        expect(await rig.finish(id)).to.include({ state: 'succeeded', status: 503 });
        await rig.ask('PUT', `/tasks/${id}`, { command: ['true'] });
        expect((await rig.ask('GET', `/tasks/${id}`)).data).to.include({ kind: 'command', request: null });
    });

    it('follows redirects to what the plugin may reach, without its credentials, and to nothing else', async () => {
        const follow = async (to: string) =>
            rig.finish(
                await rig.task({
                    request: {
                        url: `${url}/?to=${encodeURIComponent(to)}`,
                        headers: { Authorization: 'Bearer open-sesame' }
                    }
                })
            );
        rig.host.network.answer('other.test', 'of another host');
        const followed = await follow('http://other.test/there');
        expect([followed.state, followed.output]).to.equal(['succeeded', '200\n\nof another host']);
        const asked = rig.host.network.requests.at(-1);
        expect([asked?.url, asked?.headers.has('authorization')]).to.equal([
            'http://other.test/there',
            false
        ]);
        // The machine itself, by address and as a name, is not among what the panel grants to `*`.
        const before = seen.length;
        const { port } = server.address() as AddressInfo;
        for (const host of ['127.0.0.1', 'localhost', '[::1]', '169.254.169.254']) {
            const refused = await follow(`http://${host}:${port}/secret`);
            expect([host, refused.state, refused.status]).to.equal([host, 'failed', null]);
            expect(refused.message).to.contain('network');
        }
        // Only what redirected was asked.
        expect(
            seen.slice(before).every(({ authorization }) => authorization.endsWith('sesame'))
        ).to.be.true();
        expect(seen.length - before).to.equal(4);
        const loop = await follow(`${url}/?to=${encodeURIComponent(`${url}/`)}`);
        expect(loop.state).to.equal('succeeded');
    });

    it('ends when it takes too long, is stopped, or cannot connect', async () => {
        const slow = await rig.task({ request: { url: `${url}/slow` }, timeoutSeconds: 1 });
        expect(await rig.finish(slow)).to.include({ state: 'timeout', reason: 'TIMEOUT' });
        await rig.ask('PUT', `/tasks/${slow}`, { timeoutSeconds: null });
        const { data } = await rig.ask('POST', `/tasks/${slow}/run`);
        expect((await rig.ask('DELETE', `/runs/${data.id}`)).data).to.include({
            state: 'stopped',
            reason: 'STOPPED'
        });
        const closedPort = await freePort();
        rig.host.network.answer('closed.test', () => fetch(`http://127.0.0.1:${closedPort}/`));
        const closed = await rig.finish(await rig.task({ request: { url: 'http://closed.test/' } }));
        expect([closed.state, closed.status, closed.reason]).to.equal(['failed', null, 'ECONNREFUSED']);
    });

    it('is refused with a wrong address, header or a second kind of work', async () => {
        for (const [work, path] of [
            [{ request: { url: 'file:///etc/passwd' } }, 'request.url'],
            [{ request: { url: 'http://me:secret@example.org/' } }, 'request.url'],
            [{ request: { url, headers: { 'a b': 'x' } } }, 'request.headers.a b'],
            [{ request: { url, headers: { A: { set: true } } } }, 'request.headers.A'],
            [{ request: { url }, command: ['true'] }, 'command'],
            [{}, 'command']
        ] as const) {
            const { code, data } = await rig.ask('POST', '/tasks', {
                name: 'x',
                schedule: '@daily',
                ...work
            });
            expect([code, (data as { errors: { path: string }[] }).errors[0]?.path]).to.equal([40001, path]);
        }
    });
});

describe('a task with a route', { timeout: 60_000 }, () => {
    let rig: CronjobRig;
    const called: unknown[] = [];

    before(async () => {
        rig = await createCronjobRig();
        rig.host.api.route({
            id: 'backup.runPlan',
            method: 'POST',
            permission: 'backup:run',
            handler: ({ actor, payload }) => {
                called.push([actor.username, payload]);
                return { done: true };
            }
        });
        rig.host.api.route({
            id: 'hosts.delete',
            method: 'DELETE',
            permission: 'hosts:write',
            handler: () => null
        });
    });
    after(() => rig.close());

    const authorize = (
        id: number,
        { others = [], ...who }: { others?: string[]; username?: string; fresh?: boolean }
    ) =>
        rig.host
            .as({ permissions: ['read', 'output', 'run', 'write', ...others], ...who })
            .ask('POST', `/tasks/${id}/authorize`);

    it('calls it for the person who authorized it, and for no other route, body or person', async () => {
        const id = await rig.task({ route: { id: 'backup.runPlan', payload: { plan: 7 } } });
        expect(await rig.finish(id)).to.include({ state: 'failed', reason: 'NOT_AUTHORIZED' });
        const ada = { username: 'ada', others: ['backup:run'] };
        expect((await authorize(id, { ...ada, fresh: false })).code).to.equal(40301);
        expect((await authorize(id, { username: 'eve' })).code).to.equal(40300);
        expect((await authorize(id, ada)).data).to.include({ authorized: true });
        expect(await rig.finish(id)).to.include({ state: 'succeeded', status: 200 });
        expect(called).to.equal([['ada', { plan: 7 }]]);
        const changed = await rig.ask('PUT', `/tasks/${id}`, {
            route: { id: 'backup.runPlan', payload: { plan: 8 } }
        });
        expect(changed.data.authorized).to.be.false();
        expect(await rig.finish(id)).to.include({ state: 'failed', reason: 'NOT_AUTHORIZED' });
        await authorize(id, ada);
        rig.host.mandates.revoke(rig.host.mandates.list().at(-1)?.id ?? 0);
        expect(await rig.finish(id)).to.include({ state: 'failed', reason: 'NOT_AUTHORIZED' });
        expect(called.length).to.equal(1);
        await authorize(id, ada);
        await rig.ask('DELETE', `/tasks/${id}`);
        expect(rig.host.mandates.list().every(({ ended }) => ended)).to.be.true();
    });

    it('says what the route refused', async () => {
        rig.host.api.route({
            id: 'backup.removePlan',
            method: 'DELETE',
            permission: 'backup:run',
            handler: () => {
                throw errors.notFound('There is no such plan');
            }
        });
        const id = await rig.task({ route: { id: 'backup.removePlan' } });
        await authorize(id, { username: 'ada', others: ['backup:run'] });
        const run = await rig.finish(id);
        expect(run).to.include({ state: 'failed', reason: 'ROUTE_FAILED', status: 404 });
        expect(run.message).to.equal('40400: There is no such plan');
    });

    it('authorizes nothing that runs a program', async () => {
        expect((await authorize(await rig.task({ command: ['true'] }), {})).code).to.equal(40001);
    });
});
