import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { SiteTable } from '../../../../core/src/engine/files/table/table.ts';
import { keptRevisions } from '../../../../core/src/engine/revisions/revisions.ts';
import type { EngineSettings } from '../../../../core/src/engine/site.ts';
import { callOf, person } from '../../../support/core/store.ts';
import { creates, type FaultyRig, faultyRig, removes, updates } from '../../../support/engine/rig.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const own = (value: string) => ({
    headers: { request: [], response: [{ op: 'set' as const, name: 'x-own', value }] }
});
const admin = person('admin', ['hosts:write', 'settings:write', 'engine:control']);

describe('revisions', () => {
    let rig: FaultyRig;
    const names = (): string[] => [...rig.rows().values()].map(({ row }) => row.site.domain);
    const caught = (work: Promise<unknown>): Promise<unknown> =>
        work.then(
            () => null,
            (error: unknown) => error
        );
    const changeSettings = (settings: EngineSettings) =>
        rig.engine.change({
            plan: () => ({ settings }),
            commit: async () => {
                rig.state.settings = settings;
            }
        });

    beforeEach(async () => {
        rig = await faultyRig({ windowMs: 0 });
    });

    afterEach(() => rig.close());

    it('are numbered from one, name who made them, and say what the rows were', async () => {
        const by = { id: 3, username: 'ann', tokenId: null, plugin: null, requestId: 'r-1' };
        await rig.engine.change(creates({ domain: 'a.test' }, { by }));
        await rig.engine.change(updates(1, own('x')));
        await rig.engine.change(creates({ domain: 'b.test' }));
        await rig.engine.change(removes(1));
        const { rows, total } = rig.engine.revisions({ before: null, limit: 2 });
        expect(total).to.equal(4);
        expect(rows.map(({ number }) => number)).to.equal([4, 3]);
        expect(rig.engine.revisions({ before: 3, limit: 2 }).rows.map(({ number }) => number)).to.equal([
            2, 1
        ]);
        expect(rig.engine.revision(1).by).to.equal([by]);
        expect(rig.engine.revision(1).hosts.map(({ site, version }) => [site.domain, version])).to.equal([
            ['a.test', 1]
        ]);
        expect(
            rig.engine
                .revision(2)
                .hosts.map(({ site, version }) => [site.domain, version, site.headers.response.length])
        ).to.equal([['a.test', 2, 1]]);
        expect(rig.engine.revision(3).hosts.map(({ site }) => site.domain)).to.equal(['a.test', 'b.test']);
        expect(rig.engine.revision(4).hosts.map(({ site }) => site.domain)).to.equal(['b.test']);
        expect(rig.engine.revision(4).changes.map(({ id, after }) => ({ id, after }))).to.equal([
            { id: 1, after: null }
        ]);
        expect(new Set(rows.map(({ hash }) => hash)).size).to.equal(2);
        expect(await caught((async () => rig.engine.revision(5))())).to.include({
            code: 40400,
            reason: 'NOT_FOUND'
        });
    });

    it('bring back rows with their ids, as one change that counts versions up and is on record', async () => {
        await rig.engine.change(creates({ domain: 'a.test', ...own('first') }));
        await rig.engine.change(updates(1, own('second')));
        await rig.engine.change(removes(1));
        await rig.engine.change(creates({ domain: 'b.test' }));
        const call = callOf(admin);
        const { data } = await rig.engine.restore(1, call);
        expect(data).to.equal({ revision: 5, applied: true, reload: true, changed: 2 });
        expect(call.done).to.have.length(1);
        expect(names()).to.equal(['a.test']);
        expect(rig.rows().get(1)?.row).to.include({ version: 3 });
        expect(rig.rows().get(1)?.row.site.headers.response[0]?.value).to.equal('first');
        expect([...(await new SiteTable(rig.folders).read()).keys()]).to.equal(['a.test']);
        expect(rig.engine.revision(5).by[0]).to.include({ username: 'admin', requestId: 'test-call' });
        await rig.engine.restore(4, callOf(admin));
        expect(names()).to.equal(['b.test']);
        expect((await rig.engine.change(creates({ domain: 'c.test' }))).value.id).to.equal(3);
    });

    it('leave alone what is as it was', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        await rig.engine.change(creates({ domain: 'b.test' }));
        expect((await rig.engine.restore(2, callOf(admin))).data).to.equal({
            revision: 2,
            applied: true,
            reload: false,
            changed: 0
        });
        expect(rig.rows().get(1)?.row).to.include({ version: 1 });
    });

    it('restore whole or not at all', async () => {
        await rig.engine.change(creates({ domain: 'a.test', ...own('bad') }));
        await rig.engine.change(removes(1));
        await rig.engine.change(creates({ domain: 'b.test' }));
        rig.driver.judge((config) => (JSON.stringify(config).includes('bad') ? 'no' : null));
        const call = callOf(admin);
        // What was dropped may still be loaded: a load without it comes first.
        await rig.engine.change(updates(2, own('other')));
        expect(await caught(rig.engine.restore(1, call))).to.include({ code: 42200 });
        expect(call.done).to.equal([]);
        expect(names()).to.equal(['b.test']);
        expect([...(await new SiteTable(rig.folders).read()).keys()]).to.equal(['b.test']);
    });

    it('restore settings too, but for what the environment decides, and keep the EAB sealed', async () => {
        const first = rig.state.settings;
        const eab = { keyId: 'kid', macKey: 'a-very-secret-mac-key' };
        await changeSettings({ ...first, acmeEmail: 'one@a.test', acmeEab: eab });
        await changeSettings({ ...first, acmeEmail: 'two@a.test' });
        rig.state.fixed = { httpPort: 8099 };
        expect(rig.engine.revision(1).settings.acmeEab).to.equal(eab);
        const stored =
            JSON.stringify(rig.store.db.prepare<[], unknown>('select * from engine_revision').all()) +
            JSON.stringify(rig.store.db.prepare<[], unknown>('select * from engine_state').all());
        expect(stored).to.not.contain('a-very-secret');
        await rig.engine.restore(1, callOf(admin));
        expect(rig.state.settings).to.equal({
            ...first,
            acmeEmail: 'one@a.test',
            acmeEab: eab,
            httpPort: 8099
        });
        expect(rig.engine.draft().settings.acmeEmail).to.equal('one@a.test');
        expect(JSON.stringify(rig.driver.running)).to.contain('one@a.test');
    });

    it('give no user what they may not write, and bring back nothing that is vetoed or lacks its certificate', async () => {
        await rig.close();
        rig = await faultyRig({
            windowMs: 0,
            vet: (_call, _before, after) => {
                if (after?.site.domain === 'vetoed.test') {
                    throw new Error('vetoed');
                }
            }
        });
        await rig.engine.change(creates({ domain: 'a.test' }));
        await rig.engine.change(creates({ domain: 'vetoed.test' }));
        await rig.engine.change(removes(2));
        await rig.engine.change(removes(1));
        expect(await caught(rig.engine.restore(1, callOf(person('op', ['engine:control']))))).to.include({
            code: 40300
        });
        expect(await caught(rig.engine.restore(2, callOf(admin)))).to.be.an.error('vetoed');
        const certificate = { id: 5, fingerprint: 'cd'.repeat(32), names: ['c.test'] };
        await rig.engine.change({
            plan: () => ({ certificates: [{ id: 5, certificate, pem: { certificate: 'C', key: 'K' } }] }),
            commit: async () => null
        });
        await rig.engine.change(
            creates({ domain: 'c.test', ssl: true, sslMode: 'certificate', certificateId: 5 })
        );
        const with5 = rig.engine.revisions({ before: null, limit: 1 }).rows[0]?.number ?? 0;
        await rig.engine.change(removes(3));
        await rig.engine.change({
            plan: () => ({ certificates: [{ id: 5, certificate: null }] }),
            commit: async () => null
        });
        expect(await caught(rig.engine.restore(with5, callOf(admin)))).to.include({
            code: 40900,
            reason: 'CONFLICT'
        });
        expect(names()).to.equal([]);
    });

    it('are kept up to a number, and each that is kept can still be read', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        for (let index = 0; index < keptRevisions + 4; index += 1) {
            await rig.engine.change(updates(1, { maintenance: index % 2 === 0 }));
        }

        const { rows, total } = rig.engine.revisions({ before: null, limit: 1000 });
        expect(total).to.equal(keptRevisions);
        const oldest = rows.at(-1)?.number ?? 0;
        expect(oldest).to.equal(6);
        expect(rig.engine.revision(oldest).hosts[0]).to.include({ version: 6 });
        expect((await rig.engine.restore(oldest, callOf(admin))).data.revision).to.equal(keptRevisions + 6);
        await rig.reboot();
        expect(rig.engine.revision(oldest + 1).hosts[0]).to.include({ version: 7 });
    });
});
