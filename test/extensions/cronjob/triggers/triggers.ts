/** Triggers: callers without an account start a task by proving that they know its secret. */
import { createHmac } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('a trigger of a task', { timeout: 60_000 }, () => {
    let cron: CronjobRig;
    let task: number;
    let made: { id: string; url: string; secret: string };

    before({ timeout: 60_000 }, async () => {
        cron = await createCronjobRig({ settings: { triggersPerMinute: 12 } });
        task = await cron.task({
            command: ['sh', '-c', 'echo "on $CRONJOB_PARAM_BRANCH"'],
            enabled: false,
            overlap: 'allow',
            parameters: [{ name: 'BRANCH', default: 'main', pattern: '[a-z]+' }]
        });
        const answer = await cron.ask('POST', `/tasks/${task}/triggers`, { name: 'CI' });
        expect(answer.status).to.equal(201);
        made = answer.data;
    });
    after(() => cron.close());

    const call = (id: string, headers: Record<string, string>, body?: object) =>
        cron.host.as('anonymous').ask<{ runId: number }>('POST', `/triggers/${id}`, body, { headers });
    const hmac = (body: string, secret = made.secret): string =>
        `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    const signed = (body: string, seconds = Math.floor(Date.now() / 1000), id = `msg_${seconds}`) => ({
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': `v1,bm9wZQ== v1,${createHmac(
            'sha256',
            Buffer.from(made.secret.slice(6), 'base64')
        )
            .update(`${id}.${seconds}.${body}`)
            .digest('base64')}`
    });

    it('shows its secret once, and is there for those who may write', async () => {
        expect(made.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
        expect(made.url).to.equal(`/api/plugins/cronjob/triggers/${made.id}`);
        const { data, text } = await cron.ask('GET', `/tasks/${task}/triggers`);
        expect(data).to.have.length(1);
        expect(data[0]).to.include({ id: made.id, name: 'CI', lastUsedAt: null });
        expect(text).to.not.contain('whsec_');
        expect(
            (await cron.ask('GET', `/tasks/${task}/triggers`, undefined, { as: 'operator' })).status
        ).to.equal(403);
        expect(
            (await cron.ask('POST', `/tasks/${task}/triggers`, { name: 'x' }, { as: 'tired' })).code
        ).to.equal(40301);
        expect(JSON.stringify(cron.host.audit)).to.not.contain('whsec_');
    });

    it('takes the four proofs, and parameters', async () => {
        const body = { parameters: { BRANCH: 'next' } };
        const text = JSON.stringify(body);
        const answers = [
            await call(made.id, { 'x-trigger-token': made.secret }),
            await call(made.id, { 'x-gitlab-token': made.secret }, body),
            await call(made.id, { 'x-hub-signature-256': hmac(text) }, body),
            await call(made.id, signed(text), body)
        ];
        const outputs: string[] = [];
        for (const { status, code, data } of answers) {
            expect([status, code]).to.equal([202, 0]);
            const run = await cron.over(data.runId);
            expect(run).to.include({ trigger: 'token', by: 'CI', taskId: task });
            outputs.push(run.output);
        }
        expect(outputs).to.equal(['on main\n', 'on next\n', 'on next\n', 'on next\n']);
        expect((await cron.ask('GET', `/tasks/${task}/triggers`)).data[0].lastUsedAt).to.be.a.string();
        expect(
            (await call(made.id, { 'x-trigger-token': made.secret }, { parameters: { BRANCH: 'A' } })).code
        ).to.equal(40001);
        expect((await call(made.id, { 'x-trigger-token': made.secret }, [])).status).to.equal(202);
    });

    it('takes a signed delivery that comes again for the first', async () => {
        const headers = signed('{}', Math.floor(Date.now() / 1000), 'again');
        const [one, two] = [await call(made.id, headers, {}), await call(made.id, headers, {})];
        expect([two.status, two.data.runId]).to.equal([202, one.data.runId]);
    });

    it('answers a wrong proof and an unknown id alike', async () => {
        const text = '{}';
        const count = (await cron.runs(task)).length;
        const seconds = Math.floor(Date.now() / 1000);
        const wrong = [
            await call(made.id, {}),
            await call(made.id, { 'x-trigger-token': '' }),
            await call(made.id, { 'x-trigger-token': made.secret.slice(0, -1) }),
            await call(made.id, { 'x-gitlab-token': `${made.secret}x` }, {}),
            await call(made.id, { 'x-hub-signature-256': hmac('{ }') }, {}),
            await call(made.id, { 'x-hub-signature-256': hmac(text, 'whsec_') }, {}),
            await call(made.id, signed(text, seconds - 301), {}),
            await call(made.id, signed(text, seconds + 330), {}),
            await call(made.id, { ...signed(text), 'webhook-timestamp': 'now' }, {}),
            await call('0'.repeat(32), { 'x-trigger-token': made.secret }),
            await call('7', { 'x-trigger-token': made.secret })
        ];
        const answers = new Set(
            wrong.map(({ status, code, message }) => JSON.stringify([status, code, message]))
        );
        expect([...answers]).to.have.length(1);
        expect(wrong[0]).to.include({ status: 401, code: 40150 });
        // The secret is never in the address.
        const inAddress = await call(`${made.id}?token=${encodeURIComponent(made.secret)}`, {});
        expect(inAddress.code).to.equal(40001);
        expect(await cron.runs(task)).to.have.length(count);
    });

    it('takes so many calls in a minute, and no wrong one counts', async () => {
        const other = (await cron.ask('POST', `/tasks/${task}/triggers`, { name: 'other' })).data;
        const answers = [];
        for (let round = 0; round < 14; round += 1) {
            await call(other.id, { 'x-trigger-token': 'whsec_wrong' });
            answers.push(await call(other.id, { 'x-trigger-token': other.secret }));
        }
        expect(answers.filter(({ status }) => status === 202)).to.have.length(12);
        expect(answers.at(-1)).to.include({ status: 429, code: 42950 });
        expect(Number(answers.at(-1)?.headers.get('retry-after'))).to.be.between(0, 61);
    });

    it('is gone when it is removed, and with its task', async () => {
        expect((await cron.ask('DELETE', `/triggers/${made.id}`)).status).to.equal(200);
        expect((await cron.ask('DELETE', `/triggers/${made.id}`)).status).to.equal(404);
        expect((await call(made.id, { 'x-trigger-token': made.secret })).code).to.equal(40150);
        const [other] = (await cron.ask('GET', `/tasks/${task}/triggers`)).data;
        await cron.ask('DELETE', `/tasks/${task}`);
        expect((await cron.ask('DELETE', `/triggers/${other.id}`)).status).to.equal(404);
    });
});
