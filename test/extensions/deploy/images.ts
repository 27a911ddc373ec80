/** Images and compose files of repositories on a real dockerd and a real Podman: panel, engine and containers live in the network namespace of that one. */
import { existsSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../support/until.ts';
import { image } from '../container/engines.ts';
import { describeWithEngines } from '../container/support/on-engines.ts';
import { Load } from './support/load.ts';
import { DeployProcessRig } from './support/process-rig.ts';
import { withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();

const http = 'exec busybox httpd -f -p 0.0.0.0:$PORT -h /www';
const dockerfile = `FROM ${image}
ARG GREETING
RUN mkdir -p /www && echo "$GREETING" > /www/greeting
COPY . /www/
EXPOSE 8000
CMD ["sh", "-c", "${http}"]
`;
const quick = { health: { successes: 1, startSeconds: 60 } };

const page = async (rig: DeployProcessRig, domain: string, path = '/'): Promise<string> =>
    (await rig.page(domain, path)).text.trim();
const images = async (rig: DeployProcessRig): Promise<readonly string[]> =>
    ((await rig.engine.ask('GET', '/images/json')).data as { RepoTags: string[] | null }[])
        .flatMap(({ RepoTags: tags }) => tags ?? [])
        // Podman names the registry, too.
        .map((tag) => tag.replace(/^docker\.io\//, ''))
        .filter((tag) => tag.startsWith('portico-deploy/'))
        .sort();
const isChecked = async (rig: DeployProcessRig, id: number): Promise<void> => {
    const found = await until(
        async () => {
            const { steps, reason, finishedAt } = (await rig.get(`/deployments/${id}`)).data;
            const { state } = steps[6];
            return state === 'waiting' && finishedAt === null ? null : [state, reason];
        },
        'the check',
        120_000
    );
    expect(found).to.equal(['running', null]);
};
const change = async (rig: DeployProcessRig, id: number, body: object): Promise<void> => {
    const { status, text } = await rig.put(`/projects/${id}`, body);
    expect(status, text).to.equal(200);
};
const rigs = { start: DeployProcessRig.start, lacks: withoutSandbox, limitMs: 420_000 };

describeWithEngines(
    lab,
    'A repository with a Dockerfile',
    (real) => {
        real(
            'is built, released beside the one before, checked, rolled back, and found again',
            async (rig) => {
                const tree = {
                    Dockerfile: dockerfile,
                    'index.html': 'one',
                    '.dockerignore': '*.txt\n',
                    'note.txt': 'x'
                };
                rig.git.create('app', tree);
                const id = await rig.project({
                    name: 'app',
                    source: { url: rig.git.url('app') },
                    build: { kind: 'dockerfile' },
                    host: { domain: 'app.test' },
                    run: {
                        drainSeconds: 1,
                        stopSeconds: 1,
                        workers: [{ name: 'worker', command: ['sh', '-c', 'echo at work; exec sleep 1000'] }]
                    },
                    hooks: {
                        pre: [['sh', '-c', 'echo before $SAID']],
                        post: [['sh', '-c', 'echo after; test -f /www/greeting']]
                    },
                    ...quick
                });
                const greeting = 'costs $5 "a" \\ day';
                const vars = [
                    { name: 'GREETING', value: greeting },
                    { name: 'SAID', value: 'a secret word', secret: true, build: false }
                ];
                await rig.put(`/projects/${id}/env`, { vars });
                const first = await rig.serve(id);
                expect(await page(rig, 'app.test')).to.equal('one');
                expect(await page(rig, 'app.test', '/greeting')).to.equal(greeting);
                expect((await rig.page('app.test', '/note.txt')).status).to.equal(404);
                const log = await rig.log(first.id);
                expect(log).to.match(/Step 1\/\d+ ?: FROM/i);
                expect(log).to.contain('after').and.to.not.contain('a secret word');
                expect((await rig.get(`/projects/${id}`)).data).to.include({
                    state: 'live',
                    runtime: 'container'
                });
                const { data: processes } = await rig.get(`/projects/${id}/processes`);
                expect(
                    processes.map(({ name, state }: { name: string; state: string }) => [name, state])
                ).to.equal([
                    ['web', 'running'],
                    ['worker', 'running']
                ]);
                expect(await rig.engine.names()).to.equal(
                    ['pre_0', 'web', 'worker'].map((name) => `deploy-p${id}-1-${name}-1`)
                );
                const ran = await rig.post(`/projects/${id}/exec`, {
                    command: ['sh', '-c', 'echo $PORT $DEPLOY_NUMBER; exit 3']
                });
                expect(ran.data).to.include({ exitCode: 3, stdout: '8000 1\n' });
                const lines = await rig.get(`/projects/${id}/logs?process=worker&follow=false`);
                expect(lines.text).to.contain('at work');

                rig.git.commit('app', { 'index.html': 'two' });
                const load = new Load(rig.httpPort, 'app.test', 20, 'GET');
                const second = await rig.serve(id);
                expect(await page(rig, 'app.test')).to.equal('two');
                await load.stop();
                expect([load.failures, [...load.seen.keys()].sort()]).to.equal([[], ['one', 'two']]);
                expect(
                    (await rig.engine.names()).every((name) => name.startsWith(`deploy-p${id}-2-`))
                ).to.be.true();
                const envelope = (await rig.get(`/deployments/${second.id}/provenance`)).data;
                const statement = JSON.parse(Buffer.from(envelope.payload as string, 'base64').toString());
                const built = (await rig.engine.ask('GET', `/images/portico-deploy/p${id}-web:2/json`)).data
                    .Id as string;
                expect(
                    statement.subject.map(({ digest }: { digest: { sha256: string } }) => digest.sha256)
                ).to.equal([second.artifact?.sha256, built.replace('sha256:', '')]);

                // What is not healthy, or does not start, gets no request and leaves nothing.
                rig.git.commit('app', {
                    Dockerfile: `${dockerfile}CMD ["sh", "-c", "echo no way; exit 4"]\n`
                });
                const ended = await rig.deploy(id);
                expect([ended.state, ended.reason]).to.equal(['failed', 'START_FAILED']);
                expect(await rig.log(ended.id)).to.contain('no way');
                rig.git.commit('app', { Dockerfile: dockerfile.replace('RUN mkdir', 'RUN exit 7; mkdir') });
                expect((await rig.deploy(id)).reason).to.equal('BUILD_FAILED');
                // The same files give the same image, which the release that serves has, too.
                rig.git.commit('app', { Dockerfile: dockerfile });
                if (rig.engine.kind === 'podman') {
                    // The engine goes away while a release is checked. Docker would take along what serves.
                    await change(rig, id, { health: { successes: 100, startSeconds: 8 } });
                    const checked = await rig.begin(id);
                    await isChecked(rig, checked.id);
                    await rig.engine.kill();
                    const cut = await rig.over(checked.id);
                    expect([cut.state, cut.reason]).to.equal(['failed', 'UNHEALTHY']);
                    expect(await rig.log(cut.id))
                        .to.contain('The engine cannot be used now')
                        .and.to.contain('is removed later');
                    expect(await page(rig, 'app.test')).to.equal('two');
                    await rig.engine.revive();
                    expect(await rig.engine.names()).to.include(`deploy-p${id}-${cut.number}-web-1`);
                    await rig.put(`/projects/${id}`, quick);
                }
                await rig.put(`/projects/${id}`, { hooks: { pre: [['sh', '-c', 'exit 5']] } });
                expect((await rig.deploy(id)).reason).to.equal('HOOK_FAILED');
                rig.git.commit('app', { 'index.html': 'three' });
                expect((await rig.deploy(id)).reason).to.equal('HOOK_FAILED');
                await rig.put(`/projects/${id}`, { hooks: {} });
                expect(await page(rig, 'app.test')).to.equal('two');
                expect(
                    (await rig.engine.names()).every((name) => name.startsWith(`deploy-p${id}-2-`))
                ).to.be.true();
                const same = rig.engine.kind === 'podman' ? [5, 6] : [5];
                expect(await images(rig)).to.equal(
                    [1, 2, ...same].map((number) => `portico-deploy/p${id}-web:${number}`)
                );

                // Panel and engine go, the containers stay. Podman, which they outlive, is gone until the panel has started, in the middle of a deployment.
                const isPodman = rig.engine.kind === 'podman';
                const before = (await rig.engine.ask('GET', '/containers/json')).data.map(
                    ({ Id }: { Id: string }) => Id
                );
                if (isPodman) {
                    await change(rig, id, { health: { successes: 100 } });
                    const { id: begun } = await rig.begin(id);
                    await isChecked(rig, begun);
                    await rig.engine.kill();
                    await rig.killAll();
                    const { state, reason } = await rig.over(begun);
                    expect([state, reason]).to.equal(['failed', 'PANEL_DIED']);
                    await rig.engine.revive();
                    await rig.put(`/projects/${id}`, quick);
                } else {
                    await rig.killAll();
                }
                await until(
                    async () => (await page(rig, 'app.test').catch(() => '')) === 'two',
                    'the page after the end'
                );
                expect((await rig.get(`/projects/${id}`)).data).to.include({
                    state: 'live',
                    live: second.id
                });
                const now = (await rig.engine.ask('GET', '/containers/json')).data.map(
                    ({ Id }: { Id: string }) => Id
                );
                // What the cut left is removed with the next deployment.
                expect(now).to.include(before);
                expect(now.length).to.equal(before.length + (isPodman ? 2 : 0));

                await until(
                    async () => (await rig.client.get('/api/plugins/container')).data.state === 'running',
                    'the plugin container to run'
                );
                const back = await rig.post(`/projects/${id}/rollback`);
                expect((await rig.over(back.data.id as number)).state).to.equal('live');
                expect(await page(rig, 'app.test')).to.equal('one');
                const numbers = (await rig.engine.names()).map((name) => name.split('-')[2]);
                expect(new Set(numbers).size).to.equal(1);
                const stopped = await rig.post(`/projects/${id}/stop`);
                expect(stopped.data.state, stopped.text).to.equal('stopped');
                expect((await rig.post(`/projects/${id}/start`)).data.state).to.equal('live');
                await until(async () => (await page(rig, 'app.test')) === 'one');
                await rig.delete(`/projects/${id}`);
                await until(async () => (await rig.get(`/projects/${id}`)).status === 404);
                await until(
                    async () => [...(await rig.engine.names()), ...(await images(rig))].length === 0,
                    'all to be gone'
                );
            }
        );

        real(
            'runs a compose file in place, whose volumes stay, and goes back when it does not come up',
            async (rig) => {
                const compose = (text: string, more = ''): string => `
services:
  site:
    build: { context: ./web, args: { TEXT: ${text} } }
    command: [sh, -c, 'date > /data/started; exec busybox httpd -f -p 0.0.0.0:80 -h /www']
    environment: { WORD: '\${WORD}' }
    ports: ['127.0.0.1:\${PORT}:80']
    volumes: [data:/data]
    stop_grace_period: 0s${more}
volumes: { data: {} }
`;
                const web = `FROM ${image}\nARG TEXT\nRUN mkdir /www && echo "$TEXT" > /www/index.html\n`;
                rig.git.create('stack', { 'compose.yaml': compose('one'), 'web/Dockerfile': web });
                const body = {
                    name: 'stack',
                    source: { url: rig.git.url('stack') },
                    build: { kind: 'compose' },
                    host: { domain: 'stack.test' },
                    run: { drainSeconds: 0 },
                    ...quick
                };
                expect((await rig.post('/projects', { ...body, run: { shared: ['data'] } })).code).to.equal(
                    40001
                );
                const id = await rig.project(body);
                await rig.put(`/projects/${id}/env`, { vars: [{ name: 'WORD', value: 'it\'s "$5"' }] });
                const first = await rig.serve(id);
                expect(await page(rig, 'stack.test')).to.equal('one');
                const ran = await rig.post(`/projects/${id}/exec`, {
                    command: ['sh', '-c', 'echo $WORD; echo kept > /data/kept']
                });
                expect(ran.data.stdout).to.equal('it\'s "$5"\n');

                rig.git.commit('stack', { 'compose.yaml': compose('two') });
                await rig.serve(id);
                expect(await page(rig, 'stack.test')).to.equal('two');
                const kept = await rig.post(`/projects/${id}/exec`, { command: ['cat', '/data/kept'] });
                expect(kept.data.stdout).to.equal('kept\n');
                expect(await rig.engine.names()).to.equal([`deploy-p${id}-site-1`]);

                rig.git.commit('stack', {
                    'compose.yaml': compose('three').replace('exec busybox', 'exit 1; exec')
                });
                expect((await rig.deploy(id)).reason).to.equal('START_FAILED');
                expect(await page(rig, 'stack.test')).to.equal('two');
                rig.git.commit('stack', { 'compose.yaml': compose('four') });
                await rig.put(`/projects/${id}`, { health: { path: '/none', startSeconds: 3 } });
                expect((await rig.deploy(id)).reason).to.equal('UNHEALTHY');
                await rig.put(`/projects/${id}`, quick);
                expect(await page(rig, 'stack.test')).to.equal('two');
                rig.git.commit('stack', { 'compose.yaml': compose('five', '\n    privileged: true') });
                const refused = await rig.deploy(id);
                expect(refused.reason).to.equal('START_FAILED');
                expect(await rig.log(refused.id)).to.contain('privileged');

                const back = await rig.post(`/projects/${id}/rollback`, { deployment: first.id });
                expect((await rig.over(back.data.id as number)).state).to.equal('live');
                expect(await page(rig, 'stack.test')).to.equal('one');
                await rig.delete(`/projects/${id}`);
                await until(async () => (await rig.get(`/projects/${id}`)).status === 404);
                await until(
                    async () => [...(await rig.engine.names()), ...(await images(rig))].length === 0,
                    'all to be gone'
                );
                expect((await rig.engine.ask('GET', '/volumes')).data.Volumes ?? []).to.equal([]);
                expect(existsSync(join(rig.folder, `projects/${id}`))).to.be.false();
            }
        );

        real(
            'is built without a network and within the limits of builds, where the project says so',
            async (rig) => {
                const from = `FROM ${image}\nRUN mkdir -p /www && ls /sys/class/net > /www/index.html && busybox readlink /proc/self/ns/net > /www/space\n`;
                const limited = `${from}EXPOSE 8000\nCMD ["sh", "-c", "${http}"]\n`;
                rig.git.create('limited', { Dockerfile: limited });
                const id = await rig.project({
                    name: 'limited',
                    source: { url: rig.git.url('limited') },
                    build: { kind: 'dockerfile' },
                    host: { domain: 'limited.test' },
                    run: { drainSeconds: 0, stopSeconds: 0 },
                    ...quick
                });
                await rig.serve(id);
                expect(await page(rig, 'limited.test')).to.equal('eth0\nlo');
                // It never has the machine's own, in which it would reach everything that listens on loopback.
                const machines = readlinkSync(`/proc/${rig.engine.pid}/ns/net`);
                expect(await page(rig, 'limited.test', '/space'))
                    .to.match(/^net:/)
                    .and.to.not.equal(machines);
                const changed = await rig.put(`/projects/${id}`, {
                    build: { kind: 'dockerfile', network: false }
                });
                expect(changed.status, changed.text).to.equal(200);
                await rig.serve(id, { clearCache: true });
                expect(await page(rig, 'limited.test')).to.equal('lo');

                const limit = (buildMemoryBytes: number) =>
                    rig.client.put('/api/plugins/deploy', { settings: { buildMemoryBytes } });
                await limit(64 * 2 ** 20);
                rig.git.commit('limited', {
                    Dockerfile: `${from}RUN busybox dd if=/dev/zero of=/dev/null bs=300M count=1\n`
                });
                expect((await rig.deploy(id)).reason).to.equal('BUILD_FAILED');
                await limit(2 ** 31);
                rig.git.commit('limited', { 'a-file': 'the same Dockerfile, other limits' });
                expect((await rig.deploy(id)).reason, 'there is no program that serves').to.equal(
                    'START_FAILED'
                );
                await rig.delete(`/projects/${id}`);
            }
        );

        real('needs the plugin container, and says so at once', async (rig) => {
            rig.git.create('alone', { Dockerfile: dockerfile });
            const id = await rig.project({
                name: 'alone',
                source: { url: rig.git.url('alone') },
                build: { kind: 'dockerfile' }
            });
            await rig.client.put('/api/plugins/container', { enabled: false });
            const refused = await rig.post(`/projects/${id}/deployments`);
            expect([refused.status, refused.code]).to.equal([503, 50302]);
            expect(refused.text).to.contain('docker.io');
            await rig.put(`/projects/${id}`, { build: { kind: 'nixpacks' } });
            const packer = await rig.post(`/projects/${id}/deployments`);
            expect(packer.code).to.equal(50302);
            expect(packer.text).to.contain('https://nixpacks.com/install.sh');
        });
    },
    rigs
);
