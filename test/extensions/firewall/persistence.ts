/** The boot file, as the machine loads it: by `nft -f` alone, in a namespace of its own, without the panel. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { Network, noNamespaces } from './namespaces.ts';
import { FirewallRig } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noNamespaces, it);
const patient = { timeout: 60_000 };

const ports = [7001, 7002, 7003, 7004, 7005];
const sources = ['10.77.0.2', '10.77.1.2', '10.77.2.2', 'fd77::2', 'fd77::3'];
const verdicts: Readonly<Record<string, string>> = { open: 'accept', refused: 'reject', timeout: 'drop' };

let rig: FirewallRig;
let etc: string;
const file = (): string => join(etc, 'nftables.d/portico.nft');
const text = (): string => readFileSync(file(), 'utf8');

/** The own table without what lives in it: counts, and the connections that stand. */
const table = async (network: Network): Promise<readonly string[]> =>
    (await network.server.run('nft', '-s', 'list', 'table', 'inet', 'portico')).stdout
        .replace(/^table inet portico \{\n|\n\}\n$/g, '')
        .replace(/(set live\w*4? \{[^}]*?)\s*elements = \{[^}]*\}/g, '$1')
        .split('\n\n')
        .sort();

describe('the boot file', patient, () => {
    before(patient, async () => {
        if (noNamespaces === undefined) {
            rig = await FirewallRig.start();
            etc = join(rig.host.machine, 'etc');
            // The kit has made a folder of each granted path.
            ['nftables.d', 'nftables.conf'].forEach((name) => rmSync(join(etc, name), { recursive: true }));
            rig.host.programs.answer('nft', ({ args }) =>
                rig.network.server.run(
                    'nft',
                    ...args.map((arg) => (arg === '/etc/nftables.conf' ? join(etc, 'nftables.conf') : arg))
                )
            );
        }
    });
    after(patient, () => rig?.close());

    test('is not promised where nothing would load it, and what is missing is said', async () => {
        const refused = await rig.put('/persistence', { enabled: true });
        expect([refused.code, (await rig.get('/persistence')).data.enabled]).to.equal([42251, false]);
        mkdirSync(join(etc, 'nftables.d'));
        const kept = await rig.put('/persistence', { enabled: true });
        expect(kept.data).to.include({
            enabled: true,
            file: '/etc/nftables.d/portico.nft',
            loadedAtBoot: false
        });
        expect(kept.data.remedy).to.contain('include "/etc/nftables.d/*.nft"');
        expect(kept.data.remedy).to.contain('systemctl enable nftables');
        // Without applied rules there is nothing to load.
        expect(existsSync(file())).to.be.false();
    });

    test('lets through in a machine without a panel exactly what the panel says', async () => {
        const [four, six] = [
            await rig.post('/sets', { name: 'four', family: 'ipv4' }),
            await rig.post('/sets', { name: 'six', family: 'ipv6' })
        ];
        await rig.post(`/sets/${four.data.id}/elements`, { add: ['10.77.2.0/24'] });
        await rig.post(`/sets/${six.data.id}/elements`, { add: ['fd77::3'] });
        await rig.post('/zones', { name: 'near', sources: ['10.77.1.0/24', 'fd77::2'], policy: 'reject' });
        await rig.post('/bans', { address: '10.77.1.2' });
        await rig.put('/policy', { input: 'drop' });
        const tcp = { protocol: 'tcp' };
        await rig.rule({ ...tcp, ports: ['7001'], comment: 'quotes " } ; # $x ö' });
        await rig.rule({ ...tcp, ports: ['7002-7003'], sources: ['@four', '@six'] });
        await rig.rule({ ...tcp, ports: ['7004'], action: 'reject', family: 'ipv6', log: true });
        await rig.rule({ ...tcp, ports: ['7004'], rate: { count: 600, per: 'minute', burst: 50 } });
        await rig.rule({ ...tcp, ports: ['7005'], expiresAt: '2199-01-01T00:00:00Z', interface: 'v*' });
        await rig.settle();
        expect((statSync(file()).mode & 0o777).toString(8)).to.equal('640');

        await using booted = await Network.create();
        await Promise.all(ports.map((port) => booted.server.listen(port)));
        const loaded = await booted.server.run('nft', '-f', file());
        expect([loaded.code, loaded.stderr]).to.equal([0, '']);
        expect(await table(booted)).to.equal(await table(rig.network));
        const seen = new Set<string>();
        for (const source of sources) {
            const destination = source.includes(':') ? 'fd77::1' : '10.77.0.1';
            for (const port of ports) {
                const said = await rig.post('/simulate', {
                    ...{ source, destination, port, which: 'applied' },
                    protocol: 'tcp'
                });
                const real = await booted.visitor.connect(destination, port, { localAddress: source });
                expect([source, port, verdicts[real]]).to.equal([source, port, said.data.verdict]);
                seen.add(real);
            }
        }
        expect([...seen].sort()).to.equal(['open', 'refused', 'timeout']);
    });

    test('is loaded at boot where the configuration includes it and the unit is enabled', async () => {
        writeFileSync(
            join(etc, 'nftables.conf'),
            `flush ruleset\ninclude "${join(etc, 'nftables.d')}/*.nft"\n`
        );
        rig.host.programs.answer('systemctl', 'enabled\n');
        expect((await rig.get('/persistence')).data).to.include({
            loadedAtBoot: true,
            how: 'nftables.service',
            remedy: null
        });
        await using booted = await Network.create();
        expect((await booted.server.run('nft', '-f', join(etc, 'nftables.conf'))).stderr).to.equal('');
        expect(await table(booted)).to.equal(await table(rig.network));
        // Loaded twice, it is the same table once.
        expect((await booted.server.run('nft', '-f', file())).stderr).to.equal('');
        expect(await table(booted)).to.equal(await table(rig.network));
    });

    test('follows elements and lasting bans, and never what is on trial', async () => {
        const four = (await rig.get('/sets')).data.find(({ name }: { name: string }) => name === 'four');
        await rig.post(`/sets/${four.id}/elements`, { add: ['192.0.2.0/24'] });
        await rig.host.schedules.run('boot-file');
        expect(text()).to.contain('192.0.2.0/24');
        const ban = await rig.post('/bans', { address: '198.51.100.7' });
        await rig.post('/bans', { address: '198.51.100.8', seconds: 600 });
        await rig.host.schedules.run('boot-file');
        expect([text().includes('198.51.100.7'), text().includes('198.51.100.8')]).to.equal([true, false]);
        await rig.ask('DELETE', `/bans/${ban.data.id}`);
        await rig.host.schedules.run('boot-file');
        expect(text()).to.not.contain('198.51.100.7');

        const then = text();
        await rig.rule({ protocol: 'tcp', ports: ['7099'] });
        const { data } = await rig.post('/apply', { confirmSeconds: 60 });
        await rig.host.schedules.run('boot-file');
        expect(text()).to.equal(then);
        await rig.post('/revert', { trialId: data.trialId });
        expect(text()).to.equal(then);
        await rig.settle();
        expect(text()).to.contain('7099');
    });

    test('is whole after a write that was cut, and goes when it is not wanted any more', async () => {
        writeFileSync(join(etc, 'nftables.d/.portico.nft.new'), 'table inet portico {');
        await rig.rule({ protocol: 'tcp', ports: ['7098'] });
        await rig.settle();
        expect(text()).to.contain('7098');
        expect(readdirSync(join(etc, 'nftables.d'))).to.equal(['portico.nft']);
        expect((await rig.put('/persistence', { enabled: false })).data.enabled).to.be.false();
        expect(readdirSync(join(etc, 'nftables.d'))).to.equal([]);
        await rig.put('/persistence', { enabled: true });
        const { data } = await rig.post('/off', { confirmSeconds: 60 });
        expect(existsSync(file())).to.be.true();
        await rig.post('/confirm', { trialId: data.trialId });
        expect(existsSync(file())).to.be.false();
        rmSync(join(etc, 'nftables.d'), { recursive: true });
    });
});
