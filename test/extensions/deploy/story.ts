/**
 * One repository as an admin has it: pushed to, built, released and served; a bad release that never gets traffic; releases under load; pull requests,
 * one of them of a fork; and panel and engine gone in between.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { deliver, pullOf, pushOf, signed } from './forges/deliveries.ts';
import { git } from './support/git-server.ts';
import { Load } from './support/load.ts';
import { DeployProcessRig } from './support/process-rig.ts';
import { server, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 180_000;
const releases = 20;
const perSecond = 200;
/** Notes each request in a folder that all releases share. */
const note =
    'if (request.headers["x-number"]) require("node:fs").appendFileSync("/app/data/seen", request.headers["x-number"] + "\\n");';
let rig: DeployProcessRig;
let project: number;
let hook: { readonly url: string; readonly secret: string };

const send = ([event, body]: readonly [string, string]) =>
    deliver(
        `http://127.0.0.1:${rig.panel.port}${hook.url}`,
        body,
        signed('github', event, body, hook.secret)
    );

/** Commits a server, tells the panel of the push, and waits until its deployment is over. */
async function push(text: string, more = note) {
    const commit = rig.git.commit('shop', { 'server.js': server(text, more) }, text);
    const { status, data } = await send(pushOf('github', { commit }));
    expect(status).to.equal(202);
    return rig.over(data.deployment.id as number);
}

/** Opens or moves a pull request, whose head the git server has under the ref of GitHub. */
async function pull(number: number, text: string, fork: boolean) {
    const work = rig.git.work('shop');
    const commit = rig.git.commit('shop', { 'server.js': server(text) }, text, `feature-${number}`);
    git(work, 'push', '--quiet', '--force', 'origin', `HEAD:refs/pull/${number}/head`);
    git(work, 'push', '--quiet', 'origin', `:refs/heads/feature-${number}`);
    git(work, 'reset', '--quiet', '--hard', 'HEAD~1');
    const { data } = await send(pullOf('github', { number, commit, action: 'opened', fork }));
    return { commit, id: data.preview.id as number, state: data.preview.state as string };
}

const live = (id: number) =>
    until(async () => (await rig.get(`/previews/${id}`)).data.state === 'live', `preview ${id}`);
/** Configurations that the engine was given. */
const loads = async () => (await rig.client.get('/api/proxyengine/status')).data.loads as number;
const pids = async () =>
    (await rig.get(`/projects/${project}/processes`)).data.map(({ pid }: { pid: number }) => pid);

describe('A repository that is pushed to', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployProcessRig.start();
        rig.git.create('shop', {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('v0', note)
        });
        project = await rig.project({
            name: 'shop',
            source: { url: rig.git.url('shop') },
            host: { domain: 'shop.test' },
            run: { drainSeconds: 1, shared: ['data'] },
            health: { successes: 1, startSeconds: 5 },
            previews: { domain: 'pr-{number}.shop.test' }
        });
        hook = (await rig.post(`/projects/${project}/hook`)).data as typeof hook;
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real(`is served, and ${releases} releases lose no request of ${perSecond} a second`, async () => {
        const first = await push('v1');
        expect([first.state, first.trigger]).to.equal(['live', 'push']);
        expect((await rig.page('shop.test')).text).to.equal('v1');
        const before = await loads();
        const load = new Load(rig.httpPort, 'shop.test', perSecond);
        const bad = await push('bad', `${note} response.statusCode = 500;`);
        expect([bad.state, bad.reason]).to.equal(['failed', 'UNHEALTHY']);
        const second = await push('v2');
        expect(second.state).to.equal('live');
        for (let at = 2; at <= releases; at += 1) {
            const { data } = await rig.post(`/projects/${project}/rollback`, {
                deployment: at % 2 === 0 ? first.id : second.id
            });
            expect((await rig.over(data.id as number)).state).to.equal('live');
        }
        await load.stop();
        expect(load.failures).to.equal([]);
        expect([...load.seen.keys()].sort()).to.equal(['v1', 'v2']);
        const seen = readFileSync(join(rig.folder, `projects/${project}/shared/data/seen`), 'utf8');
        const numbers = seen.trim().split('\n');
        expect([numbers.length, new Set(numbers).size]).to.equal([load.sent, load.sent]);
        expect(await loads()).to.equal(before);
        console.log(
            `      ${load.sent} requests, ${load.rate.toFixed(0)} a second, in ${releases} switches: none lost, none twice, no reload`
        );
    });

    real('has previews, those of forks by approval, and is found again after the machine', async () => {
        const own = await pull(1, 'own', false);
        await live(own.id);
        const fork = await pull(2, 'fork', true);
        expect(fork.state).to.equal('awaiting-approval');
        const served = (await rig.page('shop.test')).text;
        const running = await pids();

        await rig.killAll();

        await until(async () => (await rig.page('shop.test').catch(() => null))?.text === served);
        expect(await pids()).to.equal(running);
        expect((await rig.get(`/projects/${project}`)).data).to.include({ state: 'live', hook: true });
        expect((await rig.page('pr-1.shop.test')).text).to.equal('own');
        expect((await rig.get(`/previews/${own.id}`)).data.state).to.equal('live');
        expect((await rig.get(`/previews/${fork.id}`)).data.state).to.equal('awaiting-approval');
        expect((await rig.page('pr-2.shop.test')).text).to.not.equal('fork');
        const other = await rig.post(`/previews/${fork.id}/approve`, { commit: own.commit });
        expect(other.code).to.equal(40952);
        await rig.post(`/previews/${fork.id}/approve`, { commit: fork.commit });
        await live(fork.id);
        expect((await rig.page('pr-2.shop.test')).text).to.equal('fork');
        expect((await push('v3')).state).to.equal('live');
        expect((await rig.page('shop.test')).text).to.equal('v3');
        const { data: all } = await rig.get(`/projects/${project}/deployments?limit=100`);
        expect(all.length).to.equal(releases + 3);
    });
});
