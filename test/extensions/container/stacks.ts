import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../support/until.ts';
import { image, registryAddress } from './engines.ts';
import { reachRegistries } from './support/guarded-registries.ts';
import { describeOnEngines } from './support/on-engines.ts';
import type { ContainerRig } from './support/rig.ts';

export const lab = Lab.script();

const shop = (more = '', command = 'sleep 1000'): string => `
services:
  web:
    image: ${image}
    command: ${command}
    stop_grace_period: 0s
    environment: { SECRET: "\${SECRET}" }
    volumes: ["data:/data", "./files:/files"]
    secrets: [pass]
    depends_on: { db: { condition: service_healthy } }
    ${more}
  db:
    image: ${image}
    command: [sleep, "1000"]
    stop_grace_period: 0s
    healthcheck: { test: [CMD, "true"], interval: 500ms }
volumes: { data: {} }
secrets: { pass: { content: "\${SECRET}" } }
`;

/** Ids of the containers of a stack, by name. */
async function idsOf(rig: ContainerRig, stack: string): Promise<Record<string, string>> {
    const { data } = await rig.engine.ask('GET', '/containers/json?all=true');
    return Object.fromEntries(
        (data as { Names: string[]; Id: string; Labels: Record<string, string> }[])
            .filter(({ Labels }) => Labels['com.docker.compose.project'] === stack)
            .map(({ Names, Id }) => [(Names[0] ?? '').slice(1), Id])
    );
}

async function count(rig: ContainerRig, action: string, work: () => Promise<unknown>): Promise<number> {
    // To the millisecond: what came before is not counted.
    const since = Date.now() / 1_000;
    await work();
    const until = Math.ceil(Date.now() / 1_000);
    const filters = encodeURIComponent(JSON.stringify({ type: ['container'], event: [action] }));
    const { data } = await rig.engine.ask('GET', `/events?since=${since}&until=${until}&filters=${filters}`);
    return typeof data === 'string' ? data.trim().split('\n').filter(Boolean).length : 1;
}

describeOnEngines(lab, 'Stacks on a real engine', (real) => {
    real(
        'are deployed, changed service by service, and go back whole when the new revision does not come up',
        async (rig) => {
            const source = { name: 'shop', compose: shop(), env: 'SECRET=kept-secret' };
            const plan = await rig.post('/compose/plan', source);
            expect(
                plan.data.exposure.added.map(
                    ({ rule, detail }: { rule: string; detail: string }) => `${rule} ${detail}`
                )
            ).to.equal(['bind ./files:/files']);
            expect((await rig.post('/stacks', source)).code).to.equal(40951);
            const made = await rig.make('/stacks', { ...source, consent: plan.data.consent });
            expect([made.state, made.revision, made.managed]).to.equal(['running', 1, true]);
            const first = await idsOf(rig, 'shop');
            expect(Object.keys(first).sort()).to.equal(['shop-db-1', 'shop-web-1']);
            const read = await rig.engine.ask('GET', `/containers/shop-web-1/archive?path=/run/secrets/pass`);
            expect(read.data).to.contain('kept-secret');
            const { text } = await rig.get('/stacks/shop');
            expect(text).to.not.contain('kept-secret');
            expect((await rig.ask('GET', '/stacks/shop/source', undefined, 'operator')).status).to.equal(403);
            expect((await rig.get('/stacks/shop/source')).data.env).to.equal('SECRET=kept-secret');

            // Only what differs is made again.
            const changed = await rig.make('/stacks/shop', { compose: shop('user: "0"') }, 'PUT');
            expect(changed.revision).to.equal(2);
            const second = await idsOf(rig, 'shop');
            expect(second['shop-db-1']).to.equal(first['shop-db-1']);
            expect(second['shop-web-1']).to.not.equal(first['shop-web-1']);

            // What ends at once fails, and what ran before runs again: the same containers.
            const failed = await rig.run('/stacks/shop', { compose: shop('', 'sh -c "exit 3"') }, 'PUT');
            expect([failed.state, failed.error?.code]).to.equal(['failed', 42252]);
            expect(failed.error?.message).to.contain('ended with 3');
            expect(await idsOf(rig, 'shop')).to.equal(second);
            const { data: back } = await rig.get('/stacks/shop');
            expect([back.state, back.revision]).to.equal(['running', 2]);
            const unhealthy = await rig.run(
                '/stacks/shop',
                { compose: shop('healthcheck: { test: [CMD, "false"], interval: 200ms, retries: 1 }') },
                'PUT'
            );
            expect(unhealthy.error?.message).to.contain('unhealthy');
            expect(await idsOf(rig, 'shop')).to.equal(second);

            expect(await count(rig, 'create', () => rig.make('/stacks/shop/redeploy'))).to.equal(0);
            expect(await idsOf(rig, 'shop')).to.equal(second);
            const old = await rig.make('/stacks/shop/rollback', { revision: 1 });
            expect(old.revision).to.equal(3);
            const { data: revisions } = await rig.get('/stacks/shop/revisions');
            expect(revisions.map(({ because }: { because: string }) => because)).to.equal([
                'rollback to 1',
                'changed',
                'created'
            ]);
            expect(
                (await rig.host.as('admin').put('/stacks/shop', { description: 'x' }, { ifMatch: '1' })).code
            ).to.equal(41200);

            // Of some services alone; what they depend on is looked after, too.
            await rig.make('/stacks/shop/down', { services: ['web'] });
            expect(Object.keys(await idsOf(rig, 'shop'))).to.equal(['shop-db-1']);
            await rig.make('/stacks/shop/stop');
            expect((await rig.make('/stacks/shop/up', { services: ['db'] })).state).to.equal('degraded');
            expect(Object.keys(await idsOf(rig, 'shop'))).to.equal(['shop-db-1']);
            await rig.make('/stacks/shop/stop');
            expect((await rig.make('/stacks/shop/redeploy', { services: ['web'] })).state).to.equal(
                'running'
            );
            const refused = await rig.post('/stacks/shop/stop', { services: ['web', 'typo'] });
            expect([refused.code, refused.data.errors[0].path]).to.equal([40001, 'services.1']);
            // What brings no image takes no word of newer ones.
            expect((await rig.post('/stacks/shop/stop', { pull: true })).code).to.equal(40001);
            expect((await rig.get('/stacks/shop')).data.state).to.equal('running');
            for (const path of ['/stacks/typo/logs', '/stacks/shop/logs?service=typo']) {
                expect((await rig.get(path)).code).to.equal(40400);
            }

            // A container that was killed past the panel is healed.
            await rig.engine.ask('DELETE', '/containers/shop-web-1?force=true');
            expect((await rig.get('/stacks/shop')).data.state).to.equal('degraded');
            expect((await rig.make('/stacks/shop/up')).state).to.equal('running');
            expect((await rig.make('/stacks/shop/stop')).state).to.equal('stopped');
            expect((await rig.make('/stacks/shop/down')).state).to.equal('absent');
            await rig.make('/stacks/shop', {}, 'DELETE');
            expect((await rig.get('/stacks/shop')).code).to.equal(40400);
            const { data: volumes } = await rig.engine.ask('GET', '/volumes');
            expect(volumes.Volumes.map(({ Name }: { Name: string }) => Name)).to.include('shop_data');
        }
    );

    real(
        'leave nothing of a first deploy that fails or is cancelled, and heal after one that was cut',
        async (rig) => {
            const compose = `services: { one: { image: ${image}, command: ["false"] } }\nvolumes: { data: {} }`;
            const failed = await rig.run('/stacks', { name: 'bad', compose });
            expect(failed.error?.code).to.equal(42252);
            expect((await rig.get('/stacks/bad')).code).to.equal(40400);
            expect(await idsOf(rig, 'bad')).to.equal({});
            const { data: networks } = await rig.engine.ask('GET', '/networks');
            expect(networks.map(({ Name }: { Name: string }) => Name)).to.not.include('bad_default');

            // A job that fails again and again has not completed, also between two runs.
            const job = `services: { job: { image: ${image}, command: ["false"], restart: on-failure }, one: { image: ${image}, command: [sleep, "1000"], stop_grace_period: 0s, depends_on: { job: { condition: service_completed_successfully } } } }`;
            const uncompleted = await rig.run('/stacks', { name: 'job', compose: job, waitSeconds: 4 });
            expect([uncompleted.state, uncompleted.error?.code]).to.equal(['failed', 42252]);

            const slow = `services: { one: { image: ${image}, command: [sleep, "1000"], stop_grace_period: 0s, healthcheck: { test: [CMD, "false"], interval: 1m } } }`;
            const begun = await rig.post('/stacks', { name: 'slow', compose: slow, waitSeconds: 600 });
            expect(begun.status).to.equal(202);
            const busy = await rig.post('/stacks/slow/redeploy');
            expect([busy.code, JSON.parse(busy.text).message]).to.equal([
                40901,
                'Another change of this stack is under way: wait for its end, or cancel it'
            ]);
            const autoUpdate = { mode: 'apply', everyHours: 1 };
            expect((await rig.put('/stacks/slow', { autoUpdate })).code).to.equal(40901);
            expect((await rig.get('/stacks/slow')).data.autoUpdate.mode).to.equal('off');
            expect((await rig.host.tasks.cancel(begun.data.id)).state).to.equal('cancelled');
            expect(await idsOf(rig, 'slow')).to.equal({});

            // What a killed panel leaves: the old container aside, a new one in its place.
            const plain = (user: string) =>
                `services: { one: { image: ${image}, command: [sleep, "1000"], stop_grace_period: 0s, user: "${user}" } }`;
            await rig.make('/stacks', { name: 'cut', compose: plain('0') });
            const { 'cut-one-1': kept } = await idsOf(rig, 'cut');
            await rig.engine.ask('POST', '/containers/cut-one-1/rename?name=cut-one-1-before-abc');
            const labels = { 'com.docker.compose.project': 'cut', 'com.docker.compose.service': 'one' };
            await rig.engine.ask('POST', '/containers/create?name=cut-one-1', {
                Image: image,
                Cmd: ['true'],
                Labels: labels
            });
            await rig.make('/stacks/cut/redeploy');
            expect(await idsOf(rig, 'cut')).to.equal({ 'cut-one-1': kept });
        }
    );

    real(
        'are refused by the policy, also through what exists already and by names of others',
        async (rig) => {
            const refused = async (service: string, rest: string, rules: string[]) => {
                const { code, data } = await rig.post('/stacks', {
                    name: 'evil',
                    compose: `services: { one: { image: ${image}, ${service} } }\n${rest}`
                });
                expect([service, code, data.findings?.map(({ rule }: { rule: string }) => rule)]).to.equal([
                    service,
                    42253,
                    rules
                ]);
            };
            await rig.engine.ask('POST', '/volumes/create', {
                Name: 'evil_trap',
                DriverOpts: { type: 'none', o: 'bind', device: '/etc' }
            });
            await refused('volumes: ["trap:/x"]', 'volumes: { trap: {} }', ['volume-device']);
            await refused(
                'command: ["true"]',
                'volumes: { unused: { driver_opts: { type: none, o: bind, device: /root } } }',
                ['volume-device', 'volume-device'].slice(0, 1)
            );
            await refused('networks: [out]', 'networks: { out: { name: host, external: true } }', [
                'network-host'
            ]);
            await refused('networks: [out]', 'networks: { out: { name: host } }', ['network-host']);
            const taken = await rig.post('/stacks', {
                name: 'evil',
                compose: `services: { one: { image: ${image}, container_name: cut-one-1 } }`
            });
            expect(taken.code).to.equal(42250);
            await rig.engine.ask('POST', '/volumes/create', {
                Name: 'of-others',
                Labels: { 'com.docker.compose.project': 'other' }
            });
            const asked = await rig.post('/stacks', {
                name: 'evil',
                compose: `services: { one: { image: ${image}, volumes: ["v:/x"] } }\nvolumes: { v: { name: of-others } }`
            });
            expect([asked.code, asked.data.plan.exposure.added[0].detail]).to.equal([
                40951,
                'volume of-others'
            ]);
            expect((await rig.get('/stacks/evil')).code).to.equal(40400);
        }
    );

    real(
        'stay as they failed where that is wanted, with no more revisions and log than the settings say',
        async (rig) => {
            await rig.host.setSettings({ ...rig.host.settings, revisionsKept: 2, logBytes: 65_536 });
            const compose = (command: string): string =>
                `services: { one: { image: ${image}, stop_grace_period: 0s, command: [sh, -c, "${command}"] }, two: { image: ${image}, stop_grace_period: 0s, command: [sleep, "1000"] } }`;
            const failed = await rig.run('/stacks', {
                name: 'kept',
                compose: compose('exit 3'),
                onFailure: 'keep'
            });
            expect([failed.state, failed.error?.code]).to.equal(['failed', 42252]);
            expect((await rig.get('/stacks/kept')).data).to.include({ state: 'degraded', revision: 1 });
            expect(Object.keys(await idsOf(rig, 'kept')).sort()).to.equal(['kept-one-1', 'kept-two-1']);
            expect((await rig.get('/stacks/kept/source')).data.compose).to.contain('exit 3');
            await rig.make('/stacks/kept', { compose: compose('seq 1 200000; exec sleep 1000') }, 'PUT');
            const worse = await rig.run(
                '/stacks/kept',
                { compose: compose('exit 4'), onFailure: 'keep' },
                'PUT'
            );
            expect(worse.error?.message).to.contain('ended with 4');
            expect((await rig.get('/stacks/kept')).data).to.include({ state: 'degraded', revision: 3 });
            // It is not what a later change does that does not say so.
            await rig.make('/stacks/kept/rollback', { revision: 2 });
            await rig.run('/stacks/kept', { compose: compose('exit 5') }, 'PUT');
            expect((await rig.get('/stacks/kept')).data).to.include({ state: 'running', revision: 4 });
            const { data: revisions } = await rig.get('/stacks/kept/revisions');
            expect(revisions.map(({ revision }: { revision: number }) => revision)).to.equal([4, 3]);
            expect((await rig.post('/stacks/kept/rollback', { revision: 2 })).code).to.equal(40400);
            expect((await rig.get('/stacks/kept/source?revision=2')).code).to.equal(40400);

            // Of 1.3 MB of output two files of 64 KiB stay, or one on Podman.
            const texts = async (): Promise<string[]> => {
                const { text } = await rig.ask(
                    'GET',
                    '/stacks/kept/logs?service=one&follow=false&tail=100000',
                    undefined,
                    'operator'
                );
                return [...text.matchAll(/"text":"(\d+)"/g)].map(([, line = '']) => line);
            };
            const lines = await until(async () => {
                const found = await texts();
                return found.at(-1) === '200000' ? found : null;
            }, 'the end of the output');
            expect(lines.length).to.be.between(1, 30_000);
            await rig.make('/stacks/kept', {}, 'DELETE');
            await rig.host.setSettings({ ...rig.host.settings, revisionsKept: 10, logBytes: 10_485_760 });
        }
    );

    real('take newer images of the same name, and go back to the older digest', async (rig) => {
        const name = `${registryAddress}/shop/app:1`;
        await rig.engine.importImage(name, 'first');
        await rig.make('/images/push', { image: name });
        const first = (await rig.get(`/images/${encodeURIComponent(name)}`)).data;
        await rig.engine.importImage(name, 'second');
        await rig.make('/images/push', { image: name });
        const { data: second } = await rig.get(`/images/${encodeURIComponent(name)}`);
        // The engine has the older one under the name again, and the registry the newer one.
        await rig.post('/images/tag', { id: first.id, tag: name });
        await rig.make('/stacks', {
            name: 'app',
            compose: `services: { one: { image: "${name}", command: [sleep, "1000"], stop_grace_period: 0s } }`
        });
        const imageOf = async () => (await rig.get('/containers/app-one-1')).data.imageId;
        expect(await imageOf()).to.equal(first.id);
        reachRegistries(rig);
        const { images } = await rig.make('/images/check', { images: [name] });
        expect(images[0].state).to.equal('outdated');
        expect((await rig.make('/stacks/app/redeploy', { pull: true })).revision).to.equal(2);
        expect(await imageOf()).to.equal(second.id);
        expect((await rig.get('/containers/app-one-1')).data.image).to.equal(name);
        // A name with a digest stands for that image, whatever else the registry has.
        const pinned = `${registryAddress}/shop/app@${images[0].digest}`;
        const { images: asked } = await rig.make('/images/check', { images: [pinned] });
        expect(asked).to.equal([{ ...asked[0], image: pinned, state: 'current', digest: images[0].digest }]);
        // An id is no name: no registry is asked for it.
        const { images: byId } = await rig.make('/images/check', { images: [first.id] });
        expect([byId[0].state, byId[0].digest]).to.equal(['unknown', null]);
        expect(rig.host.log.filter(({ message }) => message.startsWith('A registry could not'))).to.equal([]);
        await rig.make('/stacks/app/rollback', { revision: 1 });
        expect(await imageOf()).to.equal(first.id);
        expect(
            (await rig.run('/images/pull', { image: `${registryAddress}/none/such:1` })).error?.code
        ).to.equal(50250);
    });
});
