import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin } from '@portico/sdk';
import { createTestHost } from '@portico/testing';

export const lab = Lab.script();
const { describe, it } = lab;

const plugin = definePlugin({
    setup(ctx) {
        ctx.onStart(async () => {
            await ctx.services.put('web', { file: 'sh', args: ['-c', 'serve'], reloadSignal: 'SIGHUP' });
        });
        ctx.route({
            method: 'GET',
            path: '/lines',
            access: 'read',
            handler: async () => {
                await ctx.services.reload('web');
                return (await Array.fromAsync(ctx.services.output('web'))).map(({ text }) => text);
            }
        });
    }
});

describe('TestServices', () => {
    it('keeps what the plugin keeps running, and ends it as the test says', async () => {
        await using host = await createTestHost(plugin, {
            manifest: { capabilities: { services: true, exec: ['sh'] } }
        });
        const [before] = host.services.all;
        expect(host.services.command('web').args).to.equal(['-c', 'serve']);
        host.services.say('web', 'ready');
        expect((await host.as('viewer').get('/lines')).data).to.equal(['ready']);
        await host.restart();
        expect(host.services.all).to.equal([before]);
        host.services.end('web', { code: 1 });
        expect(host.services.all[0]).to.include({ state: 'running', exits: 1, failures: 1 });
        expect(host.services.all[0]?.pid).to.not.equal(before?.pid);
        expect((await host.health()).find(({ name }) => name === 'services')?.state).to.equal('ok');
        expect(host.services.calls).to.equal(['put web', 'reload web', 'put web']);
        expect(() => host.services.command('db')).to.throw(/it has web/);
    });
});
