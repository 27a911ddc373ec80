import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { SiteTable } from '../../../../core/src/engine/files/table/table.ts';
import { creates, type FaultyRig, faultyRig, removes, updates } from '../../../support/engine/rig.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

/** A behaviour of its own, which needs a load. */
const own = (origin: string) => ({
    headers: { request: [], response: [{ op: 'set' as const, name: 'x-own', value: origin }] }
});

const codeOf = async (
    work: Promise<unknown>
): Promise<{
    readonly code: unknown;
    readonly reason: unknown;
    readonly data: unknown;
    readonly message: string;
}> => {
    const error = (await work.then(
        () => null,
        (thrown: unknown) => thrown
    )) as { code?: unknown; reason?: unknown; data?: unknown; message?: string } | null;
    return {
        code: error?.code,
        reason: error?.reason,
        data: error?.data,
        message: error?.message ?? 'it succeeded'
    };
};

describe('the sync queue', () => {
    let rig: FaultyRig;
    const loads = (): number => rig.driver.calls.filter(({ operation }) => operation === 'load').length;
    const table = (): Promise<ReadonlyMap<string, string>> => new SiteTable(rig.folders).read();
    const steady = async (): Promise<string> =>
        JSON.stringify([
            rig.driver.running,
            [...(await table())].sort(),
            [...rig.rows()],
            rig.engine.revisions({ before: null, limit: 10 }).total,
            [...rig.engine.draft().hosts]
        ]);

    beforeEach(async () => {
        rig = await faultyRig();
    });

    afterEach(() => rig.close());

    it('applies a change, writes its row and its revision, and tells what it cost', async () => {
        const { value, outcome } = await rig.engine.change(creates({ domain: 'a.test' }));
        expect(value.id).to.equal(1);
        expect(outcome).to.equal({ revision: 1, applied: true, reloaded: true });
        expect(rig.rows().get(1)?.row.site.domain).to.equal('a.test');
        expect((await table()).has('a.test')).to.be.true();
        const again = await rig.engine.change(creates({ domain: 'b.test' }));
        expect(again.outcome).to.equal({ revision: 2, applied: true, reloaded: false });
        expect([...(await table()).keys()].sort()).to.equal(['a.test', 'b.test']);
        expect(rig.events.applied).to.equal([
            { revision: 1, applied: true, reloaded: true, hosts: [1] },
            { revision: 2, applied: true, reloaded: false, hosts: [2] }
        ]);
    });

    it('answers a change of behaviour before former connections have ended, and then leads them no longer', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        const before = (await table()).get('a.test') ?? '';
        await rig.engine.change(updates(1, own('new')));
        const after = (await table()).get('a.test') ?? '';
        expect(after).to.contain(`~${before.split(',')[2]}`);
        expect((await rig.engine.drift()).drifted).to.be.false();
        // The next change waits until the table says it plainly.
        await rig.engine.change(creates({ domain: 'b.test' }));
        expect((await table()).get('a.test')).to.equal(after.split('~')[0]);
        expect((await rig.engine.drift()).drifted).to.be.false();
    });

    it('brings twenty changes that wait to the engine with one load and in one revision', async () => {
        const before = loads();
        const results = await Promise.all(
            Array.from({ length: 20 }, (_, index) =>
                rig.engine.change(creates({ domain: `h${index}.test`, ...own(`${index}`) }))
            )
        );
        expect(loads() - before).to.equal(1);
        expect(new Set(results.map(({ outcome }) => outcome.revision))).to.equal(new Set([1]));
        expect(rig.rows().size).to.equal(20);
        expect((await table()).size).to.equal(20);
    });

    it('plans each change against those ahead of it', async () => {
        const [first, second, third] = await Promise.allSettled([
            rig.engine.change(creates({ domain: 'a.test' })),
            rig.engine.change(creates({ domain: 'a.test' })),
            rig.engine.change(updates(1, { maintenance: true }))
        ]);
        expect(first.status).to.equal('fulfilled');
        expect(second).to.include({ status: 'rejected' });
        expect(third.status).to.equal('fulfilled');
        expect(rig.rows().size).to.equal(1);
        expect(rig.rows().get(1)?.row).to.include({ version: 2 });
    });

    it("finds the change that the engine refuses and refuses it alone, with the engine's words", async () => {
        rig.driver.judge((config) =>
            JSON.stringify(config).includes('poison') ? 'unknown thing: poison' : null
        );
        const results = await Promise.allSettled(
            Array.from({ length: 9 }, (_, index) =>
                rig.engine.change(
                    creates({ domain: `h${index}.test`, ...own(index === 5 ? 'poison' : `${index}`) })
                )
            )
        );
        expect(results.map(({ status }) => status === 'fulfilled')).to.equal([
            true,
            true,
            true,
            true,
            true,
            false,
            true,
            true,
            true
        ]);
        const { reason } = results[5] as PromiseRejectedResult;
        expect(reason).to.include({ code: 42200, reason: 'ENGINE_REJECTED' });
        expect(reason.data).to.equal({ engine: 'unknown thing: poison' });
        expect(rig.rows().size).to.equal(8);
        expect((await table()).has('h5.test')).to.be.false();
        expect(JSON.stringify(rig.driver.running)).to.not.contain('poison');
    });

    it('changes nothing when the only change is refused', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        const before = await steady();
        rig.driver.next('load', { reject: 'no such module' });
        const failure = await codeOf(rig.engine.change(updates(1, own('x'))));
        expect(failure).to.include({ code: 42200, reason: 'ENGINE_REJECTED' });
        expect(failure.data).to.equal({ engine: 'no such module' });
        expect(await steady()).to.equal(before);
        expect(rig.engine.stateOf(rig.engine.draft().hosts.get(1)!)).to.equal({
            state: 'applied',
            message: null
        });
    });

    it('does not blame a change for a conflict with one that the engine refused', async () => {
        rig.driver.judge((config) => (JSON.stringify(config).includes('poison') ? 'poison' : null));
        const [bad, good] = await Promise.allSettled([
            rig.engine.change(creates({ domain: 'a.test', ...own('poison') })),
            rig.engine.change(creates({ domain: 'a.test', ...own('good') }))
        ]);
        expect(bad.status).to.equal('rejected');
        expect(good.status).to.equal('fulfilled');
        expect(rig.rows().get(1)?.row.site.headers.response[0]?.value).to.equal('good');
    });

    it('looks with real loads for what only a real load finds out', async () => {
        rig.driver.always('validate', null);
        rig.driver.judge(() => null);
        const isBad = (config: unknown): boolean => JSON.stringify(config).includes('poison');
        const { load } = rig.driver;
        rig.driver.load = async (config) => {
            if (isBad(config)) {
                rig.driver.next('load', { reject: 'address in use' });
            }

            await load.call(rig.driver, config);
        };
        const results = await Promise.allSettled(
            [own('1'), own('poison'), own('3')].map((site, index) =>
                rig.engine.change(creates({ domain: `h${index}.test`, ...site }))
            )
        );
        expect(results.map(({ status }) => status)).to.equal(['fulfilled', 'rejected', 'fulfilled']);
        expect(rig.rows().size).to.equal(2);
        expect(isBad(rig.driver.running)).to.be.false();
    });

    it('waits between loads, and lets changes pass that need none until one is in front of them', async () => {
        await rig.close();
        rig = await faultyRig({ windowMs: 400 });
        await rig.engine.change(creates({ domain: 'a.test' }));
        const began = performance.now();
        const times = { before: 0, load: 0, after: 0 };
        const timed = async (name: keyof typeof times, work: Promise<unknown>): Promise<void> => {
            await work;
            times[name] = performance.now() - began;
        };
        await Promise.all([
            timed('before', rig.engine.change(creates({ domain: 'b.test' }))),
            timed('load', rig.engine.change(creates({ domain: 'c.test', ...own('c') }))),
            timed('after', rig.engine.change(creates({ domain: 'd.test' })))
        ]);
        expect(times.before).to.be.below(times.load);
        expect(times.load).to.be.above(200);
        expect(times.after).to.be.at.least(times.load);
        expect([...rig.rows().values()].map(({ row }) => row.site.domain)).to.equal([
            'a.test',
            'b.test',
            'c.test',
            'd.test'
        ]);
    });

    it('refuses every change while the engine should run and does not, also one that needs no load', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        rig.driver.crash('killed');
        const before = await steady();
        const failure = await codeOf(rig.engine.change(updates(1, { maintenance: true })));
        expect(failure).to.include({ code: 50301, reason: 'ENGINE_UNAVAILABLE' });
        expect(await steady()).to.equal(before);
        expect(rig.engine.stateOf(rig.engine.draft().hosts.get(1)!)).to.equal({
            state: 'error',
            message: 'killed'
        });
        rig.driver.recover();
        expect((await rig.engine.change(updates(1, { maintenance: true }))).outcome.applied).to.be.true();
    });

    it('notices an engine that hangs although the change needs no load', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        const before = await steady();
        rig.driver.next('upstreams', { unavailable: 'no answer' });
        expect(await codeOf(rig.engine.change(updates(1, { maintenance: true })))).to.include({
            code: 50301
        });
        expect(await steady()).to.equal(before);
    });

    it('takes the engine back when the transaction fails, and tells every change of the batch', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        const before = await steady();
        const write = rig.store.db.write.bind(rig.store.db);
        rig.store.db.write = () => Promise.reject(new Error('disk gone'));
        const results = await Promise.allSettled([
            rig.engine.change(updates(1, own('x'))),
            rig.engine.change(creates({ domain: 'b.test' }))
        ]);
        rig.store.db.write = write;
        expect(
            results.map((result) => (result.status === 'rejected' ? (result.reason as Error).message : ''))
        ).to.equal(['disk gone', 'disk gone']);
        const running = JSON.stringify(rig.driver.running);
        expect(running).to.not.contain('x-own: x');
        expect((await table()).has('b.test')).to.be.false();
        expect(rig.rows().size).to.equal(1);
        expect(JSON.parse(before)[1]).to.equal([...(await table())].sort());
        expect((await rig.engine.change(creates({ domain: 'b.test' }))).outcome.applied).to.be.true();
    });

    it('fails alone the change whose own part cannot be written', async () => {
        const [first, bad, last] = await Promise.allSettled([
            rig.engine.change(creates({ domain: 'a.test' })),
            rig.engine.change(
                creates(
                    { domain: 'b.test', ...own('b') },
                    { commit: () => Promise.reject(new Error('audit refused')) }
                )
            ),
            rig.engine.change(creates({ domain: 'c.test' }))
        ]);
        expect([first.status, bad.status, last.status]).to.equal(['fulfilled', 'rejected', 'fulfilled']);
        expect((bad as PromiseRejectedResult).reason).to.be.an.error('audit refused');
        expect([...rig.rows().values()].map(({ row }) => row.site.domain)).to.equal(['a.test', 'c.test']);
        expect([...(await table()).keys()].sort()).to.equal(['a.test', 'c.test']);
        expect((await rig.engine.drift()).drifted).to.be.false();
    });

    it('keeps the database free while the engine hangs', async () => {
        const before = loads();
        rig.driver.next('load', { hang: true });
        const change = rig.engine.change(creates({ domain: 'a.test' }));
        await until(() => loads() > before, 'the load');
        const began = performance.now();
        for (let index = 0; index < 20; index += 1) {
            await rig.store.db.write(async (tx) => tx.em.execute('select 1'));
        }

        expect(performance.now() - began).to.be.below(1000);
        rig.driver.release();
        expect((await change).outcome.applied).to.be.true();
    });

    it('answers 50301 and forgets the change when a load gets no answer, and finds out later what the engine has', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        rig.driver.next('load', { unavailable: 'no answer within 60 s' });
        expect(await codeOf(rig.engine.change(creates({ domain: 'b.test', ...own('b') })))).to.include({
            code: 50301
        });
        expect(rig.rows().size).to.equal(1);
        expect((await table()).has('b.test')).to.be.false();
        expect((await rig.engine.change(creates({ domain: 'c.test' }))).outcome.applied).to.be.true();
        expect([...(await table()).keys()].sort()).to.equal(['a.test', 'c.test']);
    });

    it('does not load for a change that changes nothing, and makes no revision of it', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        const before = loads();
        const { outcome } = await rig.engine.change({ plan: () => ({}), commit: async () => null });
        expect(outcome).to.equal({ revision: 1, applied: true, reloaded: false });
        expect(loads()).to.equal(before);
    });

    it("works from inside a write's aftermath", async () => {
        const later: Promise<unknown>[] = [];
        await rig.store.db.write(async (tx) => {
            tx.afterCommit(() => later.push(rig.engine.change(creates({ domain: 'a.test' }))));
        });
        await Promise.all(later);
        expect(rig.rows().size).to.equal(1);
    });

    it('never gives an id twice, also after a removal and a restart', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        await rig.engine.change(removes(1));
        await rig.reboot();
        expect((await rig.engine.change(creates({ domain: 'b.test' }))).value.id).to.equal(2);
    });

    it('tells what a change would cost and leaves no trace', async () => {
        await rig.engine.change(creates({ domain: 'a.test' }));
        const before = await steady();
        expect(await rig.engine.tryChange(creates({ domain: 'b.test' }))).to.equal({ reloaded: false });
        expect(await rig.engine.tryChange(creates({ domain: 'c.test', ...own('c') }))).to.equal({
            reloaded: true
        });
        expect((await codeOf(rig.engine.tryChange(creates({ domain: 'a.test' })))).message).to.equal(
            'taken: a.test'
        );
        rig.driver.next('validate', { reject: 'bad' });
        expect(await codeOf(rig.engine.tryChange(creates({ domain: 'd.test', ...own('d') })))).to.include({
            code: 42200
        });
        expect(await steady()).to.equal(before);
        expect((await rig.engine.change(creates({ domain: 'b.test' }))).value.id).to.equal(2);
    });
});
