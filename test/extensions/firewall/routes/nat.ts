/** Translations of addresses with real traffic: a visitor, the server that translates, and an address behind it. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { noNamespaces } from '../namespaces.ts';
import { FirewallRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noNamespaces, it);
const patient = { timeout: 60_000 };

let rig: FirewallRig;
const [server, behind] = ['10.77.0.1', '10.77.1.2'];
const knock = (port: number): Promise<string> =>
    rig.network.visitor.connect(server, port, { localAddress: '10.77.0.2' });

describe('translations', patient, () => {
    before(patient, async () => {
        if (noNamespaces !== undefined) {
            return;
        }
        rig = await FirewallRig.start();
        await rig.network.server.listen(7001);
        await rig.network.visitor.listen(7002, behind);
        await rig.network.server.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    });
    after(patient, () => rig?.close());

    test('redirect a port to another one of this machine', async () => {
        expect([await knock(7100), await knock(7001)]).to.equal(['refused', 'open']);
        await rig.post('/nat', { type: 'redirect', protocol: 'tcp', ports: ['7100'], to: '7001' });
        await rig.settle();
        expect([await knock(7100), await knock(7101)]).to.equal(['open', 'refused']);
    });

    test('send a port to another machine, whose answers find their way by masquerade', async () => {
        const made = await rig.post('/nat', {
            type: 'dnat',
            protocol: 'tcp',
            ports: ['7200'],
            to: `${behind}:7002`,
            sources: ['10.77.0.0/24']
        });
        expect(made.status, made.text).to.equal(201);
        await rig.settle();
        // The machine behind takes a packet that seems to come from itself for a forged one.
        expect(await knock(7200)).to.equal('timeout');
        await rig.post('/nat', { type: 'masquerade', interface: 'v0' });
        await rig.settle();
        expect(await knock(7200)).to.equal('open');
        const other = { localAddress: '10.77.2.2' };
        expect(await rig.network.visitor.connect(server, 7200, other)).to.equal('refused');
    });

    test('send it no longer where a rule for published ports drops it, and are gone with the draft', async () => {
        const rule = await rig.rule({
            direction: 'container',
            action: 'drop',
            protocol: 'tcp',
            ports: ['7200']
        });
        await rig.settle();
        expect(await knock(7200)).to.equal('timeout');
        await rig.ask('DELETE', `/rules/${rule}`);
        for (const { id } of (await rig.get('/nat')).data) {
            await rig.ask('DELETE', `/nat/${id}`);
        }
        await rig.settle();
        expect([await knock(7100), await knock(7200), await knock(7001)]).to.equal([
            'refused',
            'refused',
            'open'
        ]);
    });
});
