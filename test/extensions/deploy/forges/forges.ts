import { createHmac, generateKeyPairSync, randomUUID, verify } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ended } from '../../../support/plugins/panel.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { Forge } from '../support/forge.ts';
import { git } from '../support/git-server.ts';
import { DeployRig, server, withoutSandbox } from '../support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 120_000;
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
const secret = 'only for production';
let rig: DeployRig;
let forge: Forge;
let connection: number;
let project: number;
let hook: { readonly url: string; readonly secret: string };

/** Sends what GitHub sends of a pull request. */
async function pull(
    number: number,
    commit: string,
    { action = 'synchronize', fork = false, target = 'main' } = {}
) {
    const body = JSON.stringify({
        ...{ action, number, sent: randomUUID() },
        pull_request: {
            head: { ref: 'feature', sha: commit, repo: { id: fork ? 8 : 7 } },
            base: { ref: target, repo: { id: 7 } }
        }
    });
    const answer = await fetch(`http://127.0.0.1:${rig.panel.port}${hook.url}`, {
        method: 'POST',
        headers: {
            'content-type': 'application/json',
            'x-github-event': 'pull_request',
            'x-github-delivery': randomUUID(),
            'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(body).digest('hex')}`
        },
        body
    });
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the test looks into it field by field
    return ((await answer.json()) as { data: any }).data;
}

/** Commits on a branch, and gives it the ref that GitHub gives the head of a pull request. */
function head(number: number, text: string): string {
    const work = rig.git.work('acme/shop');
    git(work, 'checkout', '--quiet', '-B', 'feature', 'main');
    const commit = rig.git.commit('acme/shop', { 'server.js': server(text) }, text, `feature-${number}`);
    git(work, 'push', '--quiet', '--force', 'origin', `HEAD:refs/pull/${number}/head`);
    git(work, 'push', '--quiet', 'origin', `:refs/heads/feature-${number}`);
    git(work, 'checkout', '--quiet', '--force', 'main');
    return commit;
}

const preview = async (id: number) => (await rig.get(`/previews/${id}`)).data;
const becomes = (id: number, state: string) =>
    until(async () => {
        const found = await preview(id);
        if (found.state === 'failed' && state !== 'failed') {
            throw new Error(await rig.log(found.deploymentId as number));
        }
        return found.state === state ? found : null;
    }, `preview ${id} to become ${state}`);

describe('A forge', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployRig.start();
        forge = new Forge();
        await forge.start();
        rig.git.create('acme/shop', {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('main')
        });
        rig.git.passwords.set('acme/shop', `x-access-token:${forge.token}`);
        const made = await rig.post('/connections', {
            ...{ name: 'app', kind: 'github-app', host: `127.0.0.1:${rig.git.port}` },
            ...{ appId: '7', installationId: '42', privateKey: pem, apiUrl: forge.url }
        });
        expect(made.status, made.text).to.equal(201);
        connection = made.data.id as number;
        project = await rig.project({
            name: 'shop',
            source: { url: rig.git.url('acme/shop'), connection },
            host: { domain: 'shop.test' },
            health: { successes: 1 },
            run: { drainSeconds: 1, shared: ['data'] },
            previews: { domain: 'pr-{number}.shop.test', max: 2 }
        });
        hook = (await rig.post(`/projects/${project}/hook`)).data as typeof hook;
        await rig.put(`/projects/${project}/env`, {
            vars: [
                { name: 'SECRET', value: secret, secret: true },
                { name: 'LIVE_ONLY', value: 'live', preview: false },
                { name: 'OPEN', value: 'open' }
            ]
        });
    });

    after({ timeout: limitMs }, async () => {
        await forge?.close();
        await rig?.close();
    });

    real('gives an app its token, for which the app signs, and opens repositories by it', async () => {
        await rig.serve(project);
        expect(await rig.page('shop.test')).to.equal({ status: 200, text: 'main' });
        const asked = forge.asked.find(({ path }) => path === '/app/installations/42/access_tokens');
        const [head_ = '', claims = '', signature = ''] = (asked?.authorization ?? '')
            .replace('Bearer ', '')
            .split('.');
        const signed = Buffer.from(`${head_}.${claims}`);
        expect(verify('RSA-SHA256', signed, publicKey, Buffer.from(signature, 'base64url'))).to.be.true();
        expect(JSON.parse(Buffer.from(claims, 'base64url').toString()).iss).to.equal('7');
        forge.repositories.push({
            ...{ full_name: 'acme/shop', clone_url: 'https://git.example/acme/shop.git' },
            ...{ default_branch: 'main', private: true }
        });
        const listed = await rig.get(`/connections/${connection}/repositories?q=SHOP`);
        expect(listed.data).to.equal([
            {
                ...{ name: 'acme/shop', url: 'https://git.example/acme/shop.git' },
                ...{ branch: 'main', isPrivate: true }
            }
        ]);
        expect((await rig.get(`/connections/${connection}/repositories?q=other`)).data).to.equal([]);
        expect(rig.panel.lines.join('\n')).to.not.contain(forge.token);
    });

    real('holds a commit back until its required checks are good, and fails it when one is not', async () => {
        await rig.put(`/projects/${project}`, { triggers: { requiredChecks: ['tests'] } });
        forge.checks.set('tests', null).set('lint', 'failure');
        const begun = await rig.begin(project);
        await until(async () => forge.asked.some(({ path }) => path.endsWith('/check-runs')));
        expect((await rig.get(`/deployments/${begun.id}`)).data.state).to.equal('building');
        forge.checks.set('tests', 'success');
        expect((await rig.over(begun.id)).state).to.equal('live');
        expect(await rig.log(begun.id)).to.contain('Waiting for the checks tests');
        forge.checks.set('tests', 'failure');
        const failed = await rig.deploy(project);
        expect([failed.state, failed.reason]).to.equal(['failed', 'CHECKS_FAILED']);
        const none = await rig.post('/projects', {
            name: 'unknown',
            source: { url: 'https://git.example/a/b' },
            triggers: { requiredChecks: ['tests'] }
        });
        expect(none.code).to.equal(40001);
        await rig.put(`/projects/${project}`, { triggers: {} });
    });

    real('is asked for new commits by projects that poll, and each is deployed once', async () => {
        rig.git.create('polled', { 'index.html': 'one' });
        const id = await rig.project({
            name: 'polled',
            source: { url: rig.git.url('polled') },
            host: { domain: 'polled.test' },
            triggers: { pollSeconds: 60 }
        });
        const deployments = async () => (await rig.get(`/projects/${id}/deployments`)).data;
        const [first] = await until(async () => {
            const all = await deployments();
            return all[0]?.finishedAt == null ? null : all;
        }, 'the poll to find the first commit');
        expect([first.trigger, first.state]).to.equal(['poll', 'live']);
        expect((await rig.page('polled.test')).text).to.equal('one');
        expect((await deployments()).length).to.equal(1);
    });

    real(
        'previews a pull request of the repository at once, with one comment, until it is closed',
        async () => {
            const commit = head(1, 'feature one');
            const { preview: begun } = await pull(1, commit, { action: 'opened' });
            expect(begun).to.include({ number: 1, fork: false, commit, domain: 'pr-1.shop.test' });
            await becomes(begun.id, 'live');
            expect((await rig.page('pr-1.shop.test')).text).to.equal('feature one');
            expect((await rig.page('shop.test')).text).to.equal('main');
            await until(async () => forge.comments.get(1)?.includes('serves'), 'the comment');
            expect(forge.comments.get(1))
                .to.contain(`\`${commit}\``)
                .and.to.contain('http://pr-1.shop.test/');
            const second = head(1, 'feature two');
            await pull(1, second);
            await until(
                async () => (await rig.page('pr-1.shop.test')).text === 'feature two',
                'the new head'
            );
            await until(async () => forge.comments.get(1)?.includes(second), 'the comment');
            expect(forge.comments.size).to.equal(1);
            // What stands for a preview is no project that can be called.
            const { data: deployment } = await rig.get(
                `/deployments/${(await preview(begun.id)).deploymentId}`
            );
            const child = deployment.projectId as number;
            expect(deployment.trigger).to.equal('preview');
            expect((await rig.post(`/projects/${child}/deployments`, { branch: 'main' })).status).to.equal(
                404
            );
            expect(
                (await rig.get('/projects')).data.map(({ name }: { name: string }) => name)
            ).to.not.include('shop#1');
            expect((await pull(1, second, { action: 'closed' })).preview.state).to.equal('closed');
            expect((await rig.page('pr-1.shop.test')).text).to.not.equal('feature two');
            expect(existsSync(join(rig.folder, `projects/${child}`))).to.be.false();
            expect(await pull(3, second, { target: 'other' })).to.equal({ ignored: 'branch' });
        }
    );

    real(
        'builds code of a fork when exactly its commit is approved, without secrets and shared folders',
        async () => {
            const commit = head(2, 'from a fork');
            const { preview: waiting } = await pull(2, commit, { action: 'opened', fork: true });
            expect(waiting).to.include({
                state: 'awaiting-approval',
                deploymentId: null,
                approvedCommit: null
            });
            expect(forge.comments.get(2)).to.contain('waits until an admin approves');
            const approve = (of: string) => rig.post(`/previews/${waiting.id}/approve`, { commit: of });
            expect((await approve('a'.repeat(40))).code).to.equal(40952);
            expect((await rig.page('pr-2.shop.test')).text).to.not.equal('from a fork');
            expect((await approve(commit)).data.approvedCommit).to.equal(commit);
            const live = await becomes(waiting.id, 'live');
            expect((await rig.page('pr-2.shop.test')).text).to.equal('from a fork');
            const { data: deployment } = await rig.get(`/deployments/${live.deploymentId}`);
            const { data: processes } = await rig.get(`/projects/${deployment.projectId}/processes`);
            const environment = readFileSync(`/proc/${processes[0].pid}/environ`, 'utf8');
            expect(environment).to.contain('OPEN=open').and.to.not.contain(secret);
            expect(environment).to.not.contain('LIVE_ONLY');
            expect(
                readdirSync(join(rig.folder, `projects/${deployment.projectId}/shared`)),
                'shared folders'
            ).to.equal([]);

            // A new head takes the host down first, and waits again.
            const next = head(2, 'another text');
            expect((await pull(2, next, { fork: true })).preview).to.include({
                ...{ state: 'awaiting-approval', commit: next, approvedCommit: null, deploymentId: null }
            });
            expect((await rig.page('pr-2.shop.test')).text).to.not.equal('from a fork');
            expect((await approve(commit)).code).to.equal(40952);
            await approve(next);
            await becomes(waiting.id, 'live');
            expect((await rig.post(`/previews/${waiting.id}/revoke`)).data.state).to.equal(
                'awaiting-approval'
            );
            expect((await rig.page('pr-2.shop.test')).text).to.not.equal('another text');
            await rig.put(`/projects/${project}`, {
                previews: { domain: 'pr-{number}.shop.test', forks: 'never' }
            });
            expect(await pull(4, next, { action: 'opened', fork: true })).to.equal({ ignored: 'disabled' });
        }
    );

    real('has crons run in the release that serves, by hand and by time', async () => {
        const bad = await rig.post(`/projects/${project}/crons`, {
            ...{ name: 'bad', schedule: 'never', command: ['true'] }
        });
        expect(bad.code).to.equal(40001);
        const made = await rig.post(`/projects/${project}/crons`, {
            ...{ name: 'tick', schedule: '* * * * * *', timezone: 'Europe/Berlin' },
            command: ['sh', '-c', 'echo $OPEN $DEPLOY_PROJECT $(id -u); exit 4']
        });
        expect(made.status, made.text).to.equal(201);
        const run = await until(
            async () => (await rig.get(`/projects/${project}/crons`)).data[0].lastRun,
            'the cron to run by its time'
        );
        expect(run).to.include({ exitCode: 4 });
        expect(run.output)
            .to.match(/^open shop \d+\n$/)
            .and.to.not.contain(' 0\n');
        await rig.put(`/crons/${made.data.id}`, { enabled: false, command: ['sh', '-c', 'echo by hand'] });
        const task = await ended(rig.client, await rig.post(`/crons/${made.data.id}/run`));
        expect(task.result).to.include({ exitCode: 0, output: 'by hand\n' });
    });
});
