/** Limits and usage: what is counted before it is sent. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createAiRig, dataOf, namesOf } from '../rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const noon = Date.UTC(2026, 4, 20, 12);
const hour = 3_600_000;

describe('limits', { timeout: 60_000 }, () => {
    it('refuse a request too many in a minute, with the time to wait, and send nothing', async () => {
        const rig = await createAiRig({ now: noon, settings: { requestsPerMinute: 2 } });
        const id = await rig.conversation();
        await rig.say(id, 'one');
        rig.time.at = noon + 20_000;
        await rig.say(id, 'two');
        const refused = await rig.ask('POST', `/conversations/${id}/messages`, { text: 'three' });
        expect([refused.status, refused.code, refused.headers.get('retry-after')]).to.equal([
            429,
            42950,
            '40'
        ]);
        expect(refused.data).to.include({ limit: 'requestsPerMinute' });
        expect(rig.model.questions.length).to.equal(2);
        expect((await rig.messages(id)).length).to.equal(4);
        const other = await rig.conversation('oscar');
        expect(dataOf(await rig.say(other, 'mine', 'oscar'), 'end').reason).to.equal('stop');
        rig.time.at = noon + 61_000;
        expect(dataOf(await rig.say(id, 'three'), 'end').reason).to.equal('stop');
        await rig.close();
    });

    it('count the tokens of a day, the next one included', async () => {
        const rig = await createAiRig({ now: noon, settings: { tokensPerDay: 2_000 } });
        const id = await rig.conversation();
        rig.model.say({ text: 'a', usage: { input: 900, output: 800 } });
        await rig.say(id, 'one');
        // 300 are left, and the next question alone has more.
        const events = await rig.say(id, 'word '.repeat(400));
        expect(namesOf(events)).to.equal(['start', 'usage', 'end', 'error']);
        expect(dataOf(events, 'end').reason).to.equal('limit');
        expect(dataOf(events, 'error')).to.include({ code: 42950, reason: 'LIMIT_REACHED' });
        expect(rig.model.questions.length).to.equal(1);
        rig.time.at = noon + 12 * hour;
        rig.model.say({ text: 'a', usage: { input: 10, output: 10 } });
        expect(dataOf(await rig.say(id, 'small'), 'end').reason).to.equal('stop');
        // Those of a month are of all users.
        await rig.host.setSettings({ requestsPerMinute: 600, tokensPerMonth: 1_720 });
        const other = await rig.conversation('oscar');
        const refused = await rig.ask('POST', `/conversations/${other}/messages`, { text: 'x' }, 'oscar');
        expect([refused.code, refused.data.limit]).to.equal([42950, 'tokensPerMonth']);
        expect(rig.model.questions.length).to.equal(2);
        await rig.close();
    });

    it('count tokens and cost of a month over all users', async () => {
        const rig = await createAiRig({
            now: noon,
            settings: { costPerMonth: 1, tokensPerMonth: 1_000_000 },
            provider: { prices: { input: 100, output: 1_000 } }
        });
        const id = await rig.conversation();
        rig.model.say({ text: 'a', usage: { input: 1_000, output: 900 } });
        expect(dataOf(await rig.say(id, 'one'), 'usage').cost).to.equal(1);
        const other = await rig.conversation('oscar');
        const refused = await rig.ask('POST', `/conversations/${other}/messages`, { text: 'x' }, 'oscar');
        expect(refused.data).to.include({ limit: 'costPerMonth' });
        rig.time.at = Date.UTC(2026, 5, 1);
        expect(dataOf(await rig.say(other, 'June', 'oscar'), 'end').reason).to.equal('stop');
        await rig.close();
    });

    it('count a request whose answer never came', async () => {
        const rig = await createAiRig({ now: noon });
        const id = await rig.conversation();
        rig.model.say({ status: 529 }, { text: 'without a count', noUsage: true });
        await rig.say(id, 'one');
        await rig.say(id, 'two');
        const [today] = (await rig.ask('GET', '/usage')).data;
        expect(today).to.include({ key: '2026-05-20', requests: 2, cost: 0 });
        expect(Number(today.input)).to.be.above(0);
        expect(Number(today.output)).to.be.above(0);
        await rig.close();
    });
});

describe('GET /usage', { timeout: 60_000 }, () => {
    it('shows one’s own, and those of all to a manager, by user, provider and day', async () => {
        const rig = await createAiRig({ now: noon, provider: { prices: { input: 1, output: 1 } } });
        for (const [as, days] of [
            ['olga', 0],
            ['oscar', 0],
            ['oscar', 1]
        ] as const) {
            rig.time.at = noon + days * 24 * hour;
            rig.model.say({ text: 'a', usage: { input: 600_000 / (days + 1), output: 0 } });
            await rig.say(await rig.conversation(as), 'x', as);
        }
        const by = async (as: 'olga' | 'oscar' | 'admin', query: string): Promise<unknown> =>
            (await rig.ask('GET', `/usage?${query}`, undefined, as)).data.map(
                ({ key, input }: { key: string; input: number }) => [key, input]
            );
        expect(await by('olga', 'by=user')).to.equal([['olga', 600_000]]);
        expect(await by('admin', 'by=user')).to.equal([
            ['olga', 600_000],
            ['oscar', 900_000]
        ]);
        expect(await by('oscar', 'by=day')).to.equal([
            ['2026-05-21', 300_000],
            ['2026-05-20', 600_000]
        ]);
        expect(await by('admin', 'by=provider')).to.equal([['Test', 1_500_000]]);
        expect(await by('admin', 'by=user&from=2026-05-21T00:00:00Z')).to.equal([['oscar', 300_000]]);
        expect(await by('oscar', 'by=day&to=2026-05-20T23:59:59Z')).to.equal([['2026-05-20', 600_000]]);
        await rig.close();
    });
});
