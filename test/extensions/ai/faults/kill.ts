/** What a panel that was killed leaves of answers and approvals: nothing is done twice, and what was cut says so. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createPanelProcess, type PanelProcess } from '../../../support/panel/process.ts';
import { ModelServer } from '../../../support/servers/model.ts';
import { until } from '../../../support/until.ts';
import { writeHelper } from '../../mcpserver/helper.ts';
import type { Any } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const base = '/api/plugins/ai';
const patient = { timeout: 180_000 };

describe('the assistant after kill -9', patient, () => {
    let panel: PanelProcess;
    let model: ModelServer;
    let helper: ReturnType<typeof writeHelper>;
    let folder: string;

    before(patient, async () => {
        helper = writeHelper();
        folder = mkdtempSync(join(tmpdir(), 'portico-ai-kill-'));
        mkdirSync(join(folder, 'plugins'));
        symlinkSync(join(import.meta.dirname, '../../../../extensions/ai'), join(folder, 'plugins', 'ai'));
        model = await new ModelServer().open();
        panel = await createPanelProcess({
            environment: { PORTICO_PLUGIN_DIRS: [join(folder, 'plugins'), helper.path].join(':') }
        });
        await panel.start();
    });
    after(patient, async () => {
        await panel?.close();
        await model?.close();
        helper.remove();
        rmSync(folder, { recursive: true, force: true });
    });

    it(
        'stops an answer, fails a call that was under way, and makes a waiting one once',
        patient,
        async () => {
            const admin = await panel.login();
            const running = (): Promise<unknown> =>
                until(
                    async () => {
                        const states = await Promise.all(
                            ['ai', 'helper'].map(
                                async (name) => (await admin.get(`/api/plugins/${name}`)).data?.state
                            )
                        );
                        return states.every((state) => state === 'running');
                    },
                    'the plugins to run',
                    60_000
                );
            await running();
            const grants = {
                network: ['*', '127.0.0.1'],
                api: { read: ['*'], write: ['*'] },
                taps: ['audit.recorded']
            };
            expect((await admin.put('/api/plugins/ai', { grants })).code).to.equal(0);
            await running();
            const made = await admin.post(`${base}/providers`, {
                name: 'Local',
                baseUrl: `http://127.0.0.1:${model.port}/v1`,
                model: 'model-large'
            });
            expect(made.code, made.text).to.equal(0);
            const begin = async (): Promise<number> =>
                (await admin.post(`${base}/conversations`, {})).data.id;
            const ask = (id: number, text: string) =>
                admin.post(`${base}/conversations/${id}/messages`, { text });
            const propose = async (name: string, payload: object): Promise<Any> => {
                const id = await begin();
                model.say({ calls: [{ name, input: { payload } }] });
                await ask(id, `Call ${name} of the helper`);
                const { data } = await admin.get(`${base}/approvals?state=pending`);
                return data.find(({ conversationId }: Any) => conversationId === id);
            };
            const approve = ({ id, hash }: Any): Promise<Any> =>
                admin.post(`${base}/approvals/${id}/approve`, { hash });
            const state = async ({ id }: Any): Promise<Any> =>
                (await admin.get(`${base}/approvals/${id}`)).data;
            const done = async (): Promise<Any> => (await admin.get('/api/plugins/helper/done')).data.done;

            const waiting = await propose('helper__note', { text: 'later' });
            const cut = await propose('helper__hang', {});
            const executing = approve(cut).catch(() => null);
            await until(async () => (await done()).includes('hang'), 'the call to be under way');
            const talk = await begin();
            model.say({ text: 'word '.repeat(2_000), paceMs: 20 });
            const talking = ask(talk, 'Talk').catch(() => null);
            const messages = async (): Promise<Any> =>
                (await admin.get(`${base}/conversations/${talk}/messages`)).data;
            await until(async () => model.questions.length === 3, 'the answer to begin');
            expect(await messages()).to.have.length(2);

            await panel.end('SIGKILL');
            await Promise.all([executing, talking]);
            await panel.start();
            await running();

            const [answer] = await messages();
            expect(answer).to.include({ role: 'assistant', reason: 'stopped' });
            model.say({ text: 'Here again.' });
            expect((await ask(talk, 'And now?')).text).to.contain('"reason":"stop"');
            expect(await state(cut)).to.include({ state: 'failed', code: 50300 });
            expect((await approve(cut)).code).to.equal(40950);
            expect(await state(waiting)).to.include({ state: 'pending', code: null });
            expect((await approve(waiting)).data?.answer.code).to.equal(0);
            expect((await approve(waiting)).code).to.equal(40950);
            expect(await done()).to.equal(['later']);
        }
    );
});
