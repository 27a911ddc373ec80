/** Memories: whose they are, how they are found, and that the assistant has them. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type AiRig, type Any, createAiRig } from './rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const remember = async (rig: AiRig, text: string, as: 'olga' | 'oscar' = 'olga'): Promise<Any> =>
    (await rig.ask('POST', '/memories', { text }, as)).data;
const found = async (rig: AiRig, q: string, as: 'olga' | 'oscar' = 'olga'): Promise<string[]> =>
    (await rig.ask('GET', `/memories?q=${encodeURIComponent(q)}`, undefined, as)).data.map(
        ({ text }: Any) => text
    );

describe('memories', { timeout: 60_000 }, () => {
    it('are found by words without a model for meanings, and are in what the model sees', async () => {
        const rig = await createAiRig();
        await remember(rig, 'Backups of the shop run at night');
        await remember(rig, 'The intranet is on port 8443');
        await remember(rig, 'Oscar likes cats', 'oscar');
        expect(await found(rig, 'when do backups run?')).to.equal(['Backups of the shop run at night']);
        expect(await found(rig, 'cats')).to.equal([]);
        const id = await rig.conversation();
        await rig.say(id, 'When do the backups run?');
        const system = JSON.stringify(rig.model.questions[0]?.body.messages[0]);
        expect(system).to.include('Backups of the shop run at night').and.to.not.include('intranet');
        expect(rig.model.asked.some(({ path }) => path.endsWith('/embeddings'))).to.be.false();
        await rig.close();
    });

    it('are found by meaning with one', async () => {
        const rig = await createAiRig({ provider: { embeddingModel: 'model-embed' } });
        await remember(rig, 'Each snapshot is kept for a year');
        await remember(rig, 'TLS ends at the proxy');
        expect(await found(rig, 'What about the backup?')).to.equal(['Each snapshot is kept for a year']);
        expect(await found(rig, 'https')).to.equal(['TLS ends at the proxy']);
        expect((await rig.ask('GET', '/usage')).data[0].requests).to.equal(4);
        await rig.close();
    });

    it('are kept when the model for meanings fails, and answers come without them', async () => {
        const rig = await createAiRig({ provider: { embeddingModel: 'model-embed', apiKey: 'wrong' } });
        const made = await remember(rig, 'password=tiger99 of the shop');
        expect(made.id).to.be.a.number();
        expect(JSON.stringify(rig.model.asked)).to.not.include('tiger99');
        await rig.close();
    });

    it('belong to their user, change by version, and are forgotten one by one and all at once', async () => {
        const rig = await createAiRig({ provider: null });
        const { id } = await remember(rig, 'old words');
        await remember(rig, 'more');
        expect((await rig.ask('PUT', `/memories/${id}`, { text: 'x' }, 'oscar')).code).to.equal(40400);
        expect((await rig.ask('DELETE', `/memories/${id}`, undefined, 'oscar')).code).to.equal(40400);
        const changed = await rig.ask('PUT', `/memories/${id}`, {
            text: 'new phrase',
            tags: ['zebra'],
            version: 1
        });
        expect(changed.data).to.include({ version: 2, text: 'new phrase', tags: ['zebra'] });
        expect((await rig.ask('PUT', `/memories/${id}`, { text: 'x', version: 1 })).code).to.equal(41200);
        expect(await found(rig, 'words')).to.equal([]);
        expect(await found(rig, 'zebra')).to.equal(['new phrase']);
        await rig.ask('DELETE', `/memories/${id}`);
        expect((await rig.ask('GET', '/memories')).data.length).to.equal(1);
        await remember(rig, 'of oscar', 'oscar');
        expect((await rig.ask('DELETE', '/memories')).data).to.equal({ removed: 1 });
        expect((await rig.ask('GET', '/memories', undefined, 'oscar')).data.length).to.equal(1);
        await rig.close();
    });

    it('go with their user, as conversations do', async () => {
        const rig = await createAiRig();
        const id = await rig.conversation();
        await rig.say(id, 'Hello');
        await remember(rig, 'something');
        const rows = await rig.host.db.read((em) =>
            em.execute<{ user_id: number }[]>('select user_id from conversations')
        );
        const userId = rows[0]?.user_id ?? 0;
        await rig.host.hooks.run('audit.recorded', {
            actor: { id: 1, username: 'admin', tokenId: null, plugin: null },
            action: 'delete',
            resource: 'users',
            resourceId: userId,
            outcome: 'success',
            code: 0,
            ip: null,
            requestId: null
        });
        const left = await rig.host.db.read(async (em) => [
            await em.execute('select 1 from conversations'),
            await em.execute('select 1 from messages'),
            await em.execute('select 1 from message_texts'),
            await em.execute('select 1 from memories')
        ]);
        expect(left).to.equal([[], [], [], []]);
        await rig.close();
    });
});
