import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { noEngine } from '../container/engines.ts';
import { appDocument, noMinisign, type Part } from './publisher.ts';
import { AppstoreRig, type Data } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(noMinisign ?? noEngine, it);
const limitMs = 240_000;

const repository = '127.0.0.1:5000/apps/wiki';
let rig: AppstoreRig;
const digests: Record<string, string> = {};

/** A web server that keeps a counter of its starts in a volume. */
const compose = (tag: string, script: string, more = ''): string => `
services:
  web:
    image: ${repository}:${tag}
    command: [sh, -c, '${script}; exec busybox httpd -f -p 80 -h /data']
    stop_grace_period: 0s
    ports: ["\${APP_PORT}:80"]
    environment: { TITLE: "\${TITLE}", TOKEN: "\${TOKEN}", PASS: "\${PASS}", PLACE: "\${APP_URL}" }
    volumes: ["data:/data"]
    ${more}
volumes: { data: {} }
`;
const start = 'echo start >> /data/starts; test -f /data/index.html || echo first > /data/index.html';

const app = (version: string, more: Part = {}): Part =>
    appDocument({
        version,
        form: [
            { name: 'TITLE', type: 'text', label: 'Title', default: 'none' },
            { name: 'PASS', type: 'password', required: true, min: 4 },
            { name: 'TOKEN', type: 'random', min: 24, encoding: 'hex' }
        ],
        compose: compose('1', start),
        images: Object.fromEntries(
            Object.entries(digests).map(([tag, digest]) => [`${repository}:${tag}`, digest])
        ),
        main: { service: 'web', port: 80 },
        changelog: [{ version, text: { en: `What is new in ${version}` } }],
        ...more
    });

const publish = async (...documents: readonly Part[]): Promise<void> => {
    rig.publisher.publish(documents);
    await rig.sync();
};
const get = async (name: string): Promise<Data> => (await rig.get(`/installed/${name}`)).data;
const inContainer = async (name: string, ...command: string[]): Promise<string> => {
    const { data } = (await rig.container?.post(`/containers/app-${name}-web-1/exec`, { command })) ?? {};
    return data?.stdout ?? '';
};
const environment = async (name: string): Promise<string> => inContainer(name, 'env');

describe('Installed apps on a real engine', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if ((noMinisign ?? noEngine) === undefined) {
            rig = await AppstoreRig.start({ engine: true });
            for (const tag of ['1', '2']) {
                digests[tag] = await rig.pushImage(`${repository}:${tag}`, tag);
            }
            await rig.addSource();
            await publish(app('1.0.0'));
        }
    });

    after({ timeout: limitMs }, () => rig?.close());

    real('are planned, need consent to exactly that, and run by their digests behind a host', async () => {
        const values = { PASS: 'open sesame', TITLE: 'Ours' };
        const body = { source: 'main', app: 'wiki', values, domain: 'wiki.example' };
        const { data: plan, status } = await rig.post('/plan', body);
        expect(status).to.equal(200);
        expect(plan.images).to.equal([{ service: 'web', image: `${repository}:1`, digest: digests['1'] }]);
        expect(plan.volumes).to.equal(['app-wiki_data']);
        expect(plan.ports[0]).to.include({ service: 'web', containerPort: 80, hostIp: '127.0.0.1' });
        expect(plan.difference.ports.added).to.equal(['web: 80/tcp on this machine']);
        const refused = await rig.post('/installed', body);
        expect([refused.code, refused.data.plan.consent]).to.equal([40951, plan.consent]);
        // It is that for this app under this name.
        const other = await rig.post('/installed', { ...body, name: 'other', consent: plan.consent });
        expect(other.code).to.equal(40951);
        expect((await rig.get('/installed')).data).to.equal([]);

        const done = await rig.run('/installed', { ...body, consent: plan.consent });
        expect([done.state, done.error]).to.equal(['succeeded', null]);
        const wiki = await get('wiki');
        expect(wiki).to.include({
            state: 'running',
            version: '1.0.0',
            revision: 1,
            domain: 'wiki.example',
            stack: 'app-wiki',
            update: null,
            lastError: null
        });
        expect(wiki.digests).to.equal({ web: digests['1'] });
        expect(wiki.values).to.equal({ TITLE: 'Ours', PASS: { set: true }, TOKEN: { set: true } });
        expect(rig.answer(wiki.address)?.body).to.equal('first\n');
        expect(rig.host.hosts.hosts[0]).to.include({
            domain: 'wiki.example',
            upstream: wiki.address,
            enabled: true,
            owner: 'appstore'
        });

        // Secrets: made, given to the app, shown to a fresh session alone, and nowhere else.
        const { data: secrets } = await rig.get('/installed/wiki/secrets');
        expect(secrets.PASS).to.equal('open sesame');
        expect(secrets.TOKEN).to.match(/^[0-9a-f]{24}$/);
        expect(await environment('wiki')).to.contain(`TOKEN=${secrets.TOKEN}\n`);
        expect(await environment('wiki')).to.contain('PASS=open sesame\n');
        expect(await environment('wiki')).to.contain('PLACE=http://wiki.example\n');
        const stale = await rig.ask('GET', '/installed/wiki/secrets', undefined, {
            role: 'admin',
            fresh: false
        });
        expect(stale.code).to.equal(40301);
        for (const who of ['viewer', 'operator'] as const) {
            expect((await rig.ask('GET', '/installed/wiki/secrets', undefined, who)).status).to.equal(403);
        }
        const told = JSON.stringify([
            rig.host.tasks.list(),
            rig.host.audit,
            rig.host.log,
            rig.host.notifications,
            (await rig.get('/installed')).data
        ]);
        expect(told.includes('open sesame') || told.includes(secrets.TOKEN)).to.equal(false);
        // The owner alone changes the stack.
        expect((await rig.container?.ask('DELETE', '/stacks/app-wiki'))?.code).to.equal(40950);
    });

    real('take values as values: none makes a key, a line or another variable', async () => {
        const attacks = ['"] \n    privileged: true', 'a\nPRIVILEGED=1', 'a\u2028B=1', 'a\0b'];
        for (const TITLE of attacks) {
            const { code, data } = await rig.put('/installed/wiki', { values: { TITLE } });
            expect([code, data.errors[0].path]).to.equal([40001, 'values.TITLE']);
        }
        const harmless = `it's "q" \${PASS} $PASS $$ \`id\` #x {a: b} , [c] : - & * ! | > % @ \\n ' # end`;
        await rig.make('/installed/wiki', { values: { TITLE: harmless } }, 'PUT');
        expect((await environment('wiki')).split('\n').find((line) => line.startsWith('TITLE='))).to.equal(
            `TITLE=${harmless}`
        );
        expect((await get('wiki')).values.TITLE).to.equal(harmless);
        const bad: readonly (readonly [Part, string])[] = [
            [{ values: { TOKEN: 'mine' } }, 'values.TOKEN'],
            [{ values: { NONE: 'x' } }, 'values.NONE'],
            [{ values: { PASS: 'abc' } }, 'values.PASS'],
            [{ values: { APP_PORT: '22' } }, 'values.APP_PORT']
        ];
        for (const [change, path] of bad) {
            const { code, data } = await rig.put('/installed/wiki', change);
            expect([code, data.errors[0].path]).to.equal([40001, path]);
        }
        // What is not sent stays; `autoUpdate` alone restarts nothing.
        const { data: before } = await rig.get('/installed/wiki/secrets');
        const { status, data } = await rig.put('/installed/wiki', { autoUpdate: 'minor' });
        expect([status, data.autoUpdate, data.revision]).to.equal([200, 'minor', 2]);
        expect((await rig.get('/installed/wiki/secrets')).data).to.equal(before);
    });

    real('want consent to a public port, and free ones', async () => {
        const { port } = rig.publisher;
        const taken = {
            publish: [{ service: 'web', containerPort: 80, hostIp: '127.0.0.1', hostPort: port }]
        };
        expect((await rig.put('/installed/wiki', taken)).code).to.equal(40954);
        const open = {
            publish: [{ service: 'web', containerPort: 80, hostIp: '0.0.0.0', hostPort: 18_080 }]
        };
        const { code, data } = await rig.put('/installed/wiki', open);
        expect(code).to.equal(40951);
        expect(data.plan.difference.ports.added).to.equal(['web: 80/tcp on 0.0.0.0:18080']);
        const wrong = {
            publish: [{ service: 'web', containerPort: 80, hostIp: '0.0.0.0', hostPort: 18_081 }],
            consent: data.plan.consent
        };
        expect((await rig.put('/installed/wiki', wrong)).code).to.equal(40951);
        const { address } = await get('wiki');
        await rig.make(
            '/installed/wiki',
            {
                ...open,
                consent: data.plan.consent,
                limits: { web: { memoryBytes: 64 * 1_048_576, cpus: 0.5 } }
            },
            'PUT'
        );
        expect(rig.answer('127.0.0.1:18080')?.status).to.equal(200);
        // The port of the host stays.
        expect((await get('wiki')).address).to.equal(address);
        const { data: inspected } = (await rig.container?.get('/containers/app-wiki-web-1/inspect')) ?? {};
        expect([inspected.HostConfig.Memory, inspected.HostConfig.NanoCpus]).to.equal([
            64 * 1_048_576,
            500_000_000
        ]);
        await rig.make('/installed/wiki', { publish: [] }, 'PUT');
        expect(rig.answer('127.0.0.1:18080')).to.equal(null);
        expect(
            (
                await rig.put('/installed/wiki', {
                    publish: [{ service: 'none', containerPort: 1, hostIp: '0.0.0.0', hostPort: 1 }]
                })
            ).code
        ).to.equal(42250);
    });

    real('are updated with a backup, and taken back with their data when they are not healthy', async () => {
        const { data: secrets } = await rig.get('/installed/wiki/secrets');
        await publish(app('1.1.0', { compose: compose('2', `${start}; echo second > /data/index.html`) }));
        const { data: waiting } = await rig.get('/updates');
        expect(waiting[0]).to.include({
            name: 'wiki',
            from: '1.0.0',
            to: '1.1.0',
            needsConsent: false,
            auto: true,
            why: null
        });
        expect(waiting[0].changelog).to.contain('What is new in 1.1.0');
        // Operators may: nothing new is exposed.
        const updated = await rig.run('/installed/wiki/update', { version: '1.1.0' }, 'POST', 'operator');
        expect([updated.state, updated.error]).to.equal(['succeeded', null]);
        expect(await get('wiki')).to.include({ version: '1.1.0', state: 'running', lastError: null });
        expect((await get('wiki')).digests).to.equal({ web: digests['2'] });
        expect((await rig.get('/installed/wiki/secrets')).data).to.equal(secrets);
        const { data: backups } = await rig.get('/installed/wiki/backups');
        expect(backups.map(({ version, because }: Part) => [version, because])).to.equal([
            ['1.0.0', 'update to 1.1.0']
        ]);
        const { address } = await get('wiki');
        expect(rig.answer(address)?.body).to.equal('second\n');

        // The next one breaks its data and never becomes healthy.
        const sick = 'healthcheck: { test: [CMD, "false"], interval: 200ms, retries: 1, start_period: 0s }';
        await publish(
            app('1.2.0', {
                compose: compose('1', `${start}; echo broken > /data/index.html; rm /data/starts`, sick)
            })
        );
        const before = await get('wiki');
        const bad = await rig.run('/installed/wiki/update', {});
        expect([bad.state, bad.error?.code]).to.equal(['failed', 42255]);
        const back = await get('wiki');
        expect(back).to.include({ version: '1.1.0', revision: before.revision, state: 'running', address });
        expect(back.lastError).to.contain('unhealthy');
        expect(back.digests).to.equal(before.digests);
        expect(rig.answer(address)?.body).to.equal('second\n');
        expect(await inContainer('wiki', 'cat', '/data/starts')).to.contain('start\nstart');
        expect(rig.host.notifications.at(-1)?.event.endsWith('update-undone')).to.equal(true);
        const { data: after } = await rig.get('/updates');
        expect([after[0].auto, after[0].why]).to.equal([false, 'It was tried, and taken back']);

        // One that runs and answers something else than it should goes back, too.
        await publish(
            app('1.3.0', {
                compose: compose('1', `${start}; mv /data/index.html /data/gone`),
                main: { service: 'web', port: 80, path: '/' }
            })
        );
        const wrong = await rig.run('/installed/wiki/update', {});
        expect([wrong.state, wrong.error?.code]).to.equal(['failed', 42255]);
        expect(wrong.error?.message).to.contain('404');
        expect(rig.answer(address)?.body).to.equal('second\n');
        expect(await get('wiki')).to.include({ version: '1.1.0', state: 'running' });
    });

    real('go back to a revision with the data that it had, and to data alone', async () => {
        const { address } = await get('wiki');
        const { data: history } = await rig.get('/installed/wiki/history');
        const first = history.find(({ version, backup }: Part) => version === '1.0.0' && backup !== null);
        expect((await rig.post('/installed/wiki/rollback', { revision: 1 })).code).to.equal(40001);
        // Of the backups that changes make, one is kept: also that which a change goes back to goes after it.
        await rig.host.setSettings({ ...rig.host.settings, backupsKept: 1 });
        await rig.make('/installed/wiki/rollback', { revision: first.revision });
        expect(await get('wiki')).to.include({ version: '1.0.0', state: 'running', address });
        expect(rig.answer(address)?.body).to.equal('first\n');
        // What was there before the rollback can be had back.
        const { data: backups } = await rig.get('/installed/wiki/backups');
        expect(backups[0].because).to.contain('rollback');
        await rig.make('/installed/wiki/restore', { backup: backups[0].id });
        expect(rig.answer(address)?.body).to.equal('second\n');
        const made = await rig.make('/installed/wiki/backups');
        const { data: kept } = await rig.get('/installed/wiki/backups');
        expect([kept.length, kept[0].id, kept[1].id > backups[0].id]).to.equal([2, made.id, true]);
        await rig.host.setSettings({ ...rig.host.settings, backupsKept: 3 });
        expect((await get('wiki')).state).to.equal('running');
        expect((await rig.ask('DELETE', `/installed/wiki/backups/${made.id}`)).status).to.equal(200);
        expect((await rig.post('/installed/wiki/restore', { backup: made.id })).code).to.equal(40400);
        expect((await rig.ask('POST', '/installed/wiki/stop', {}, 'operator')).data.state).to.equal(
            'stopped'
        );
        expect((await rig.ask('POST', '/installed/wiki/start', {}, 'operator')).data.state).to.equal(
            'running'
        );
        expect((await rig.ask('POST', '/installed/wiki/start', {}, 'viewer')).status).to.equal(403);
    });

    real('leave nothing when an install fails, and their data when they are removed with it', async () => {
        await publish(app('2.0.0', { compose: compose('1', 'exit 3') }), app('1.0.0', { id: 'blog' }));
        const { data: plan } = await rig.post('/plan', {
            source: 'main',
            app: 'wiki',
            name: 'bad',
            values: { PASS: 'long' },
            domain: 'bad.example'
        });
        const failed = await rig.run('/installed', {
            source: 'main',
            app: 'wiki',
            name: 'bad',
            values: { PASS: 'long' },
            domain: 'bad.example',
            consent: plan.consent
        });
        expect([failed.state, failed.error?.code]).to.equal(['failed', 42255]);
        expect((await rig.get('/installed/bad')).code).to.equal(40400);
        expect(rig.host.hosts.hosts.map(({ domain }) => domain)).to.equal(['wiki.example']);
        const volumes = async (): Promise<string[]> =>
            ((await rig.container?.get('/volumes'))?.data as { name: string }[]).map(({ name }) => name);
        expect(await volumes()).to.equal(['app-wiki_data']);

        // Two of one app, side by side; then one leaves its data and takes them up again.
        for (const name of ['blog', 'blog-2']) {
            const done = await rig.install({ source: 'main', app: 'blog', name, values: { PASS: 'long' } });
            expect([done.state, done.error]).to.equal(['succeeded', null]);
        }
        const one = await get('blog');
        expect(one.address).to.not.equal((await get('blog-2')).address);
        await inContainer('blog', 'sh', '-c', 'echo mine > /data/index.html');
        const { data: secrets } = await rig.get('/installed/blog/secrets');
        await rig.make('/installed/blog?keepData=true', undefined, 'DELETE');
        expect((await rig.get('/installed/blog')).code).to.equal(40400);
        const { data: leftovers } = await rig.get('/leftovers');
        expect(leftovers[0]).to.include({ name: 'blog', app: 'main/blog' });
        expect(leftovers[0].bytes > 0).to.equal(true);
        const again = { source: 'main', app: 'blog', name: 'blog', values: {} };
        expect((await rig.post('/plan', again)).code).to.equal(40901);
        expect((await rig.post('/plan', { ...again, name: 'blog-3', reuseData: true })).code).to.equal(40001);
        const taken = await rig.install({ ...again, reuseData: true });
        expect([taken.state, taken.error]).to.equal(['succeeded', null]);
        const back = await get('blog');
        expect(back.address).to.equal(one.address);
        expect(rig.answer(back.address)?.body).to.equal('mine\n');
        expect((await rig.get('/installed/blog/secrets')).data).to.equal(secrets);
        expect((await rig.get('/leftovers')).data).to.equal([]);

        await rig.make('/installed/blog?keepData=true', undefined, 'DELETE');
        expect((await rig.ask('DELETE', '/leftovers/blog')).status).to.equal(200);
        await rig.make('/installed/blog-2?keepData=false', undefined, 'DELETE');
        expect(await volumes()).to.equal(['app-wiki_data']);
    });

    real(
        'that are not signed need a word for each, and stay at the images that they were pinned to',
        async () => {
            const image = '127.0.0.1:5000/apps/plain:1';
            const digest = await rig.pushImage(image, 'plain');
            const text = `services: { web: { image: "${image}", command: [sh, -c, "echo plain > /data/index.html; exec busybox httpd -f -p 80 -h /data"], stop_grace_period: 0s, ports: ["8080:80"], volumes: ["./data:/data"] } }`;
            const made = await rig.post('/import', {
                kind: 'compose',
                name: 'My Plain App',
                files: { 'docker-compose.yml': text }
            });
            expect([made.status, made.data.key, made.data.signed]).to.equal([
                201,
                'local/my-plain-app',
                false
            ]);
            const body = { source: 'local', app: 'my-plain-app', name: 'plain' };
            expect((await rig.post('/plan', body)).code).to.equal(40952);
            const { data: plan } = await rig.post('/plan', { ...body, acknowledgeUnsigned: true });
            expect([plan.signed, plan.volumes]).to.equal([false, ['app-plain_data']]);
            expect(plan.warnings.join()).to.contain('not signed');
            const done = await rig.install({ ...body, acknowledgeUnsigned: true });
            expect([done.state, done.error]).to.equal(['succeeded', null]);
            const plain = await get('plain');
            expect([plain.keyId, plain.digests]).to.equal([null, { web: digest }]);
            expect(rig.answer(plain.address)?.body).to.equal('plain\n');
            // The tag moves on; the app does not.
            expect(await rig.pushImage(image, 'other')).to.not.equal(digest);
            await rig.make('/installed/plain', { limits: { web: { cpus: 1 } } }, 'PUT');
            expect((await get('plain')).digests).to.equal({ web: digest });
            // An image that no registry knows has no digest, and does not start.
            await rig.container?.engine.importImage('local-only:1', 'x');
            await rig.post('/import', {
                kind: 'compose',
                name: 'unknown',
                files: { 'docker-compose.yml': text.replace(image, 'local-only:1') }
            });
            const unknown = await rig.install({ source: 'local', app: 'unknown', acknowledgeUnsigned: true });
            expect(unknown.state).to.equal('failed');
            expect((await rig.get('/installed/unknown')).code).to.equal(40400);
            await rig.make('/installed/plain?keepData=false', undefined, 'DELETE');
        }
    );
});
