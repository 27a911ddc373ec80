import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin, type FailureError } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;

async function contextWith(name: string, capabilities: object): Promise<Context> {
    let found!: Context;
    await rig.run(
        definePlugin({
            setup(ctx) {
                found = ctx;
            }
        }),
        { name, capabilities }
    );
    return found;
}
const codeOf = async (work: Promise<unknown>): Promise<number> =>
    ((await work.then(() => null).catch((error: unknown) => error)) as FailureError).code;

beforeEach(async () => {
    rig = await createPluginRig();
});
afterEach(() => rig.close());

describe('ctx.hosts.probe and ctx.hosts.account', () => {
    it('ask a loopback address or a granted socket, follow nothing, and cut the body', async () => {
        const server = createServer((request, response) => {
            if (request.url === '/slow') {
                return;
            }
            response.writeHead(request.url === '/away' ? 302 : 503, { location: '/', 'x-method': 'x' });
            response.end(request.url === '/away' ? '' : `${request.method} ${'x'.repeat(9000)}`);
        }).listen(0, '127.0.0.1');
        const socket = join(rig.root, 'app.sock');
        const hidden = join(rig.root, 'forbidden', 'admin.sock');
        const local = createServer((_request, response) => response.end('by socket')).listen(socket);
        await Promise.all([once(server, 'listening'), once(local, 'listening')]);
        try {
            const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
            const { hosts } = await contextWith('one', { hosts: 'own', sockets: [socket, hidden] });
            const answer = await hosts.probe(address, { path: '/health?full=1' });
            expect([answer.status, answer.body.length, answer.body.slice(0, 5)]).to.equal([
                503,
                4096,
                'GET x'
            ]);
            expect(answer.ms).to.be.at.least(0);
            expect((await hosts.probe(`http://${address}`, { path: '/away' })).status).to.equal(302);
            expect((await hosts.probe(address, { method: 'HEAD' })).body).to.equal('');
            expect((await hosts.probe(`unix/${socket}`)).body).to.equal('by socket');
            expect(await codeOf(hosts.probe(address, { path: '/slow', timeoutSeconds: 1 }))).to.equal(50309);
            for (const other of [
                '192.0.2.1:80',
                'example.com:80',
                `unix/${hidden}`,
                'unix//run/other.sock',
                'x',
                ''
            ]) {
                expect(await codeOf(hosts.probe(other)), other).to.equal(50305);
            }
            // wrong on purpose
            for (const bad of [
                { path: 'x' },
                { path: '/ x' },
                { method: 'POST' as never },
                { timeoutSeconds: 0 }
            ]) {
                expect(await codeOf(hosts.probe(address, bad))).to.equal(40001);
            }
            expect(await hosts.account()).to.equal({ user: 'caddy', group: 'caddy' });
            const none = await contextWith('none', {});
            expect(await codeOf(none.hosts.probe(address))).to.equal(50305);
            expect(await codeOf(none.hosts.account())).to.equal(50305);
        } finally {
            server.close();
            server.closeAllConnections();
            local.close();
        }
    });
});
