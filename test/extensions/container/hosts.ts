import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../support/until.ts';
import { image, registryAddress } from './engines.ts';
import { reachRegistries } from './support/guarded-registries.ts';
import { describeOnEngines } from './support/on-engines.ts';
import type { ContainerRig } from './support/rig.ts';

export const lab = Lab.script();

/** Asks until the answer is as wanted. */
async function settled<T>(ask: () => Promise<T> | T, wanted: (answer: T) => boolean): Promise<T> {
    const found = await until(
        async () => {
            const answer = await ask();
            return wanted(answer) ? { answer } : null;
        },
        wanted.toString(),
        60_000
    );
    return found.answer;
}

/** Where the engine publishes port 80 of a container. */
async function published(rig: ContainerRig, name: string): Promise<string> {
    const { data } = await rig.engine.ask('GET', `/containers/${name}/json`);
    return `127.0.0.1:${data.NetworkSettings.Ports['80/tcp'][0].HostPort}`;
}

const compose = (name: string, more = ''): string =>
    `# kept\nservices:\n  web:\n    image: ${name} # the app\n    command: [sleep, "1000"]\n    stop_grace_period: 0s\n${more}`;

describeOnEngines(lab, 'Hosts, hooks and updates of stacks on a real engine', (real) => {
    real(
        'POST /hosts serves a port, publishes it where it is not, and follows the container',
        async (rig) => {
            const single = { name: 'one', image, command: ['sleep', '1000'], stopSeconds: 0 };
            await rig.make('/containers', { ...single, ports: [{ containerPort: 80 }] });
            const made = await rig.post('/hosts', { container: 'one', port: 80, domain: 'one.example.com' });
            expect([made.status, made.data.target]).to.equal([201, await published(rig, 'one')]);
            const upstream = (domain: string): unknown =>
                rig.host.hosts.hosts.find((host) => host.domain === domain)?.upstream;
            expect(upstream('one.example.com')).to.equal(made.data.target);
            expect(rig.host.hosts.hosts[0]).to.include({ owner: 'container' });

            // A port that the engine found anew: the host goes there.
            await rig.make('/containers/one/recreate', { ports: [{ containerPort: 80 }] });
            const moved = await settled(
                () => published(rig, 'one'),
                (address) => address !== made.data.target
            );
            await settled(
                () => upstream('one.example.com'),
                (address) => address === moved
            );
            await settled(
                async () => (await rig.get('/hosts')).data[0].target as string,
                (address) => address === moved
            );

            // A port that is not published.
            await rig.make('/stacks', { name: 'shop', compose: compose(image) });
            const asked = { stack: 'shop', service: 'web', port: 80, domain: 'shop.example.com' };
            expect((await rig.post('/hosts', asked)).code).to.equal(40901);
            const shop = await rig.post('/hosts', {
                ...asked,
                publish: true,
                scheme: 'https',
                aliases: ['w.example.com']
            });
            expect([shop.status, shop.data.target]).to.equal([
                201,
                `https://${await published(rig, 'shop-web-1')}`
            ]);
            const { data: source } = await rig.get('/stacks/shop/source');
            expect(source.compose).to.match(/^# kept[^]*# the app[^]*127\.0\.0\.1::80/);
            await rig.make('/containers', { ...single, name: 'two' });
            const two = await rig.post('/hosts', {
                container: 'two',
                port: 80,
                domain: 'two.example.com',
                publish: true
            });
            expect(two.data.target).to.equal(await published(rig, 'two'));

            for (const [body, code] of [
                [{ container: 'absent', port: 80, domain: 'x.example.com' }, 40400],
                [{ stack: 'shop', service: 'absent', port: 80, domain: 'x.example.com' }, 40400],
                [{ stack: 'shop', port: 80, domain: 'x.example.com' }, 40001],
                [{ container: 'one', port: 81, domain: 'x.example.com' }, 40901]
            ] as const) {
                expect((await rig.post('/hosts', body)).code).to.equal(code);
            }
            const who = { permissions: ['container:read', 'container:write', 'read', 'write'] };
            const refused = await rig.ask('POST', '/hosts', { ...asked, domain: 'y.example.com' }, who);
            expect(refused.code).to.equal(40300);
            expect((await rig.ask('DELETE', `/hosts/${two.data.id}`)).status).to.equal(200);
            expect(upstream('two.example.com')).to.be.undefined();
            // What an admin removed in the core is forgotten.
            rig.host.hosts.hosts.splice(0);
            await rig.post('/containers/one/restart', { timeoutSeconds: 0 });
            await settled(
                async () => (await rig.get('/hosts')).data.length,
                (length) => length === 0
            );
        }
    );

    real('POST /hooks/{key} pulls and deploys, waits once, and tells a stranger nothing', async (rig) => {
        const name = `${registryAddress}/hooked/app:1`;
        await rig.engine.importImage(name, 'first');
        await rig.make('/images/push', { image: name });
        await rig.make('/stacks', { name: 'hooked', compose: compose(name) });
        const stale = rig.host.as({ role: 'admin', fresh: false });
        expect((await stale.post('/stacks/hooked/hook')).code).to.equal(40301);
        const { status, data: hook } = await rig.post('/stacks/hooked/hook');
        expect([status, (await rig.get('/stacks/hooked')).data.hook]).to.equal([201, true]);
        const call = (url: string, token?: string) =>
            rig.host
                .as('anonymous')
                .post<{ waits: boolean }>(
                    url,
                    {},
                    token === undefined ? {} : { headers: { 'x-webhook-token': token } }
                );
        const refusals = [
            await call(hook.url),
            await call(hook.url, 'wrong'),
            await call(`${hook.url}0`, hook.token),
            await call('/hooks/unknown', hook.token)
        ].map(({ code, text }) => [code, text.replace(/"requestId":"[^"]*"/, '')]);
        expect(new Set(refusals.map(String)).size).to.equal(1);
        expect(refusals[0]?.[0]).to.equal(40150);

        await rig.engine.importImage(name, 'second');
        await rig.make('/images/push', { image: name });
        const answers = [
            await call(hook.url, hook.token),
            await call(hook.url, hook.token),
            await call(hook.url, hook.token)
        ];
        expect(answers.map((answer) => [answer.status, answer.data.waits])).to.equal([
            [202, false],
            [202, true],
            [202, true]
        ]);
        await settled(
            async () => (await rig.get('/stacks/hooked/revisions')).data as { because: string }[],
            ([newest]) => newest?.because === 'hook'
        );
        const mark = await rig.post('/containers/hooked-web-1/exec', { command: ['cat', '/etc/mark'] });
        expect(mark.data.stdout).to.equal('second\n');
        expect((await rig.ask('DELETE', '/stacks/hooked/hook')).status).to.equal(200);
        expect((await call(hook.url, hook.token)).code).to.equal(40150);
        expect((await rig.ask('DELETE', '/stacks/hooked/hook')).code).to.equal(40400);
        const { hook_token: kept } = (
            await rig.host.db.read((em) => em.execute(`select * from stacks where name = 'hooked'`))
        )[0] as { hook_token: unknown };
        expect(kept).to.be.null();
    });

    real(
        'checks images by the clock, tells of a newer one once, and updates the stacks that want it',
        async (rig) => {
            reachRegistries(rig);
            const name = `${registryAddress}/auto/app:1`;
            // As it comes from another machine: the registry has it, and this one has not.
            const push = async (image: string, mark: string, changes = {}): Promise<void> => {
                await rig.engine.importImage(image, mark, changes);
                await rig.make('/images/push', { image });
                const gone = await rig.ask('DELETE', `/images/${encodeURIComponent(image)}?force=true`);
                expect(gone.status).to.equal(200);
            };
            const auto = (mode: string) => ({ autoUpdate: { mode, everyHours: 1 } });
            const newest = async (): Promise<string> =>
                (await rig.get('/stacks/auto/revisions')).data[0].because;
            const notices = (event: string) =>
                rig.host.notifications.filter((notice) => notice.event.endsWith(event));
            await push(name, 'first');
            await rig.make('/stacks', { name: 'auto', compose: compose(name), ...auto('check') });
            expect((await rig.get('/stacks/auto')).data.autoUpdate).to.equal({
                mode: 'check',
                everyHours: 1
            });
            await push(name, 'second');
            await rig.host.clock.advance({ hours: 2 });
            await rig.host.clock.advance({ hours: 2 });
            expect(notices('image-outdated').filter(({ data }) => data?.['image'] === name).length).to.equal(
                1
            );
            expect(await newest()).to.equal('created');

            await rig.make('/stacks/auto', auto('apply'), 'PUT');
            await rig.host.clock.advance({ hours: 2 });
            await settled(newest, (because) => because === 'automatic update');
            // A digest that the stack went back from is not taken again.
            await rig.make('/stacks/auto/rollback', { revision: 1 });
            await rig.host.clock.advance({ hours: 2 });
            await rig.host.tasks.wait();
            expect(await newest()).to.equal('rollback to 1');

            // A newer image that does not come up: what ran before runs, and a notice says so.
            await push(name, 'third', { ENTRYPOINT: '["false"]' });
            await rig.host.clock.advance({ hours: 2 });
            await settled(
                () => notices('update-failed').length,
                (count) => count > 0
            );
            expect((await rig.get('/stacks/auto')).data.state).to.equal('running');
            expect(await newest()).to.equal('rollback to 1');

            // Images of single containers are checked, too.
            await rig.make('/stacks/auto', auto('off'), 'PUT');
            const single = `${registryAddress}/auto/single:1`;
            await push(single, 'first');
            await rig.make('/containers', {
                name: 'lone',
                image: single,
                command: ['sleep', '1000'],
                stopSeconds: 0
            });
            const { data: first } = await rig.get(`/images/${encodeURIComponent(single)}`);
            await push(single, 'second');
            await rig.post('/images/tag', { id: first.id, tag: single });
            await rig.host.clock.advance({ hours: 25 });
            const told = notices('image-outdated').map(({ data }) => data?.['image']);
            expect(told.filter((each) => each === single).length).to.equal(1);
            expect((await rig.get(`/images/${encodeURIComponent(single)}`)).data.update.state).to.equal(
                'outdated'
            );

            // As often as the setting says; 0: never.
            await push(single, 'third');
            await rig.post('/images/tag', { id: first.id, tag: single });
            const count = () =>
                notices('image-outdated').filter(({ data }) => data?.['image'] === single).length;
            await rig.host.setSettings({ ...rig.host.settings, checkHours: 0 });
            await rig.host.clock.advance({ hours: 30 });
            expect(count()).to.equal(1);
            await rig.host.setSettings({ ...rig.host.settings, checkHours: 3 });
            await rig.host.clock.advance({ hours: 3 });
            expect(count()).to.equal(2);
        }
    );
});
