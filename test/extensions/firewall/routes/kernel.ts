import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
const knock = (port: number, localAddress = '10.77.0.2'): Promise<string> =>
    rig.network.visitor.connect('10.77.0.1', port, { localAddress });

describe('the kernel', patient, () => {
    before(patient, async () => {
        if (noNamespaces === undefined) {
            rig = await FirewallRig.start();
            for (const port of [7001, 7002, 7003]) {
                await rig.network.server.listen(port);
            }
        }
    });
    after(patient, () => rig?.close());

    test('takes every kind of rule as JSON, and the same ruleset as text', async () => {
        await rig.post('/sets', { name: 'four', family: 'ipv4' });
        await rig.post('/sets', { name: 'six', family: 'ipv6' });
        await rig.post('/zones', {
            name: 'near',
            interfaces: ['v0', 'wg*'],
            sources: ['10.9.0.0/16', 'fd09::/16', '@four'],
            policy: 'reject'
        });
        await rig.post('/services', { name: 'own', ports: ['tcp/8080', 'udp/5000-5010', 'icmp', 'icmpv6'] });
        await rig.put('/policy', { input: 'drop', output: 'reject', forward: 'reject', container: 'reject' });
        await rig.host.setSettings({ logDropped: true });
        const odd = {
            comment: 'quotes " \' } ; # $x @y \\ ö 🚢',
            log: true,
            expiresAt: '2199-01-01T00:00:00Z'
        };
        await rig.rule({
            ...odd,
            zone: 'near',
            services: ['own', 'samba'],
            ports: ['1', '2-3', '65535'],
            sources: ['@four', '@six', '10.0.0.0/8', 'fd00::/8'],
            destinations: ['10.77.0.1', 'fd77::1']
        });
        await rig.rule({
            direction: 'out',
            action: 'reject',
            protocol: 'icmp',
            rate: { count: 3, per: 'hour', burst: 9 }
        });
        const changed = await rig.rule({ action: 'drop', protocol: 'tcp', ports: ['7009'] });
        const rate = { count: 2, per: 'minute' };
        const { data: limited } = await rig.put(`/rules/${changed}`, { rate });
        expect(limited.rate).to.equal({ ...rate, burst: 5 });
        await rig.rule({
            direction: 'forward',
            action: 'drop',
            interface: 'wg*',
            protocol: 'udp',
            family: 'ipv6'
        });
        await rig.rule({
            direction: 'container',
            ports: ['80', '8000-8100'],
            destinations: ['10.0.0.1'],
            sources: ['@four']
        });
        await rig.post('/nat', {
            type: 'dnat',
            protocol: 'tcp',
            ports: ['90'],
            to: '10.0.0.5:80',
            interface: 'v0',
            sources: ['@four', '10.1.0.0/16']
        });
        await rig.post('/nat', { type: 'dnat', protocol: 'tcp', ports: ['91'], to: '[fd00::5]:80' });
        await rig.post('/nat', { type: 'redirect', protocol: 'udp', ports: ['53'], to: '5353' });
        await rig.post('/nat', { type: 'snat', to: '10.77.0.1', interface: 'v0' });
        await rig.post('/nat', { type: 'masquerade', interface: 'wg*', protocol: 'tcp' });
        await rig.post('/bans', { address: '192.0.2.0/24', seconds: 600 });
        expect((await rig.post('/validate')).data).to.include({ ok: true, message: null });
        await rig.settle();
        const { data } = await rig.get('/ruleset?format=text');
        const file = join(rig.host.dataDir, '..', 'ruleset.nft');
        writeFileSync(file, data.text);
        const listed = await rig.table();
        const loaded = await rig.network.server.run('nft', '-f', file);
        expect(loaded.stderr).to.equal('');
        // In any order: what was added later stands later in the kernel's list.
        const parts = (text: string): string[] =>
            text
                .replace(/ timeout \S+( expires \S+)?/g, '')
                .replace(/\s*elements = \{ 10\.77[^}]*\}/, '')
                .replace(/^table inet portico \{\n|\n\}\n$/g, '')
                .split('\n\n')
                .sort();
        const [wanted, got] = [parts(listed), parts(await rig.table())];
        expect(got.filter((part) => !wanted.includes(part)).slice(0, 1)).to.equal([]);
        expect(got.length).to.equal(wanted.length);
        for (const { id } of (await rig.get('/nat')).data) {
            await rig.ask('DELETE', `/nat/${id}`);
        }
    });

    test('takes a change of one object, which leaves its other fields, and its end', async () => {
        const find = async (kind: string, word: string): Promise<{ id: number }> =>
            (await rig.get(`/${kind}?q=${word}`)).data[0];
        const made = await rig.post('/nat', { type: 'redirect', protocol: 'udp', ports: ['54'], to: '5354' });
        for (const [kind, object, change] of [
            ['zones', await find('zones', 'near'), { policy: 'drop' }],
            ['sets', await find('sets', 'six'), { everyHours: 5 }],
            ['nat', made.data, { ports: ['55', '56'] }]
        ] as const) {
            const path = `/${kind}/${object.id}`;
            const { data: before } = await rig.get(path);
            const changed = await rig.put(path, change);
            const { version, ...rest } = before;
            expect(changed.data, changed.text).to.equal({ ...rest, ...change, version: version + 1 });
            expect((await rig.get(path)).data).to.equal(changed.data);
            expect((await rig.put(path, { ...change, version })).code).to.equal(41200);
            expect((await rig.put(path, { nonsense: 1 })).code).to.equal(40001);
        }
        await rig.settle();
        expect(await rig.table()).to.match(/udp dport (\{ )?55(, |-)56 /);
        expect((await rig.ask('DELETE', '/services/own')).code).to.equal(40901);
        await rig.post('/services', { name: 'spare', ports: ['tcp/9'] });
        for (const path of ['/services/spare', `/nat/${made.data.id}`]) {
            expect([path, (await rig.ask('DELETE', path)).status]).to.equal([path, 200]);
        }
        expect((await rig.ask('DELETE', `/zones/${(await find('zones', 'near')).id}`)).code).to.equal(40901);
    });

    test('takes as much as it may of everything, and no one more', async () => {
        const { document } = (await rig.get('/export')).data;
        const rules = Array.from({ length: 2_000 }, (_, index) => ({
            direction: 'in',
            action: 'reject',
            protocol: 'tcp',
            ports: [String(20_000 + index)]
        }));
        const many = (count: number, make: (index: number) => object) =>
            Array.from({ length: count }, (_, n) => make(n));
        const whole = {
            ...document,
            rules,
            zones: [],
            sets: many(200, (n) => ({ name: `s${n}`, family: 'ipv4' })),
            services: many(500, (n) => ({ name: `v${n}`, ports: [`tcp/${n + 1}`] })),
            nat: many(500, (n) => ({ type: 'redirect', protocol: 'udp', ports: [`${n + 1}`], to: '53' }))
        };
        const bring = (more: object, mode = 'replace') =>
            rig.post('/import', { document: { ...document, ...more }, mode });
        const elements = many(250_001, (n) => ({ n })).map(() => '192.0.2.1');
        const before = (await rig.get('/export')).data.document;
        for (const [path, more] of [
            ['sets', { sets: [...whole.sets, { name: 'more', family: 'ipv4' }] }],
            ['services', { services: [...whole.services, { name: 'more', ports: ['tcp/9'] }] }],
            ['nat', { nat: [...whole.nat, { ...whole.nat[0], to: '54' }] }],
            ['sets', { sets: ['one', 'two'].map((name) => ({ name, family: 'ipv4', elements })) }]
        ] as const) {
            const { code, data } = await bring({ ...whole, ...more });
            expect([code, data.errors[0].path]).to.equal([40001, path]);
        }
        expect((await bring({ rules: [...rules, rules[0]] })).code).to.equal(40001);
        expect((await rig.get('/export')).data.document).to.equal(before);
        const taken = await bring(whole);
        expect(taken.status, taken.text).to.equal(200);
        expect((await bring({ sets: [{ name: 'more', family: 'ipv4' }] }, 'merge')).code).to.equal(40001);
        const { data: named } = await rig.get('/sets?q=s1');
        const { id } = named.find(({ name }: { readonly name: string }) => name === 's1');
        await rig.host.db.write((em) =>
            em.execute('insert into lists (set_id, elements, count, skipped) values (?, ?, ?, 0)', [
                id,
                '',
                499_999
            ])
        );
        const sets = [{ name: 's2', family: 'ipv4', elements: ['192.0.2.1', '192.0.2.2'] }];
        const refused = await bring({ sets }, 'merge');
        expect([refused.code, refused.data.errors[0].path]).to.equal([40001, 'sets']);
        expect((await rig.get('/export')).data.document.sets[2].elements).to.equal([]);
        for (const [kind, one] of [
            ['sets', { name: 'more', family: 'ipv4' }],
            ['services', { name: 'more', ports: ['tcp/9'] }],
            ['nat', { type: 'redirect', protocol: 'udp', ports: ['9'], to: '54' }]
        ] as const) {
            expect([kind, (await rig.post(`/${kind}`, one)).code]).to.equal([kind, 40001]);
        }
        await rig.settle();
        expect((await rig.table()).match(/tcp dport 2[01]\d{3} /g)).to.have.length(2_000);
        const last = await rig.post('/rules', { direction: 'in', action: 'accept', ports: ['1'] });
        expect([last.status >= 400, last.code], last.text).to.equal([true, 40001]);
        expect((await rig.get('/export')).data.document.rules.length).to.equal(2_000);
        await bring({ rules });
    });

    test('gets elements of a set at once, which end there by themselves', async () => {
        const document = (await rig.get('/export')).data.document;
        await rig.post('/import', {
            document: {
                ...document,
                rules: [{ direction: 'in', action: 'reject', sources: ['@four'] }],
                zones: [],
                nat: [],
                policy: { input: 'accept', output: 'accept', forward: 'accept', container: 'accept' }
            },
            mode: 'replace'
        });
        await rig.settle();
        const four = (await rig.get('/sets')).data.find(({ name }: { name: string }) => name === 'four');
        expect(await knock(7001)).to.equal('open');
        await rig.post(`/sets/${four.id}/elements`, { add: ['10.77.0.0/24', '10.77.1.2'] });
        await rig.post(`/sets/${four.id}/elements`, { add: ['10.77.2.2'], timeoutSeconds: 4 });
        expect([await knock(7001, '10.77.2.2'), await knock(7001)]).to.equal(['refused', 'refused']);
        await until(async () => (await knock(7001, '10.77.2.2')) === 'open', 'the end of the element');
        expect(await knock(7001, '10.77.1.2')).to.equal('refused');
        await rig.post(`/sets/${four.id}/elements`, { remove: ['10.77.0.0/24'] });
        expect([await knock(7001), await knock(7001, '10.77.1.2')]).to.equal(['open', 'refused']);
        expect((await rig.ask('DELETE', `/sets/${four.id}`)).code).to.equal(40901);
        const faults = await rig.post(`/sets/${four.id}/elements`, {
            add: ['fd00::1', '1.2.3.4/8', 'x; flush']
        });
        expect([faults.code, faults.data.errors.length]).to.equal([40001, 3]);
    });

    test('loses a rule that has expired, and keeps what others have byte for byte', async () => {
        await rig.network.server.run(
            'nft',
            'add table ip other; add chain ip other x { type filter hook input priority 0; policy accept; }; add rule ip other x tcp dport 7003 drop comment "theirs"'
        );
        const others = async (): Promise<string> =>
            (await rig.network.server.run('nft', 'list', 'table', 'ip', 'other')).stdout;
        const theirs = await others();
        await rig.rule({
            protocol: 'tcp',
            ports: ['7002'],
            action: 'reject',
            expiresAt: new Date(Date.now() + 5_000).toISOString()
        });
        await rig.settle();
        expect(await knock(7002)).to.equal('refused');
        await until(async () => (await knock(7002)) === 'open', 'the end of the rule');
        rig.ahead = 10_000;
        await rig.host.schedules.run('expiry');
        expect(await rig.table()).not.to.include('7002');
        expect(await others()).to.equal(theirs);
        const id = await rig.rule({ protocol: 'tcp', ports: ['7003'] });
        const state = (await rig.get('/state')).data;
        expect(state.foreign).to.equal([{ tool: 'nft', active: true, tables: ['ip other'], rules: 1 }]);
        expect(state.warnings).to.equal([`rule ${id}: nft drops what it accepts`]);
        const adopted = await rig.post('/adopt', { tool: 'nft' });
        expect(adopted.data.document.rules[0]).to.include({
            direction: 'in',
            action: 'drop',
            protocol: 'tcp',
            ports: ['7003'],
            comment: 'theirs'
        });
        expect(
            (
                await rig.post('/import', { document: adopted.data.document, mode: 'merge', dryRun: true })
            ).data.plan.at(-1)
        ).to.include({ action: 'add', kind: 'rules' });
    });

    test('is not asked with what is no address, port, name or text', async () => {
        const before = (await rig.get('/export')).data;
        const bad = [
            { sources: ['10.0.0.1/8'] },
            { sources: ['fe80::1%v0'] },
            { sources: ['::ffff:10.0.0.1'] },
            { sources: ['@none'] },
            { sources: ['10.0.0.1; flush ruleset'] },
            { ports: ['0'] },
            { ports: ['70000'] },
            { ports: ['9-8'] },
            { ports: ['22 }'] },
            { interface: 'eth0" accept' },
            { interface: 'a name that is far too long' },
            { comment: 'a\nb' },
            { comment: 'x'.repeat(129) },
            { zone: 'none' },
            { services: ['none'] },
            { protocol: 'icmp', ports: ['1'] },
            { protocol: 'icmp', family: 'ipv6' },
            { rate: { count: 0, per: 'second', burst: 1 } },
            { flush: true }
        ];
        const codes = await Promise.all(
            bad.map(
                async (rule) =>
                    (await rig.post('/rules', { direction: 'in', action: 'accept', ...rule })).code
            )
        );
        expect(new Set(codes)).to.equal(new Set([40001]));
        for (const nat of [
            { type: 'dnat', to: '80' },
            { type: 'redirect', to: '10.0.0.1' },
            { type: 'dnat', to: '10.0.0.0/8' },
            { type: 'masquerade', to: '1.1.1.1' },
            { type: 'dnat', to: '1.1.1.1:80' }
        ]) {
            expect((await rig.post('/nat', nat)).code).to.equal(40001);
        }
        expect((await rig.post('/sets', { name: 'a b', family: 'ipv4' })).code).to.equal(40001);
        expect((await rig.post('/sets', { name: 'four', family: 'ipv4' })).code).to.equal(40900);
        expect((await rig.get('/export')).data).to.equal(before);
    });

    test('is out of reach where nft is missing, hangs or talks nonsense, and the draft works on', async () => {
        const { programs } = rig.host;
        const answers = async (): Promise<(number | null)[]> =>
            Promise.all(
                [rig.post('/apply'), rig.post('/off'), rig.post('/bans', { address: '192.0.2.9' })].map(
                    async (each) => (await each).code
                )
            );
        programs.missing('nft');
        expect(await answers()).to.equal([50302, 50302, 50302]);
        expect((await rig.host.health()).find(({ name }) => name === 'nft')).to.include({
            state: 'failed',
            remedy: { text: 'Install nftables', command: 'apt-get install nftables' }
        });
        expect([
            (await rig.get('/rules')).status,
            (await rig.get('/state')).data.drift,
            (await rig.post('/simulate', { source: '10.77.0.2', protocol: 'tcp', port: 1 })).status
        ]).to.equal([200, null, 200]);
        programs.answer('nft', 'not JSON at all');
        expect(new Set([(await rig.post('/apply')).code, (await rig.post('/off')).code])).to.equal(
            new Set([50351])
        );
        programs.answer('nft', { code: 1, stderr: 'Error: Operation not permitted (you must be root)' });
        expect(await answers()).to.equal([50350, 50350, 50350]);
        expect((await rig.get('/state')).data.state).to.equal('applied');
        programs.answer('nft', ({ args }) => rig.network.server.run('nft', ...args));
        expect((await rig.get('/state')).data).to.include({ state: 'applied', drift: false });
    });
});
