import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin } from '@portico/sdk';
import { createTestHost } from '@portico/testing';

export const lab = Lab.script();
const { describe, it } = lab;

describe('TestHosts: probes and account', () => {
    it('answer as the test says, for loopback addresses and upstreams of hosts that the plugin may see', async () => {
        let ctx!: Context;
        const plugin = definePlugin({
            setup(context) {
                ctx = context as Context;
            }
        });
        await using host = await createTestHost(plugin, { manifest: { capabilities: { hosts: 'read' } } });
        const codeOf = (address: string): Promise<unknown> =>
            ctx.hosts.probe(address).then(
                ({ status }) => status,
                ({ code }: { code: number }) => code
            );
        host.hosts.probes.set('127.0.0.1:3000', { status: 204, ms: 1, body: '' });
        host.hosts.probes.set('10.0.0.7:80', { status: 503, ms: 2, body: 'down' });
        expect(await codeOf('127.0.0.1:3000')).to.equal(204);
        expect(await codeOf('127.0.0.1:3001')).to.equal(50309);
        expect(await codeOf('10.0.0.7:80')).to.equal(50305);
        host.hosts.addHost({ domain: 'a.example', upstream: 'http://10.0.0.7:80' });
        expect(await ctx.hosts.probe('10.0.0.7:80')).to.equal({ status: 503, ms: 2, body: 'down' });
        expect(await codeOf('10.0.0.8:80')).to.equal(50305);
        expect(await ctx.hosts.account()).to.equal({ user: 'caddy', group: 'caddy' });
        host.hosts.account = null;
        expect(await ctx.hosts.account()).to.be.null();
        host.faults.fail('hosts.probe');
        expect(await codeOf('127.0.0.1:3000')).to.equal(50300);
    });
});
