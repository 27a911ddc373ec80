/** Conversations: whose they are, how they are found, taken away, and forgotten. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type AiRig, type Answer, createAiRig } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const start = Date.UTC(2026, 0, 10);
const day = 86_400_000;

describe('conversations', { timeout: 60_000 }, () => {
    let rig: AiRig;

    before(async () => {
        rig = await createAiRig({ now: start });
    });
    after(() => rig?.close());

    it('are those of the user, also for an admin', async () => {
        const id = await rig.conversation('olga', { title: 'Mine' });
        await rig.say(id, 'secret plan');
        for (const as of ['oscar', 'admin'] as const) {
            for (const [method, path, body] of [
                ['GET', `/conversations/${id}`],
                ['PUT', `/conversations/${id}`, { title: 'Yours' }],
                ['DELETE', `/conversations/${id}`],
                ['GET', `/conversations/${id}/messages`],
                ['GET', `/conversations/${id}/export`],
                ['POST', `/conversations/${id}/stop`],
                ['POST', `/conversations/${id}/messages`, { text: 'x' }],
                ['POST', `/conversations/${id}/continue`],
                ['POST', `/conversations/${id}/regenerate`]
            ] as const) {
                expect([path, (await rig.ask(method, path, body, as)).code]).to.equal([path, 40400]);
            }
            expect((await rig.ask('GET', '/conversations?q=secret', undefined, as)).data).to.equal([]);
        }
        expect((await rig.ask('GET', '/conversations', undefined, 'viewer')).code).to.equal(40300);
        expect((await rig.ask('GET', `/conversations/${id}`)).data.title).to.equal('Mine');
    });

    it('of an API token are seen by its user, and the user’s are not seen by the token', async () => {
        const own = await rig.conversation('oscar', { title: 'By hand' });
        const token = rig.host.as({ username: 'oscar', role: 'operator', token: true });
        const made = await token.post<{ id: number }>('/conversations', { title: 'By a program' });
        expect((await token.get(`/conversations/${own}`)).code).to.equal(40400);
        const { data } = await rig.ask('GET', '/conversations', undefined, 'oscar');
        expect(data.map(({ id }: { id: number }) => id)).to.equal([made.data.id, own]);
    });

    it('change by version', async () => {
        const id = await rig.conversation();
        const changed = await rig.ask('PUT', `/conversations/${id}`, { pinned: true, version: 1 });
        expect(changed.data).to.include({ version: 2, pinned: true, title: 'New conversation' });
        expect((await rig.ask('PUT', `/conversations/${id}`, { title: 'x', version: 1 })).code).to.equal(
            41200
        );
    });

    it('are found by words of titles, questions and answers, in pages', async () => {
        const ids: number[] = [];
        for (let n = 0; n < 7; n += 1) {
            const id = await rig.conversation('olga', {
                title: n === 0 ? 'Über die Zertifikate' : `No ${n}`
            });
            ids.unshift(id);
            rig.model.say({ text: n === 3 ? 'The certificates expire' : 'Nothing of that' });
            await rig.say(id, n === 5 ? 'What of certificates?' : 'What?');
        }
        const found = async (q: string, more = ''): Promise<Answer> =>
            rig.ask('GET', `/conversations?q=${encodeURIComponent(q)}${more}`);
        const idsOf = ({ data }: Answer): number[] => data.map(({ id }: { id: number }) => id);
        expect(idsOf(await found('certificates'))).to.equal([ids[1], ids[3]]);
        expect(idsOf(await found('certif'))).to.equal([ids[1], ids[3]]);
        expect(idsOf(await found('uber zert'))).to.equal([ids[6]]);
        expect(idsOf(await found('certificates nothing'))).to.equal([]);
        expect(idsOf(await found('" OR owner:u1 *'))).to.equal([]);
        const first = await found('nothing', '&limit=3');
        expect(idsOf(first)).to.equal(ids.slice(0, 3));
        const next = /cursor=([^&>]+)/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
        expect(idsOf(await found('nothing', `&limit=3&cursor=${next}`))).to.equal([ids[4], ids[5], ids[6]]);
        await rig.ask('PUT', `/conversations/${ids[6]}`, { title: 'Renamed' });
        expect(idsOf(await found('zertifikate'))).to.equal([]);
        await rig.ask('DELETE', `/conversations/${ids[1]}`);
        expect(idsOf(await found('certificates'))).to.equal([ids[3]]);
    });

    it('are taken away as Markdown and as JSON', async () => {
        const id = await rig.conversation('olga', { title: 'To take' });
        rig.model.say({ text: 'An *answer*.' });
        await rig.say(id, 'A question?', 'olga', { attachments: [{ name: 'a.log', text: 'line' }] });
        const markdown = await (await rig.as().fetch('GET', `/conversations/${id}/export`)).text();
        expect(markdown).to.include(['# To take', 'A question?', 'Attachment: a.log', 'An *answer*.']);
        const response = await rig.as().fetch('GET', `/conversations/${id}/export?format=json`);
        expect(response.headers.get('content-disposition')).to.include(`conversation-${id}.json`);
        const { messages } = (await response.json()) as { messages: { text: string }[] };
        expect(messages.map(({ text }) => text)).to.equal(['A question?', 'An *answer*.']);
    });

    it('are forgotten when they are old, but for pinned ones', async () => {
        const old = await rig.conversation();
        const pinned = await rig.conversation('olga', { pinned: true });
        rig.time.at = start + 300 * day;
        const young = await rig.conversation();
        rig.time.at = start + 366 * day;
        await rig.host.schedules.run('retention');
        const { data } = await rig.ask('GET', '/conversations');
        const left = data.map(({ id }: { id: number }) => id);
        expect(left).to.include([pinned, young]);
        expect(left).to.not.include(old);
        expect((await rig.ask('GET', '/conversations?q=secret')).data).to.equal([]);
    });
});

describe('GET /conversations?q', { timeout: 120_000 }, () => {
    it('finds among 100,000 messages: a rare word, a common one, none', async () => {
        const rig = await createAiRig({ provider: null });
        await rig.conversation();
        await rig.host.db.write(async (em) => {
            await em.execute(
                `with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000) insert into conversations
                select i + 1, 1, 1, 'x', 'No ' || i, null, 0, '{}', 0, 0 from n`
            );
            await em.execute(
                `with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000) insert into messages
                select i, 2 + i % 5000, 'user', 'the host word' || (i % 997) || ' does not serve and the upstream answers ' || i, '[]', null, 0, 0, null, 0 from n`
            );
            await em.execute(
                "insert into message_texts (rowid, owner, text) select m.conversation_id * 67108864 + 1 + m.id, 'u' || c.user_id, m.text from messages m join conversations c on c.id = m.conversation_id"
            );
        });
        const found = async (q: string): Promise<number> =>
            (await rig.ask('GET', `/conversations?q=${encodeURIComponent(q)}`)).data.length;
        expect(await found('word500')).to.equal(50);
        expect(await found('the upstream')).to.equal(50);
        expect(await found('host 77777')).to.equal(1);
        expect(await found('absent')).to.equal(0);
        await rig.close();
    });
});
