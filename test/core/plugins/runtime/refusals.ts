import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Context, definePlugin } from '@portico/sdk';

import type { Generation } from '../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, entriesOf, type PluginRig } from '../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;
let generation: Generation;
let ctx: Context;

const quietly = (work: () => unknown): Promise<void> =>
    (async () => work())().then(
        () => undefined,
        () => undefined
    );
const told = (): (readonly unknown[])[] =>
    entriesOf(rig)
        .filter(({ code }) => code === 50305)
        .map(({ actor, action, resource, resourceId, outcome, after }) => [
            actor.plugin,
            action,
            resource,
            resourceId,
            outcome,
            (after as { count: number }).count
        ]);

describe('capabilities that a plugin does not have', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
        generation = await rig.run(
            definePlugin({
                setup(given) {
                    ctx = given as Context;
                    given.route({
                        method: 'POST',
                        path: '/call',
                        access: 'write',
                        audit: false,
                        handler: ({ actor }) => given.api.call(actor, { id: 'things.list' })
                    });
                }
            })
        );
    });
    afterEach(() => rig.close());

    it('are on record with what was tried, wherever it was tried', async () => {
        await quietly(() => ctx.exec('git', ['--version']));
        await quietly(() => ctx.fetch('http://example.test/'));
        await quietly(() => ctx.files('/etc').list(''));
        await quietly(() => ctx.hosts.list());
        await quietly(() => ctx.certificates.list());
        const socket = ctx.dial({ path: '/run/other.sock' });
        await new Promise((resolve) => socket.once('error', resolve));
        expect((await rig.ask('admin', 'POST', '/api/plugins/probe/call')).data.code).to.equal(40300);
        await wait(0);
        const capabilities = [
            'exec: git',
            'network: example.test',
            'files: /etc',
            'hosts',
            'certificates',
            'sockets: /run/other.sock',
            'api: things.list'
        ];
        expect(told()).to.equal(
            capabilities.map((capability) => ['probe', 'use', 'probe.capability', capability, 'failure', 1])
        );
        expect(generation.refused().map(({ capability, count }) => [capability, count])).to.equal(
            capabilities.map((capability) => [capability, 1])
        );
    });

    it('are counted, and written again once a minute or at the end', async () => {
        for (let tries = 0; tries < 500; tries += 1) {
            await quietly(() => ctx.exec('git', []));
        }
        await wait(0);
        expect(told()).to.have.length(1);
        await generation.close('test');
        expect(told().map((entry) => entry[5])).to.equal([1, 499]);
        expect(generation.refused()).to.have.length(1);
        expect(generation.refused()[0]).to.include({ capability: 'exec: git', count: 500 });
    });

    it('do not flood the record when each is another one', async () => {
        for (let tries = 0; tries < 1000; tries += 1) {
            await quietly(() => ctx.exec(`program-${tries}`, []));
        }
        await quietly(() => ctx.exec('x'.repeat(5000), []));
        await generation.close('test');
        const entries = told();
        expect(entries.length).to.equal(22);
        expect(entries.filter((entry) => entry[3] === 'others').map((entry) => entry[5])).to.equal([1, 980]);
        expect(generation.refused()).to.have.length(100);
        expect(Math.max(...generation.refused().map(({ capability }) => capability.length))).to.equal(300);
        for (let tries = 0; tries < 50; tries += 1) {
            await quietly(() => ctx.exec('late', []));
        }
        await wait(0);
        expect(told().length).to.equal(22);
    });
});
