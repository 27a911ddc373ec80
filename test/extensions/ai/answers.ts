/** Conversations and the answers in them, by the real client libraries of both protocols. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { freePort } from '../../support/ports.ts';
import { until } from '../../support/until.ts';
import { type AiRig, type Any, createAiRig, dataOf, namesOf, textOf } from './rig.ts';

export const lab = Lab.script();
const { after, before, beforeEach, describe, it } = lab;

/** The calls in the messages of a question to a model, in either protocol, each with the result that is sent beside it. */
function callsOf(messages: readonly Any[]): { id: string; called: unknown; result: string }[] {
    const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Any[]) : []));
    const called = [
        ...messages
            .flatMap(({ tool_calls: calls = [] }) => calls as Any[])
            .map(({ id, function: { arguments: text } }) => ({ id, called: JSON.parse(text) })),
        ...blocks.filter(({ type }) => type === 'tool_use').map(({ id, input }) => ({ id, called: input }))
    ];
    const results = [
        ...messages.map(({ tool_call_id: id, content }) => ({ id, content })),
        ...blocks.map(({ tool_use_id: id, content }) => ({ id, content }))
    ];
    return called.map(({ id, called: input }) => {
        const [one, ...more] = results.filter((each) => each.id === id);
        expect([one !== undefined, more], `results of ${id}`).to.equal([true, []]);
        const text = typeof one?.content === 'string' ? one.content : (one?.content as Any[])[0].text;
        return { id, called: input, result: text };
    });
}

for (const type of ['openai', 'anthropic'] as const) {
    describe(`POST /conversations/{id}/messages, ${type}`, { timeout: 60_000 }, () => {
        let rig: AiRig;

        before(async () => {
            rig = await createAiRig({
                type,
                provider: {
                    prices: { input: 2, output: 10 },
                    headers: { 'x-team': 'panel' },
                    maxOutputTokens: 777
                },
                patienceMs: 2_000,
                settings: { tokensPerDay: 10_000_000 }
            });
        });
        beforeEach(() => rig.model.reset());
        after(() => rig?.close());

        it('streams an answer, keeps it, and counts what it used', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'Two hosts serve, one does not.', usage: { input: 1_000, output: 200 } });
            const events = await rig.say(id, 'What serves?', 'olga', {
                attachments: [{ name: 'hosts.txt', text: 'one two three' }]
            });
            expect(namesOf(events)).to.equal(['start', 'usage', 'end']);
            expect(events.filter(({ event }) => event === 'text').length).to.be.above(3);
            expect(textOf(events)).to.equal('Two hosts serve, one does not.');
            expect(dataOf(events, 'usage')).to.equal({ input: 1_000, output: 200, cost: 0.004 });
            const { messageId } = dataOf(events, 'start');
            expect(dataOf(events, 'end')).to.equal({ messageId, reason: 'stop' });
            const [question, answer] = await rig.messages(id);
            expect(question).to.include({ role: 'user', text: 'What serves?', attachments: ['hosts.txt'] });
            expect(answer).to.include({
                id: messageId,
                role: 'assistant',
                text: 'Two hosts serve, one does not.',
                reason: 'stop',
                usage: { input: 1_000, output: 200, cost: 0.004 }
            });
            const [asked] = rig.model.questions;
            expect(JSON.stringify(asked?.body.messages)).to.include('one two three');
            expect(asked?.headers[type === 'openai' ? 'authorization' : 'x-api-key']).to.equal(
                type === 'openai' ? 'Bearer key-of-test' : 'key-of-test'
            );
            expect([asked?.headers['x-team'], asked?.body.max_tokens]).to.equal(['panel', 777]);
        });

        it('gives the model what was said before, in order', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'First.' }, { text: 'Second.' });
            await rig.say(id, 'one');
            await rig.say(id, 'two');
            const said = rig.model.questions[1]?.body.messages.map(
                ({ role, content }: { role: string; content: unknown }) => [role, JSON.stringify(content)]
            ) as [string, string][];
            const rest = said.filter(([role]) => role !== 'system');
            expect(rest.map(([role]) => role)).to.equal(['user', 'assistant', 'user']);
            expect(rest[1]?.[1]).to.include('First.');
        });

        const faults = [
            ['refuses', { status: 429 }, 'status 429'],
            ['is overloaded', { status: 529 }, 'status 529'],
            ['fails in the middle', { text: 'A half', overloaded: true }, ''],
            ['fails before it says a word', { overloaded: true }, ''],
            [
                'refuses to go on',
                { text: 'A half', stop: type === 'openai' ? 'content_filter' : 'refusal' },
                'its content filter ended the answer'
            ],
            [
                'refuses after a call that it wanted',
                {
                    calls: [{ name: 'find_routes', input: { query: 'hosts' } }],
                    stop: type === 'openai' ? 'content_filter' : 'refusal'
                },
                'its content filter ended the answer'
            ],
            ['cuts the stream', { text: 'A half of an answer', cutAfter: 2 }, ''],
            ['answers what is none', { raw: 'data: {"choices": 7, "type": "nonsense"}\n\n' }, ''],
            ['ends without an end', { raw: '' }, 'cut'],
            ['sends no JSON', { raw: 'data: {broken\n\n' }, ''],
            ['hangs', { text: 'A half of an answer', hangAfter: 2 }, 'nothing came for 2 s'],
            ['is too slow', { text: 'late', delayMs: 5_000 }, 'nothing came for 2 s']
        ] as const;
        for (const [what, turn, why] of faults) {
            it(`ends with MODEL_FAILED when the vendor ${what}, asks no second time, and answers the next question`, async () => {
                const id = await rig.conversation();
                rig.model.say(turn, { text: 'Well again.' });
                const events = await rig.say(id, 'Well?');
                expect(dataOf(events, 'error')).to.include({ code: 50250, reason: 'MODEL_FAILED' });
                expect(dataOf(events, 'error').message).to.include(why);
                expect(dataOf(events, 'end').reason).to.equal('error');
                expect(rig.model.questions.length).to.equal(1);
                const [, answer] = await rig.messages(id);
                expect([answer.reason, answer.text]).to.equal(['error', textOf(events)]);
                expect(textOf(await rig.say(id, 'And now?'))).to.equal('Well again.');
            });
        }

        it('ends with MODEL_FAILED when the vendor is gone, and answers when it is back', async () => {
            const port = await freePort();
            rig.host.network.answer('gone.test', () => fetch(`http://127.0.0.1:${port}/`));
            const { id: providerId } = await rig.provider({
                type,
                name: 'Gone',
                baseUrl: 'http://gone.test/v1'
            });
            const id = await rig.conversation('olga', { providerId });
            const events = await rig.say(id, 'Well?');
            expect(dataOf(events, 'error')).to.include({ code: 50250, reason: 'MODEL_FAILED' });
            expect(dataOf(events, 'end').reason).to.equal('error');
            expect(JSON.stringify(events)).to.not.include('key-of-test');
            await rig.ask('PUT', `/providers/${providerId}`, { baseUrl: 'http://model.test/v1' }, 'admin');
            rig.model.say({ text: 'Back again.' });
            expect(textOf(await rig.say(id, 'And now?'))).to.equal('Back again.');
        });

        it('says when the tokens end, and goes on', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'Half', length: true }, { text: 'and half.' });
            expect(dataOf(await rig.say(id, 'All?'), 'end').reason).to.equal('length');
            const rest = await rig.stream(`/conversations/${id}/continue`, undefined);
            expect(textOf(rest)).to.equal('and half.');
            expect((await rig.messages(id)).map(({ role }) => role)).to.equal([
                'user',
                'assistant',
                'assistant'
            ]);
        });

        it('knows the other reasons for which an answer ends, and tells no thoughts', async () => {
            const reasons =
                type === 'openai'
                    ? [['some_new_reason', 'stop']]
                    : [
                          ['stop_sequence', 'stop'],
                          ['pause_turn', 'stop'],
                          ['model_context_window_exceeded', 'length'],
                          ['some_new_reason', 'stop']
                      ];
            for (const [stop = '', reason = ''] of reasons) {
                const id = await rig.conversation();
                rig.model.say({ thoughts: 'Perhaps the moon.', text: 'The sun.', stop });
                const events = await rig.say(id, 'What shines?');
                expect([textOf(events), dataOf(events, 'end').reason], stop).to.equal(['The sun.', reason]);
                expect(JSON.stringify([events, await rig.messages(id)])).to.not.include('moon');
            }
        });

        it('makes several calls of one step, each with its own result, and none whose arguments were cut', async () => {
            const id = await rig.conversation();
            const search = (query: string) => ({ name: 'find_routes', input: { query } });
            rig.model.say(
                { text: 'I look.', calls: [search('users'), search('hosts'), search('logs')] },
                { calls: [{ name: 'find_routes', input: '{"query": "ho' }], length: true },
                { text: 'Done.' }
            );
            const events = await rig.say(id, 'Look at everything');
            expect([textOf(events), dataOf(events, 'end').reason]).to.equal(['I look.Done.', 'stop']);
            const asked = rig.model.questions.map(({ body }) => body.messages);
            expect(asked.length).to.equal(3);
            const given = callsOf(asked[1] ?? []);
            expect(given.map(({ called }) => called)).to.equal([
                search('users').input,
                search('hosts').input,
                search('logs').input
            ]);
            expect(new Set(given.map(({ id: each }) => each)).size).to.equal(3);
            given.forEach(({ result }) => expect(result).to.include('"code":0'));
            expect(callsOf(asked[2] ?? []).at(-1)?.result).to.include('The arguments are no JSON object');
        });

        it('answers anew', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'Badly.' }, { text: 'Better.' });
            await rig.say(id, 'How?');
            expect(textOf(await rig.stream(`/conversations/${id}/regenerate`, undefined))).to.equal(
                'Better.'
            );
            expect((await rig.messages(id)).map(({ text }) => text)).to.equal(['How?', 'Better.']);
            expect(JSON.stringify(rig.model.questions[1]?.body)).to.not.include('Badly');
        });

        it('stops when the user says so, keeps what came, and leaves the vendor', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'word '.repeat(500), paceMs: 20 });
            const left = rig.model.left;
            const events = rig
                .as()
                .events(`/conversations/${id}/messages`, { method: 'POST', body: { text: 'Talk' } });
            const seen = [];
            for await (const event of events) {
                seen.push(event);
                if (seen.length === 5) {
                    expect((await rig.ask('POST', `/conversations/${id}/stop`)).data).to.equal({
                        stopped: true
                    });
                }
            }
            expect(seen.at(-1)?.data).to.include({ reason: 'stopped' });
            const [, answer] = await rig.messages(id);
            expect(answer.reason).to.equal('stopped');
            expect(String(answer.text)).to.startWith('word word');
            expect(Number(answer.usage.output)).to.be.above(0);
            await until(() => rig.model.left > left, 'the vendor to be left');
            expect((await rig.ask('POST', `/conversations/${id}/stop`)).data).to.equal({ stopped: false });
        });

        it('stops when the client leaves', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'word '.repeat(500), paceMs: 20 });
            const left = rig.model.left;
            const events = rig
                .as()
                .events(`/conversations/${id}/messages`, { method: 'POST', body: { text: 'Talk' } });
            await events.next();
            await events.next();
            await events.return(undefined);
            const answer = await until(async () => {
                const [, last] = await rig.messages(id);
                return last?.reason === null ? null : last;
            }, 'the answer to end');
            expect(answer.reason).to.equal('stopped');
            await until(() => rig.model.left > left, 'the vendor to be left');
            expect(textOf(await rig.say(id, 'Again'))).to.equal('Nothing was said for this.');
        });

        it('gives one answer at a time', async () => {
            const id = await rig.conversation();
            rig.model.say({ text: 'word '.repeat(500), paceMs: 20 });
            const events = rig
                .as()
                .events(`/conversations/${id}/messages`, { method: 'POST', body: { text: 'Talk' } });
            await events.next();
            const second = await rig.ask('POST', `/conversations/${id}/messages`, { text: 'Me too' });
            expect([second.code, second.reason]).to.equal([40953, 'BUSY']);
            await events.return(undefined);
        });
    });
}

describe('an answer', { timeout: 60_000 }, () => {
    it('needs a provider', async () => {
        const rig = await createAiRig({ provider: null });
        const id = await rig.conversation();
        const refused = await rig.ask('POST', `/conversations/${id}/messages`, { text: 'Hello' });
        expect([refused.status, refused.code, refused.reason]).to.equal([503, 50350, 'NO_PROVIDER']);
        expect(await rig.messages(id)).to.equal([]);
        await rig.provider({ enabled: false });
        expect((await rig.ask('POST', `/conversations/${id}/messages`, { text: 'Hello' })).code).to.equal(
            50350
        );
        await rig.close();
    });

    it('ends with an error when the plugin is disabled, and is stopped after a kill', async () => {
        const rig = await createAiRig();
        const id = await rig.conversation();
        rig.model.say({ text: 'word '.repeat(500), paceMs: 20 });
        const seen: unknown[] = [];
        let last: unknown = null;
        const reading = (async () => {
            for await (const { event, data } of rig
                .as()
                .events(`/conversations/${id}/messages`, { method: 'POST', body: { text: 'Talk' } })) {
                seen.push(event);
                last = data;
            }
        })();
        await until(() => seen.length > 3, 'the answer to begin');
        await rig.host.restart();
        await reading;
        expect(seen).to.not.include('end');
        expect(seen.at(-1)).to.equal('error');
        expect(last).to.include({ code: 50300, reason: 'NOT_READY' });
        const [, answer] = await rig.messages(id);
        expect(answer.reason).to.equal('error');
        // What a killed panel leaves is a row whose answer has no end.
        await rig.host.db.write((em) =>
            em.execute('update messages set reason = null where id = ?', [answer.id])
        );
        await rig.host.restart();
        expect((await rig.messages(id))[1].reason).to.equal('stopped');
        await rig.close();
    });
});
