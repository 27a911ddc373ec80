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
const server = '10.77.0.1';
const knock = (port: number, host = server): Promise<string> => rig.network.visitor.connect(host, port);

describe('applying rules', patient, () => {
    before(patient, async () => {
        if (noNamespaces === undefined) {
            rig = await FirewallRig.start();
            for (const port of [7001, 7002, 7003]) {
                await rig.network.server.listen(port);
            }
        }
    });
    after(patient, () => rig?.close());

    test('changes nothing in the kernel before an apply', async () => {
        await rig.rule({
            protocol: 'tcp',
            ports: ['7001'],
            action: 'reject',
            comment: 'no "one" {here}; drop'
        });
        expect(await rig.table()).to.equal('');
        expect((await rig.get('/state')).data).to.include({
            state: 'off',
            differs: true,
            drift: false,
            draftVersion: 2
        });
        expect(await knock(7001)).to.equal('open');
    });

    test('keeps what is confirmed, in IPv4 and IPv6, while connections live on', async () => {
        expect(await rig.network.visitor.hold('stays', server, 7001)).to.equal('open');
        const { data, code, text } = await rig.post('/apply', { confirmSeconds: 60 });
        expect(code, text).to.equal(0);
        expect((await rig.get('/state')).data).to.include({ state: 'trial', drift: false });
        expect((await rig.get('/state')).data.trial).to.include({ id: data.trialId, by: 'admin' });
        expect((await rig.post('/apply', {})).code).to.equal(40952);
        const confirmed = await rig.post('/confirm', { trialId: data.trialId });
        expect(confirmed.data).to.include({
            state: 'applied',
            lastOutcome: 'confirmed',
            differs: false,
            drift: false
        });
        expect([await knock(7001), await knock(7001, 'fd77::1'), await knock(7002)]).to.equal([
            'refused',
            'refused',
            'open'
        ]);
        expect(await rig.network.visitor.echo('stays')).to.equal('open');
        expect(rig.host.services.all).to.equal([]);
        const [rule] = (await rig.get('/rules')).data;
        expect(rule.packets as number).to.be.above(1);
        expect((await rig.post('/confirm', { trialId: data.trialId })).code).to.equal(40953);
    });

    test('gives back the ruleset of before, byte for byte, when it is reverted', async () => {
        const then = await rig.table();
        await rig.rule({
            protocol: 'tcp',
            ports: ['7002'],
            action: 'drop',
            rate: { count: 1, per: 'hour', burst: 1 }
        });
        await rig.rule({ protocol: 'tcp', ports: ['7002'], action: 'accept' });
        expect((await rig.put('/policy', { input: 'drop' })).code).to.equal(0);
        const { data } = await rig.post('/apply', { confirmSeconds: 60 });
        expect(await knock(7002)).to.equal('open');
        expect(await knock(7002)).to.equal('timeout');
        const reverted = await rig.post('/revert', { trialId: data.trialId });
        expect(reverted.data).to.include({
            state: 'applied',
            lastOutcome: 'reverted',
            differs: true,
            drift: false
        });
        expect(await rig.table()).to.equal(then);
        expect(await knock(7002)).to.equal('open');
    });

    test('gives it back by itself when the time is up, and by the guard when the panel is gone', async () => {
        const then = await rig.table();
        await rig.post('/apply', { confirmSeconds: 5 });
        expect(await rig.table()).not.to.equal(then);
        const { args, path } = rig.host.services.command('guard');
        expect([path.split('/').at(-1), args.includes('5')]).to.equal(['find', true]);
        await until(async () => (await rig.get('/state')).data.state !== 'trial', 'the end of the trial');
        expect((await rig.get('/state')).data).to.include({
            state: 'applied',
            lastOutcome: 'expired',
            drift: false
        });
        expect(await rig.table()).to.equal(then);
        expect((await rig.get('/history')).data.map(({ outcome }: { outcome: string }) => outcome)).to.equal([
            'expired',
            'confirmed'
        ]);
        // What was confirmed comes back into the draft, and from there nowhere by itself.
        const [, confirmed] = (await rig.get('/history')).data;
        const restored = await rig.post(`/history/${confirmed.version}/restore`);
        expect(restored.data, restored.text).to.include({ state: 'applied', differs: false });
        const ports = (await rig.get('/rules')).data.map((rule: { ports: string[] }) => rule.ports);
        expect(ports).to.equal([['7001']]);
        expect((await rig.get('/policy')).data.input).to.equal('accept');
        expect((await rig.post('/history/999/restore')).status).to.equal(404);
    });

    test('keeps the last 100 that were applied', async () => {
        await rig.host.db.write(async (em) => {
            for (let version = 1_000; version < 1_120; version += 1) {
                await em.execute('insert into history (version, at, outcome, model) values (?, ?, ?, ?)', [
                    ...[version, version, 'confirmed', '{}']
                ]);
            }
        });
        const before = (await rig.get('/history')).data.map(({ version }: { version: number }) => version);
        await rig.settle();
        const { data } = await rig.get('/history');
        expect([before.length, data.length]).to.equal([122, 100]);
        const kept = data.map(({ version }: { version: number }) => version) as number[];
        expect([kept.includes(before[0]), kept.includes(1_119), kept.includes(1_000)]).to.equal([
            true,
            true,
            false
        ]);
    });

    test('reverts a trial when it is disabled, and leaves the rules in the kernel', async () => {
        const then = await rig.table();
        await rig.post('/apply', { confirmSeconds: 60 });
        await rig.host.restart();
        expect(await rig.table()).to.equal(then);
        expect((await rig.get('/state')).data).to.include({ state: 'applied', lastOutcome: 'reverted' });
    });

    test('shows what others changed, and sets the rules again after a flush', async () => {
        await rig.network.server.run('nft', 'add', 'chain', 'inet', 'portico', 'other');
        await rig.host.restart();
        expect((await rig.get('/state')).data).to.include({ state: 'applied', drift: true });
        expect(await rig.table()).to.include('chain other');
        await rig.network.server.run('nft', 'flush', 'ruleset');
        expect(await knock(7001)).to.equal('open');
        await rig.host.restart();
        expect(await knock(7001)).to.equal('refused');
        expect((await rig.get('/state')).data).to.include({ state: 'applied', drift: false });
    });

    test('takes the table away, as a trial, and gives it back', async () => {
        const then = await rig.table();
        const { data } = await rig.post('/off', { confirmSeconds: 60 });
        expect([await rig.table(), await knock(7001)]).to.equal(['', 'open']);
        await rig.post('/revert', { trialId: data.trialId });
        // Connections that stand when the rules come back are let through by name.
        const rules = (table: string): string => table.replace(/\s*elements = \{[^}]*\}/, '');
        expect(rules(await rig.table())).to.equal(rules(then));
        expect(await rig.network.visitor.echo('stays')).to.equal('open');
        const again = await rig.post('/off', { confirmSeconds: 60 });
        const confirmed = await rig.post('/confirm', { trialId: again.data.trialId });
        expect(confirmed.data).to.include({ state: 'off', appliedVersion: null });
        expect(await rig.table()).to.equal('');
    });
});
