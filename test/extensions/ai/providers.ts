/** Providers: their secrets, their tests, and the ones on this machine. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type AiRig, type Answer, createAiRig } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('providers', { timeout: 60_000 }, () => {
    let rig: AiRig;

    before(async () => {
        rig = await createAiRig({ provider: null });
    });
    after(() => rig?.close());

    it('have presets', async () => {
        const { data } = await rig.ask('GET', '/presets', undefined, 'viewer');
        expect(Number(data.length)).to.be.at.least(12);
        expect(new Set(data.map(({ id }: { id: string }) => id)).size).to.equal(data.length);
    });

    it('are set up by admins, and never show their key', async () => {
        expect((await rig.ask('GET', '/providers')).code).to.equal(40300);
        const made = await rig.provider({ headers: { 'X-Team': 'blue-secret' } });
        expect(made).to.include({ apiKeySet: true, isDefault: true, version: 1, headerNames: ['X-Team'] });
        const one = await rig.ask('GET', `/providers/${made.id}`, undefined, 'admin');
        const rows = await rig.host.db.read((em) => em.execute('select * from providers'));
        for (const text of [
            one.text,
            JSON.stringify(rows),
            JSON.stringify(rig.host.audit),
            JSON.stringify(rig.host.log)
        ]) {
            expect(text).to.not.include('key-of-test');
            expect(text).to.not.include('blue-secret');
        }
    });

    it('keep their key in a change that does not name it, and lose it by null', async () => {
        const { id } = await rig.provider();
        const change = async (body: object): Promise<Answer> =>
            rig.ask('PUT', `/providers/${id}`, body, 'admin');
        expect((await change({ model: 'model-small', version: 1 })).data).to.include({
            apiKeySet: true,
            model: 'model-small',
            name: 'Test',
            version: 2
        });
        expect((await change({ apiKey: null })).data).to.include({ apiKeySet: false });
        expect((await change({ name: 'x', version: 1 })).code).to.equal(41200);
        expect((await change({ baseUrl: 'file:///etc/passwd' })).code).to.equal(40001);
    });

    it('have one default, which moves', async () => {
        const second = await rig.provider({ isDefault: true });
        const defaults = async (): Promise<number[]> =>
            (await rig.ask('GET', '/providers', undefined, 'admin')).data
                .filter(({ isDefault }: { isDefault: boolean }) => isDefault)
                .map(({ id }: { id: number }) => id);
        expect(await defaults()).to.equal([second.id]);
        await rig.ask('DELETE', `/providers/${second.id}`, undefined, 'admin');
        expect((await defaults()).length).to.equal(1);
    });

    it('are tested part by part', async () => {
        const { id } = await rig.provider({ embeddingModel: 'model-embed' });
        rig.model.reset();
        rig.model.say({ text: 'ready' }, { calls: [{ name: 'echo', input: { word: 'ready' } }] });
        const { data } = await rig.ask('POST', `/providers/${id}/test`, undefined, 'admin');
        expect(data.ok).to.be.true();
        expect(data.checks.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok])).to.equal([
            ['models', true],
            ['answer', true],
            ['tools', true],
            ['embeddings', true]
        ]);
    });

    it('say what is wrong with them', async () => {
        const wrong = await rig.provider({ apiKey: 'wrong' });
        const { data } = await rig.ask('POST', `/providers/${wrong.id}/test`, undefined, 'admin');
        expect(data.ok).to.be.false();
        expect(data.checks[0].message).to.include('status 401');
        const mute = await rig.provider();
        rig.model.reset();
        rig.model.say({ text: 'ready' }, { text: 'I cannot call functions' });
        const second = await rig.ask('POST', `/providers/${mute.id}/test`, undefined, 'admin');
        expect(second.data.checks[2]).to.include({ name: 'tools', ok: false });
        const gone = await rig.provider({ baseUrl: 'http://gone.test/v1' });
        rig.host.network.answer('gone.test', () => {
            throw new Error('connect ECONNREFUSED');
        });
        const third = await rig.ask('GET', `/providers/${gone.id}/models`, undefined, 'admin');
        expect([third.code, third.message]).to.equal([
            50250,
            'The model did not answer: it cannot be reached'
        ]);
    });

    it('list the models of both protocols', async () => {
        for (const type of ['openai', 'anthropic']) {
            const { id } = await rig.provider({ type });
            const { data } = await rig.ask('GET', `/providers/${id}/models`, undefined, 'admin');
            expect(data).to.equal([{ id: 'model-large' }, { id: 'model-small' }, { id: 'model-embed' }]);
        }
    });

    it('are found on this machine', async () => {
        rig.host.network.answer('127.0.0.1', async (request) => {
            const url = new URL(request.url);
            if (url.port !== '11434') {
                throw new Error('connect ECONNREFUSED');
            }
            return fetch(`http://127.0.0.1:${rig.model.port}${url.pathname}`);
        });
        const { data } = await rig.ask('POST', '/providers/discover', undefined, 'admin');
        expect(data).to.equal([
            { baseUrl: 'http://127.0.0.1:11434/v1', models: ['model-large', 'model-small', 'model-embed'] }
        ]);
    });

    it('are what the health of the plugin says', async () => {
        const bare = await createAiRig({ provider: null });
        expect((await bare.host.health())[0]).to.include({ name: 'provider', state: 'ok' });
        await bare.provider({ apiKey: 'wrong' });
        expect((await bare.host.health())[0]).to.include({ state: 'degraded' });
        await bare.close();
    });
});
