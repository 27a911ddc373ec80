import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { noNamespaces } from '../namespaces.ts';
import { FirewallRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noNamespaces, it);
const patient = { timeout: 180_000 };

let rig: FirewallRig;
const knock = (localAddress: string, host = '10.77.0.1'): Promise<string> =>
    rig.network.visitor.connect(host, 7001, { localAddress });
const entry = (ip: string, code: number): Promise<void> =>
    rig.host.hooks.run('audit.recorded', {
        actor: { id: null, username: 'root', tokenId: null, plugin: null },
        action: code === 0 ? 'login' : 'login_failed',
        resource: 'auth',
        resourceId: null,
        outcome: code === 0 ? 'success' : 'failure',
        code,
        ip,
        requestId: 'r'
    });
const banned = async (): Promise<string[]> =>
    (await rig.get('/bans')).data.map(({ address }: { address: string }) => address);

describe('bans', patient, () => {
    before(patient, async () => {
        if (noNamespaces === undefined) {
            rig = await FirewallRig.start({ settings: { neverBan: ['10.77.9.0/24'], loginFailures: 3 } });
            await rig.network.server.listen(7001);
        }
    });
    after(patient, () => rig?.close());

    test('drop an address at once, before any rule was applied, and count its packets', async () => {
        const { status, data } = await rig.post('/bans', { address: '10.77.1.2', reason: 'noise' });
        expect([status, data.source, data.until]).to.equal([201, 'manual', null]);
        expect([await knock('10.77.1.2'), await knock('10.77.2.2')]).to.equal(['timeout', 'open']);
        const [ban] = (await rig.get('/bans')).data;
        expect(ban.packets as number).to.be.above(0);
        expect((await rig.get('/state')).data.state).to.equal('off');
        expect((await rig.ask('DELETE', `/bans/${data.id}`)).status).to.equal(200);
        expect(await knock('10.77.1.2')).to.equal('open');
    });

    test('overlap, and end in the kernel by themselves', async () => {
        await rig.post('/bans', { address: '10.77.1.0/24', seconds: 4 });
        await rig.post('/bans', { address: '10.77.1.2', seconds: 600 });
        await rig.post('/bans', { address: 'fd77::3', seconds: 4 });
        expect([await knock('10.77.1.2'), await knock('fd77::3', 'fd77::1')]).to.equal([
            'timeout',
            'timeout'
        ]);
        await until(async () => (await knock('fd77::3', 'fd77::1')) === 'open', 'the end of the ban');
        expect(await knock('10.77.1.2')).to.equal('timeout');
        const [{ id }] = (await rig.get('/bans')).data;
        expect(await banned()).to.equal(['10.77.1.2']);
        await rig.ask('DELETE', `/bans/${id}`);
        expect(await knock('10.77.1.2')).to.equal('open');
    });

    test('refuse what they must never hold, and what is no address', async () => {
        const codes: (number | null)[] = [];
        for (const address of ['127.0.0.1', '::1', '10.77.0.1', '10.77.0.0/24', '10.77.9.7', 'fd77::/64']) {
            codes.push((await rig.post('/bans', { address })).code);
        }
        expect(new Set(codes)).to.equal(new Set([40951]));
        const faults: (number | null)[] = [];
        for (const address of [
            '10.0.0.0/8',
            '2001:db8::/32',
            '10.1.2.3/24',
            'fe80::1%eth0',
            '::ffff:1.2.3.4',
            '1.2.3.4; flush ruleset',
            '0x7f.1',
            '@set'
        ]) {
            faults.push((await rig.post('/bans', { address })).code);
        }
        expect(new Set(faults)).to.equal(new Set([40001]));
        expect((await rig.ask('POST', '/bans', { address: '10.77.2.2' }, 'viewer')).code).to.equal(40300);
        expect(await banned()).to.equal([]);
    });

    test('come from failed logins, twice as long each time, and never from an address that then got in', async () => {
        await entry('10.77.2.2', 40110);
        await entry('10.77.2.2', 40114);
        await entry('10.77.2.2', 0);
        await entry('10.77.2.2', 40110);
        await entry('10.77.2.2', 40113);
        await entry('10.77.2.2', 40110);
        expect(await banned()).to.equal([]);
        await entry('10.77.2.2', 40110);
        expect([await banned(), await knock('10.77.2.2')]).to.equal([['10.77.2.2'], 'timeout']);
        const seconds = async (): Promise<number> => {
            const [{ createdAt, until }] = (await rig.get('/bans')).data;
            return Math.round((Date.parse(until) - Date.parse(createdAt)) / 1000);
        };
        expect(await seconds()).to.equal(3600);
        await rig.ask('DELETE', `/bans/${(await rig.get('/bans')).data[0].id}`);
        for (const _ of [1, 2, 3]) {
            await entry('10.77.2.2', 42900);
        }
        expect(await seconds()).to.equal(7200);
        for (const last of ['a', 'b', 'c']) {
            await entry(`fd99:0:0:1::${last}`, 40110);
            await entry('127.0.0.1', 40110);
        }
        expect(await banned()).to.equal(['10.77.2.2', 'fd99:0:0:1::/64']);
        await rig.host.restart();
        expect([await banned(), await knock('10.77.2.2')]).to.equal([
            ['10.77.2.2', 'fd99:0:0:1::/64'],
            'timeout'
        ]);
    });

    test('stay over apply, trial and flush, and change nothing where nft fails', async () => {
        await rig.rule({ protocol: 'tcp', ports: ['7009'], action: 'drop' });
        await rig.settle();
        expect(await knock('10.77.2.2')).to.equal('timeout');
        await rig.network.server.run('nft', 'flush', 'ruleset');
        await rig.host.restart();
        expect(await knock('10.77.2.2')).to.equal('timeout');
        rig.host.programs.missing('nft');
        const refused = await rig.post('/bans', { address: '10.77.3.3' });
        expect([refused.code, (refused.data as { install: string }).install]).to.equal([
            50302,
            'apt-get install nftables'
        ]);
        expect(await banned()).to.equal(['10.77.2.2', 'fd99:0:0:1::/64']);
    });
});
