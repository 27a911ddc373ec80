import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { base, createMonitoringRig, type MonitoringRig } from './rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const own = { name: 'Steal', metric: 'cpu.steal', threshold: 20, recoverThreshold: 10, forSeconds: 0 };

describe('monitoring in exports and imports', () => {
    let here: MonitoringRig;
    let there: MonitoringRig;

    beforeEach(async () => {
        here = await createMonitoringRig();
        there = await createMonitoringRig();
    });

    afterEach(async () => {
        await here.end();
        await there.end();
    });

    interface Item {
        readonly name: string;
        readonly data: { readonly rules: Record<string, unknown>[]; readonly checks: object[] };
        readonly leftOut: readonly string[];
    }
    const exported = async (): Promise<Item[]> => {
        const [outcome] = await here.host.hooks.run('export.collect', { maxBytes: 8 * 2 ** 20 });
        expect(outcome?.ok).to.be.true();
        return JSON.parse(JSON.stringify(outcome?.ok === true ? outcome.result : null));
    };
    const restore = async (items: { name: string; data: unknown }[], mode: 'merge' | 'replace') => {
        const [outcome] = await there.host.hooks.run('import.restore', { version: '1.0.0', mode, items });
        return outcome?.ok === true ? outcome.result : outcome;
    };
    const create = async (rig: MonitoringRig, rule: object): Promise<number> =>
        (await rig.ask('op', 'POST', `${base}/rules`, rule)).data.id;
    const rulesOf = async (of: MonitoringRig) =>
        (await of.get('/rules')).data.map((rule: Record<string, unknown>) => ({
            ...rule,
            id: 0,
            version: 0,
            createdAt: '',
            updatedAt: ''
        }));

    it('gives all rules, changed and removed ones of the beginning too, and names what is left out', async () => {
        const [first, second] = (await here.get('/rules')).data;
        await here.ask('op', 'PUT', `${base}/rules/${first.id}`, {
            threshold: 80,
            recoverThreshold: null
        });
        await here.ask('op', 'DELETE', `${base}/rules/${second.id}`);
        await create(here, { ...own, enabled: false, operator: '>=', severity: 'critical' });
        const items = await exported();
        expect(items.map(({ name, leftOut }) => [name, leftOut])).to.equal([
            [
                'rules',
                [
                    'the history of measurements',
                    'alerts, those that fire and those that are over',
                    'who authorized the actions of rules'
                ]
            ],
            ['checks', ['the results of checks']],
            ['exports', ['samples that wait to be sent']],
            ['silences', ['silences of single rules, and those that are over']]
        ]);
        expect(await restore(items, 'replace')).to.equal([
            { item: 'rules', ok: true },
            { item: 'checks', ok: true },
            { item: 'exports', ok: true },
            { item: 'silences', ok: true }
        ]);
        expect(await rulesOf(there)).to.equal(await rulesOf(here));
    });

    it('takes the place of rules of the same name, and twice is as once', async () => {
        await create(here, own);
        const items = await exported();
        const kept = await create(there, { ...own, name: 'Kept' });
        const same = await create(there, { ...own, name: 'STEAL', threshold: 99 });
        await restore(items, 'merge');
        const once = (await there.get('/rules')).data;
        await restore(items, 'merge');
        expect((await there.get('/rules')).data).to.equal(once);
        const named = new Map(once.map((rule: { id: number }) => [rule.id, rule]));
        expect(named.get(same)).to.include({ name: 'Steal', threshold: 20, version: 2 });
        expect(named.get(kept)).to.include({ name: 'Kept', version: 1 });
        await restore(items, 'replace');
        expect((await there.get(`/rules/${kept}`)).status).to.equal(404);
        expect(await rulesOf(there)).to.equal(await rulesOf(here));
    });

    it('is watched at once: alerts of a removed rule end, and a restored one fires', async () => {
        const items = await exported();
        const rule = { ...own, metric: 'memory.usedPercent', threshold: 1, recoverThreshold: 1 };
        await create(there, { ...rule, name: 'Removed' });
        await there.machine.tick();
        items[0]?.data.rules.push({ ...rule, name: 'Restored' });
        await restore(items, 'replace');
        await there.machine.tick();
        const alerts = (await there.get('/alerts')).data.map(
            ({ name, state, endedBy }: { name: string; state: string; endedBy: string | null }) => [
                name,
                state,
                endedBy
            ]
        );
        expect(alerts).to.equal([
            ['Restored', 'firing', null],
            ['Removed', 'ended', 'rule-deleted']
        ]);
    });

    it('replaces checks all at once, or changes nothing', async () => {
        const check = (name: string, more: object = {}) => ({
            name,
            kind: 'http',
            target: `https://${name}.test/`,
            enabled: false,
            expect: { headers: { Authorization: 'secret' } },
            ...more
        });
        for (const name of ['kept', 'other']) {
            await here.ask('op', 'POST', `${base}/checks`, check(name));
        }
        await there.ask('op', 'POST', `${base}/checks`, check('Kept', { target: 'https://old.test/' }));
        await there.ask('op', 'POST', `${base}/checks`, check('gone'));
        const items = (await exported()).filter(({ name }) => name === 'checks');
        const names = async () =>
            (await there.get('/checks')).data.map(
                ({ name, target, version }: Record<string, unknown>) => `${name} ${target} ${version}`
            );
        const before = await names();
        // The last write of the import fails, after the removal and the change.
        await there.host.db.write((em) =>
            em.execute(
                `create trigger refuse before insert on checks when new.name = 'other' begin select raise(abort, 'full'); end`
            )
        );
        expect(JSON.stringify(await restore(items, 'replace'))).to.contain('"ok":false');
        expect(await names()).to.equal(before);
        const stored = await there.host.db.read((em) =>
            em.execute<{ name: string }[]>('select name from checks order by id')
        );
        expect(stored.map(({ name }) => name)).to.equal(['Kept', 'gone']);
        await there.host.db.write((em) => em.execute('drop trigger refuse'));
        expect(await restore(items, 'replace')).to.equal([{ item: 'checks', ok: true }]);
        const after = await names();
        expect(after).to.equal(['kept https://kept.test/ 2', 'other https://other.test/ 1']);
        await restore(items, 'replace');
        expect(await names()).to.equal(after);
        items[0]?.data.checks.push(check('OTHER'), check('bad', { target: 'nowhere' }));
        expect(await restore(items, 'merge')).to.equal([
            {
                item: 'checks',
                ok: false,
                message:
                    'Not restored: OTHER: The name is taken; bad: target must be an address with http:// or https://'
            }
        ]);
    });

    it('restores what it can, and names what it cannot', async () => {
        const items = await exported();
        const rules = items[0]?.data.rules ?? [];
        rules.push({ ...own, name: 'Good' }, { ...own, name: 'Bad', metric: 'cpu.unknown' });
        expect(await restore(items, 'merge')).to.equal([
            {
                item: 'rules',
                ok: false,
                message: 'Not restored: Bad: metric must be one that GET metrics/catalogue lists'
            },
            { item: 'checks', ok: true },
            { item: 'exports', ok: true },
            { item: 'silences', ok: true }
        ]);
        expect((await rulesOf(there)).map(({ name }: { name: string }) => name)).to.include('Good');
        const before = (await there.get('/rules')).data;
        expect(await restore([{ name: 'rules', data: { rules: [{ name: 7 }] } }], 'replace')).to.include({
            ok: false
        });
        rules.push(...Array.from({ length: 200 }, (_, n) => ({ ...own, name: `Rule ${n}` })));
        expect(JSON.stringify(await restore(items, 'merge'))).to.include('Not restored');
        expect((await there.get('/rules')).data).to.have.length(200);
        expect(before.length < 200).to.be.true();
    });
});
