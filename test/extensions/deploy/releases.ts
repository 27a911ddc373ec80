import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser, noBrowser, openPage, startBrowser } from '../../support/browser.ts';
import { pluginModule } from '../../support/plugins/folder.ts';
import { pluginPackage } from '../../support/registry/packages.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { enter, finish, isSound, visit } from '../webui/rig.ts';
import { DeployRig, server, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);
const inBrowser = itInBrowser(it, noBrowser ?? withoutSandbox);

const limitMs = 120_000;
let rig: DeployRig;

const packageOf = (start: string): string => JSON.stringify({ name: 'app', scripts: { start } });
type Program = { readonly name: string; readonly instance: number };
const quick = { run: { drainSeconds: 1 }, health: { successes: 1 } };

/** Writes a plugin that keeps what it is told of releases, and what people are. */
function writeListener(plugins: string): void {
    const folder = join(plugins, 'listener');
    mkdirSync(folder);
    const manifest = pluginPackage('listener', '1.0.0', {
        portico: { name: 'listener', sdk: '^1.0.0', permissions: { read: 'Read' } }
    });
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    const setup = `
const told = { released: [], notices: [] };
ctx.hooks.tap('deploy.released', (release) => void told.released.push(release));
ctx.hooks.tap('notification.raised', ({ data }) => void told.notices.push(data.title));
ctx.route({ method: 'GET', path: '/told', id: 'told', access: 'read', summary: 'Told', returns: joi.any(), handler: () => told });`;
    writeFileSync(join(folder, 'index.js'), pluginModule(setup));
}

const told = async (): Promise<{
    readonly released: readonly object[];
    readonly notices: readonly string[];
}> => (await rig.client.get('/api/plugins/listener/told')).data;

describe('A project', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start({}, ['webui'], writeListener);
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('serves files of a commit, then of the next one, then of the first one again', async () => {
        rig.git.create('site', { 'index.html': 'one', 'deep/page.html': 'deep' });
        const id = await rig.project({
            name: 'site',
            source: { url: rig.git.url('site') },
            host: { domain: 'site.test' },
            ...quick
        });
        expect((await rig.get(`/projects/${id}`)).data).to.include({
            state: 'empty',
            runtime: null,
            live: null
        });
        const first = await rig.serve(id);
        expect(first).to.include({ number: 1, message: 'First', kept: true });
        // Other plugins and people are told.
        const { commit } = first;
        await until(async () => (await told()).released.length === 1, 'the hook');
        expect((await told()).released).to.equal([
            {
                ...{ projectId: id, project: 'site', deploymentId: first.id, number: 1, trigger: 'manual' },
                ...{ commit, domain: 'site.test' }
            }
        ]);
        await until(async () => (await told()).notices.includes('site: deployment 1 serves'), 'the notice');
        expect(await rig.page('site.test')).to.equal({ status: 200, text: 'one' });
        expect((await rig.page('site.test', '/deep/page.html')).text).to.equal('deep');

        rig.git.commit('site', { 'index.html': 'two' });
        // Only the repository tells that it is one of files.
        await rig.put(`/projects/${id}`, { canary: { weight: 50, seconds: 600 } });
        const second = await rig.serve(id);
        expect(await rig.log(second.id)).to.contain('There is no canary');
        expect((await rig.page('site.test')).text).to.equal('two');
        expect((await rig.get(`/deployments/${first.id}`)).data.state).to.equal('retired');

        const back = await rig.post(`/projects/${id}/rollback`);
        expect([back.status, back.data.trigger]).to.equal([202, 'rollback']);
        const third = await rig.over(back.data.id as number);
        expect(third).to.include({ state: 'live', commit: first.commit });
        expect(third.steps.find(({ name }) => name === 'build')?.state).to.equal('skipped');
        expect((await rig.page('site.test')).text).to.equal('one');
        expect(third.artifact).to.equal(first.artifact);
        const numbers = async (query: string): Promise<readonly number[]> =>
            (await rig.get(`/projects/${id}/deployments?${query}`)).data.map(
                ({ number }: { number: number }) => number
            );
        expect([await numbers('state=retired'), await numbers('trigger=rollback')]).to.equal([[2, 1], [3]]);
        expect((await rig.get(`/projects/${id}`)).data).to.include({
            state: 'live',
            runtime: 'static',
            live: third.id
        });
        expect((await rig.delete(`/deployments/${third.id}`)).code).to.equal(40901);
        expect((await rig.delete(`/deployments/${second.id}`)).status).to.equal(200);
        expect(readdirSync(join(rig.folder, `projects/${id}/releases`))).to.equal(['1']);
        expect((await rig.delete(`/deployments/${second.id}`)).code).to.equal(40951);
    });

    real('builds a program, runs it as the account in a sandbox, and switches to the next one', async () => {
        rig.git.create('app', {
            'package.json': JSON.stringify({
                name: 'app',
                scripts: {
                    start: 'node server.js',
                    build: "node -e \"const fs = require('fs'); fs.writeFileSync('built', process.env.CI); fs.writeFileSync(process.env.HOME + '/kept', 'x'.repeat(5000))\""
                }
            }),
            // It never closes a connection that waits for the next request.
            'server.js': `${server('v1')}server.keepAliveTimeout = 0;`
        });
        const id = await rig.project({
            name: 'app',
            source: { url: rig.git.url('app') },
            host: { domain: 'app.test' },
            ...quick,
            run: {
                drainSeconds: 60,
                shared: ['data'],
                workers: [{ name: 'worker', command: ['sleep', '1000'], instances: 2 }],
                limits: { memoryBytes: 512 * 2 ** 20 }
            },
            health: { successes: 1, contains: 'v' }
        });
        await rig.serve(id);
        expect(await rig.page('app.test')).to.equal({ status: 200, text: 'v1' });
        const { data: programs } = await rig.get(`/projects/${id}/processes`);
        expect(programs.map(({ name, instance }: Program) => `${name} ${instance}`)).to.equal([
            'web 0',
            'worker 0',
            'worker 1'
        ]);
        const [web] = programs;
        const logs = async (query: string): Promise<string> =>
            (await rig.get(`/projects/${id}/logs?follow=false${query}`)).text;
        await until(async () => (await logs('&process=web')).includes('"text":"listening"'), 'the log');
        expect(await logs('&process=worker')).to.not.contain('listening');
        expect(web).to.include({ name: 'web', instance: 0, state: 'running', restarts: 0 });
        const release = join(rig.folder, `projects/${id}/releases/1`);
        expect(readFileSync(join(release, 'built'), 'utf8')).to.equal('true');

        rig.git.commit('app', { 'server.js': server('v2') });
        const second = await rig.serve(id);
        expect((await rig.page('app.test')).text).to.equal('v2');
        // The engine let go of the old release by itself.
        const drain = second.steps.find(({ name }) => name === 'drain');
        expect(drain?.seconds ?? 60).to.be.below(30);
        const { text: archive } = await rig.get(`/deployments/${second.id}/artifact`);
        expect(archive).to.contain('server.js').and.to.contain('v2');
        expect(second.artifact?.sha256).to.equal(createHash('sha256').update(archive).digest('hex'));
        const [next] = (await rig.get(`/projects/${id}/processes`)).data;
        expect(next.port).to.not.equal(web.port);
        expect(existsSync(`/proc/${web.pid}`)).to.be.false();

        rig.git.commit('app', { 'server.js': 'process.exit(3)' });
        const broken = await rig.deploy(id);
        expect([broken.state, broken.reason]).to.equal(['failed', 'START_FAILED']);
        expect((await rig.page('app.test')).text).to.equal('v2');
        expect(existsSync(join(rig.folder, `projects/${id}/releases/3`))).to.be.false();
        expect((await rig.get(`/deployments/${broken.id}/artifact`)).code).to.equal(40951);

        // Stopped, its host is off; started, the same release serves at the same port.
        const program = async () => (await rig.get(`/projects/${id}/processes`)).data[0];
        expect((await rig.post(`/projects/${id}/stop`)).data.state).to.equal('stopped');
        expect(existsSync(`/proc/${next.pid}`)).to.be.false();
        expect(await program()).to.include({ state: 'stopped', pid: null });
        expect((await rig.page('app.test')).text).to.not.equal('v2');
        expect((await rig.post(`/projects/${id}/start`)).data.state).to.equal('live');
        await until(async () => (await rig.page('app.test')).text === 'v2', 'the page after the start');
        const { pid, port } = await program();
        expect([port, pid === next.pid]).to.equal([next.port, false]);
        expect((await rig.post(`/projects/${id}/restart`)).data).to.include({
            state: 'live',
            live: second.id
        });
        await until(async () => (await rig.page('app.test')).text === 'v2', 'the page after the restart');
        expect((await program()).pid).to.not.equal(pid);
        expect((await rig.post(`/projects/${id}/processes/none/restart`)).code).to.equal(40400);

        const { data: frameworks } = await rig.get('/frameworks');
        expect(frameworks.map((each: { id: string }) => each.id)).to.include(['node', 'next', 'django']);
        const { bytes } = (await rig.get(`/projects/${id}/cache`)).data;
        expect(bytes > 0).to.be.true();
        expect((await rig.delete(`/projects/${id}/cache`)).status).to.equal(200);
        expect((await rig.get(`/projects/${id}/cache`)).data).to.equal({ bytes: 0 });
        expect((await rig.get('/queue')).data).to.equal({ running: [], waiting: [] });
        // A cache that is larger than the setting says is emptied after the build.
        await rig.client.put('/api/plugins/deploy', { settings: { cacheBytes: 4_000 } });
        rig.git.commit('app', { 'server.js': server('v3') });
        await rig.serve(id);
        expect((await rig.get(`/projects/${id}/cache`)).data).to.equal({ bytes: 0 });
        await rig.client.put('/api/plugins/deploy', { settings: { cacheBytes: 2 ** 30 } });

        const shared = join(rig.folder, `projects/${id}/shared/data`);
        writeFileSync(join(shared, 'mine'), 'x');
        const removed = await rig.delete(`/projects/${id}?keepFiles=true`);
        expect(removed.status).to.equal(202);
        await until(async () => (await rig.get(`/projects/${id}`)).status === 404);
        expect(readdirSync(shared)).to.equal(['mine']);
        const folders = readdirSync(join(rig.folder, `projects/${id}`));
        expect(folders.filter((name) => ['releases', 'artifacts', 'git', 'cache'].includes(name))).to.equal(
            []
        );
        const { data: plugin } = await rig.client.get('/api/plugins/deploy');
        expect(plugin.services.filter(({ name }: { name: string }) => name.startsWith(`p${id}-`))).to.equal(
            []
        );
    });

    real('fails with the reason, and leaves nothing behind', async () => {
        rig.git.create('bad', {
            'package.json': packageOf('node server.js'),
            'server.js': server('x', 'response.statusCode = 500;')
        });
        const id = await rig.project({
            name: 'bad',
            source: { url: rig.git.url('bad') },
            host: { domain: 'bad.test' },
            health: { startSeconds: 2 }
        });
        const sick = await rig.deploy(id);
        expect([sick.state, sick.reason]).to.equal(['failed', 'UNHEALTHY']);
        expect(await rig.log(sick.id)).to.contain('It answered 500');
        await until(async () => (await told()).notices.includes('bad: deployment 1 failed'), 'the notice');
        await rig.put(`/projects/${id}`, { health: { expectStatus: 500, contains: 'y', startSeconds: 1 } });
        const other = await rig.deploy(id);
        expect([other.state, other.reason]).to.equal(['failed', 'UNHEALTHY']);
        expect(await rig.log(other.id)).to.contain('does not contain the text');
        await rig.put(`/projects/${id}`, {
            build: { kind: 'static', commands: [['sh', '-c', 'echo out; exit 7']] }
        });
        const unbuilt = await rig.deploy(id);
        expect([unbuilt.state, unbuilt.reason]).to.equal(['failed', 'BUILD_FAILED']);
        expect(await rig.log(unbuilt.id)).to.contain('ended with 7');
        await rig.put(`/projects/${id}`, {
            build: { kind: 'static', commands: [['sleep', '60']], timeoutSeconds: 10 }
        });
        const begun = await rig.begin(id);
        await until(
            async () => (await rig.get(`/deployments/${begun.id}`)).data.steps[2].state === 'running'
        );
        const [waiting, newest] = [await rig.begin(id), await rig.begin(id)];
        expect((await rig.get(`/deployments/${waiting.id}`)).data.state).to.equal('superseded');
        expect((await rig.delete(`/projects/${id}/cache`)).code).to.equal(40950);
        // The queue is as long as the setting says; the newest of a project that waits is no further one.
        await rig.client.put('/api/plugins/deploy', { settings: { queue: 1, concurrentBuilds: 1 } });
        const another = await rig.project({ name: 'other', source: { url: rig.git.url('bad') } });
        const full = await rig.post(`/projects/${another}/deployments`);
        expect([full.status, full.code]).to.equal([429, 42950]);
        expect((await rig.get(`/projects/${another}/deployments`)).data).to.equal([]);
        await rig.client.put('/api/plugins/deploy', { settings: { queue: 100, concurrentBuilds: 2 } });
        expect((await rig.post(`/deployments/${begun.id}/cancel`)).data).to.include({
            state: 'cancelled',
            reason: 'CANCELLED'
        });
        const late = await rig.over(newest.id);
        expect([late.state, late.reason]).to.equal(['failed', 'BUILD_TIMEOUT']);
        expect((await rig.deploy(id, { branch: 'none' })).reason).to.equal('FETCH_FAILED');
        expect((await rig.client.get('/api/hosts?q=bad.test')).data).to.equal([]);
        expect(readdirSync(join(rig.folder, `projects/${id}/releases`))).to.equal([]);
        expect(readdirSync(join(rig.folder, `projects/${id}/builds`))).to.equal([]);
        expect(readdirSync(join(rig.folder, `projects/${id}/artifacts`))).to.equal([]);
    });

    inBrowser('shows on its page what serves, deploys, and goes back to what served before', async () => {
        const { data: projects } = await rig.get('/projects');
        const { id } = projects.find(({ name }: { name: string }) => name === 'site');
        const browser = await startBrowser();
        try {
            const watched = await openPage(browser, rig.panel.port);
            const { page } = watched;
            await enter(page, rig.client);
            await visit(page, `/deploy/${id}`);
            const releases = page.getByRole('list', { name: 'Releases' });
            const release = (number: number) =>
                releases.getByRole('article').filter({ hasText: `#${number}` });
            const isLive = (number: number): Promise<void> =>
                release(number).locator('.badge.good', { hasText: 'live' }).waitFor();
            await isLive(3);
            rig.git.commit('site', { 'index.html': 'three' });
            await page.getByRole('button', { name: 'Deploy', exact: true }).click();
            await isLive(4);
            expect((await rig.page('site.test')).text).to.equal('three');
            await release(4).getByRole('list', { name: 'Steps' }).waitFor();
            await isSound(page, 'a release that serves');
            await release(3).getByRole('button', { name: 'Go back to it …' }).click();
            await page.getByRole('dialog').getByRole('button', { name: 'Go back to it' }).click();
            await isLive(5);
            expect((await rig.page('site.test')).text).to.equal('one');
            await release(4).getByText('retired').waitFor();
            await finish(watched);
        } finally {
            await browser.close();
        }
    });

    real('whose host cannot be made fails there, and leaves nothing but what was there', async () => {
        rig.git.create('taken', { 'package.json': packageOf('node server.js'), 'server.js': server('mine') });
        const id = await rig.project({
            name: 'taken',
            source: { url: rig.git.url('taken') },
            host: { domain: 'taken.test' },
            ...quick
        });
        const host = await rig.client.post('/api/hosts', {
            domain: 'taken.test',
            type: 'redirect',
            redirect: { to: 'https://example.com' }
        });
        expect(host.status, host.text).to.equal(201);
        const failed = await rig.deploy(id);
        expect([failed.state, failed.reason]).to.equal(['failed', 'SWITCH_FAILED']);
        expect((await rig.get(`/projects/${id}`)).data).to.include({
            state: 'empty',
            live: null,
            hostId: null
        });
        expect((await rig.page('taken.test')).status).to.be.between(300, 400);
        const { data: plugin } = await rig.client.get('/api/plugins/deploy');
        expect(plugin.services.filter(({ name }: { name: string }) => name.startsWith(`p${id}-`))).to.equal(
            []
        );
        expect(readdirSync(join(rig.folder, `projects/${id}/releases`))).to.equal([]);
        await rig.client.delete(`/api/hosts/${host.data.id}`);
        await rig.serve(id);
        expect((await rig.page('taken.test')).text).to.equal('mine');
    });
});
