import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { hasAccount, PhpRig, withoutPhp } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutPhp, it);

const limitMs = 180_000;
let rig: PhpRig;

describe('A site of PHP', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutPhp === undefined) {
            rig = await PhpRig.start();
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('is made in one call, serves through the engine, and is gone with its account', async () => {
        const versions = await rig.get('/versions');
        expect(versions.data[0], versions.text).to.include({
            release: '8.2',
            fpm: 'php-fpm8.2',
            cli: 'php8.2',
            status: 'security'
        });
        const id = await rig.create('one', { template: 'php' });
        const { data: site } = await rig.get(`/sites/${id}`);
        expect(site).to.include({ state: 'running', domain: 'one.test', release: '8.2', root: 'public' });
        expect((await rig.page('one.test')).text).to.contain('PHP 8.2 works');

        const folder = join(rig.top, 'www', site.name);
        const modeOf = (path: string): string => (statSync(join(folder, path)).mode & 0o7777).toString(8);
        expect(['.', 'public', 'private', 'private/sessions', 'logs'].map(modeOf)).to.equal([
            '2750',
            '2750',
            '700',
            '700',
            '700'
        ]);
        expect((statSync(site.socket).mode & 0o777).toString(8)).to.equal('660');

        expect((await rig.delete(`/sites/${id}?deleteFiles=true`)).status).to.equal(200);
        expect(hasAccount(site.user)).to.be.false();
        expect((await rig.get('/sites')).data).to.equal([]);
    });

    real('can be set as each preset says, in the bounds that directives tell', async () => {
        const id = await rig.create('preset');
        const { data: directives } = await rig.get('/directives');
        const { data: presets } = await rig.get('/presets');
        const names = directives.map(({ name }: { name: string }) => name);
        for (const { name, pool, values } of presets) {
            expect(Object.keys(values).filter((each) => !names.includes(each))).to.equal([]);
            const set = [
                await rig.put(`/sites/${id}/pool`, pool),
                await rig.put(`/sites/${id}/settings`, { values })
            ];
            expect([name, ...set.map(({ status }) => status)]).to.equal([name, 200, 200]);
        }
        const limit = directives.find(({ name }: { name: string }) => name === 'memory_limit');
        expect(limit).to.include({ type: 'bytes', default: '128M' });
        const below = await rig.put(`/sites/${id}/settings`, {
            values: { memory_limit: String(limit.min - 1) }
        });
        expect(below.code).to.equal(40001);
        expect((await rig.post(`/sites/${id}/restart`)).data.state).to.equal('running');

        // Its release stays while it is used, and its sites have an extension or not as an admin says.
        expect((await rig.delete('/versions/8.2')).code).to.equal(40901);
        expect((await rig.delete('/versions/9.9')).code).to.equal(42251);
        rig.write(
            'preset',
            'public/index.php',
            "<?php echo function_exists('cal_days_in_month') ? 'yes' : 'no';"
        );
        const change = async (action: string): Promise<readonly unknown[]> => {
            const body = { name: 'calendar', action };
            const task = await rig.finish(await rig.post('/versions/8.2/extensions', body));
            expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
            const { data } = await rig.get('/versions/8.2/extensions');
            const { state } = data.find(({ name }: { name: string }) => name === 'calendar');
            return [state, (await rig.page('preset.test')).text];
        };
        try {
            expect(await change('disable')).to.equal(['disabled', 'no']);
        } finally {
            expect(await change('enable')).to.equal(['enabled', 'yes']);
        }
        // It is there: apt-get itself says so.
        const installed = await rig.finish(await rig.post('/versions', { release: '8.2' }));
        expect([installed.state, installed.error]).to.equal(['succeeded', null]);
        const { text } = await rig.panel.client.get(`/api/tasks/${installed.id}/events`);
        expect(text).to.include('already the newest version');
        for (const body of [
            { name: '../x', action: 'enable' },
            { name: 'calendar', action: 'burn' }
        ]) {
            expect((await rig.post('/versions/8.2/extensions', body)).code).to.equal(40001);
        }
        await rig.delete(`/sites/${id}?deleteFiles=true`);
    });

    real('has the engine serve what its PHP writes, in folders too', async () => {
        const id = await rig.create('made');
        rig.write(
            'made',
            'public/index.php',
            `<?php mkdir('up'); file_put_contents('up/one.txt', 'by PHP'); echo decoct(umask());`
        );
        expect((await rig.page('made.test')).text).to.equal('27');
        expect(await rig.page('made.test', '/up/one.txt')).to.include({ status: 200, text: 'by PHP' });
        await rig.delete(`/sites/${id}?deleteFiles=true`);
    });

    real('is refused with a runtime that is not driven, and nothing of it is made', async () => {
        const name = rig.name('franken');
        const refused = await rig.post('/sites', { name, domain: 'franken.test', runtime: 'frankenphp' });
        expect([refused.status, refused.code]).to.equal([503, 50302]);
        expect(hasAccount(`php-${name}`)).to.be.false();
        expect((await rig.get('/sites')).data).to.equal([]);
    });

    real('is taken back whole when its making fails', async () => {
        const name = rig.name('failed');
        const taken = await rig.create('taken');
        const task = await rig.finish(await rig.post('/sites', { name, domain: 'taken.test' }));
        expect([task.state, task.error.code]).to.equal(['failed', 40900]);
        expect(hasAccount(`php-${name}`)).to.be.false();
        expect(existsSync(join(rig.top, 'www', name))).to.be.false();
        expect(existsSync(join(rig.top, 'run', String(taken + 1)))).to.be.false();
        expect((await rig.get('/sites')).data.length).to.equal(1);
        mkdirSync(join(rig.top, 'www', rig.name('mine')));
        expect((await rig.post('/sites', { name: rig.name('mine'), domain: 'mine.test' })).code).to.equal(
            40900
        );
        expect(existsSync(join(rig.top, 'www', rig.name('mine')))).to.be.true();
        await rig.delete(`/sites/${taken}?deleteFiles=true`);
    });

    real(
        'takes directives and workers that PHP accepts, and no others, and reloads under requests',
        async () => {
            const id = await rig.create('set');
            rig.write(
                'set',
                'public/index.php',
                `<?php echo ini_get('memory_limit'), ' ', ini_get('date.timezone');`
            );
            const set = await rig.put(`/sites/${id}/settings`, {
                values: { memory_limit: '300m', 'date.timezone': 'Europe/Berlin' }
            });
            expect(set.data[0], set.text).to.equal({ name: 'memory_limit', value: '300M', default: '128M' });
            expect((await rig.page('set.test')).text).to.equal('300M Europe/Berlin');
            const back = await rig.put(`/sites/${id}/settings`, { values: { memory_limit: null } });
            expect(back.data[0].value).to.equal('128M');
            // PHP-FPM cannot write its log: what it refuses is not kept, and the site goes on as it was.
            const [logs, away] = ['logs', 'away'].map((name) => join(rig.top, 'www', rig.name('set'), name));
            renameSync(logs ?? '', away ?? '');
            const [pools, settings] = [`/sites/${id}/pool`, `/sites/${id}/settings`];
            const before = [(await rig.get(pools)).text, (await rig.get(settings)).text];
            for (const refused of [
                await rig.put(settings, { values: { memory_limit: '77M' } }),
                await rig.put(pools, { mode: 'static', maxChildren: 3 })
            ]) {
                expect([refused.code, refused.text]).to.equal([42250, refused.text]);
                expect(refused.data.output).to.include('logs/');
            }
            const checked = await rig.post(`/sites/${id}/check`, { pool: { maxChildren: 3 } });
            expect(checked.data).to.include({ ok: false });
            renameSync(away ?? '', logs ?? '');
            expect([(await rig.get(pools)).text, (await rig.get(settings)).text]).to.equal(before);
            expect((await rig.page('set.test')).text).to.equal('128M Europe/Berlin');
            expect((await rig.post(`/sites/${id}/check`, { pool: { maxChildren: 7 } })).data).to.include({
                ok: true
            });

            let running = true;
            const statuses: number[] = [];
            const ask = async (): Promise<void> => {
                while (running) {
                    statuses.push((await rig.page('set.test')).status);
                }
            };
            const clients = [ask(), ask()];
            for (let round = 0; round < 5; round += 1) {
                expect((await rig.post(`/sites/${id}/reload`)).status).to.equal(200);
            }
            running = false;
            await Promise.all(clients);
            expect(statuses.length).to.be.above(20);
            expect(statuses.filter((status) => status !== 200)).to.equal([]);
            const pool = await rig.put(`/sites/${id}/pool`, {
                mode: 'dynamic',
                maxChildren: 8,
                slowSeconds: 1
            });
            expect(pool.data, pool.text).to.include({ mode: 'dynamic', maxChildren: 8, maxRequests: 500 });
            const size = await rig.post(`/sites/${id}/pool/auto-size`);
            expect(Number(size.data.pool.maxChildren)).to.be.above(1);
            expect(Number(size.data.reasons.length)).to.be.above(2);
        }
    );

    real(
        'tells of its workers, OPcache and logs, is back after a kill, and stops when it is told to',
        async () => {
            const [{ id }] = (await rig.get('/sites')).data;
            rig.write('set', 'public/slow.php', '<?php error_log("a word"); usleep(1400000); echo "slow";');
            expect((await rig.page('set.test', '/slow.php')).text).to.equal('slow');
            const { data: status } = await rig.get(`/sites/${id}/status`);
            expect(Number(status.total)).to.be.above(0);
            expect(Number(status.memoryBytes)).to.be.above(1_000_000);
            expect(status.opcache.enabled).to.be.true();
            // OPcache takes no file that was written within the last two seconds (`opcache.file_update_protection`).
            await until(async () => {
                await rig.page('set.test');
                return Number((await rig.get(`/sites/${id}/status`)).data.opcache.scripts) > 0;
            });
            expect((await rig.post(`/sites/${id}/opcache/reset`)).status).to.equal(200);
            expect((await rig.get(`/sites/${id}/logs?lines=50`)).text).to.contain('a word');
            expect(
                (await rig.get(`/sites/${id}/logs?log=access&lines=1`)).text.match(/event: line/g)?.length
            ).to.equal(1);
            expect((await rig.get(`/sites/${id}/logs?log=slow`)).text).to.contain('slow.php');
            rig.write('set', 'public/later.php', '<?php error_log("another word");');
            await rig.follow(`/sites/${id}/logs?lines=1&follow=true`, 'another word', () =>
                rig.page('set.test', '/later.php')
            );

            const { pid } = (await rig.get(`/sites/${id}`)).data;
            process.kill(pid, 'SIGKILL');
            await until(
                async () =>
                    (await rig.page('set.test')).status === 200 &&
                    (await rig.get(`/sites/${id}`)).data.pid !== pid
            );
            expect((await rig.post(`/sites/${id}/stop`)).data.state).to.equal('stopped');
            expect((await rig.get(`/sites/${id}/status`)).code).to.equal(50351);
            expect((await rig.post(`/sites/${id}/reload`)).code).to.equal(50351);
            expect((await rig.page('set.test')).status).to.be.above(499);
            await rig.panel.client.put('/api/plugins/php', { enabled: false });
            await rig.panel.client.put('/api/plugins/php', { enabled: true });
            expect((await rig.get(`/sites/${id}`)).data.state).to.equal('stopped');
            expect((await rig.post(`/sites/${id}/start`)).data.state).to.equal('running');
            await rig.panel.client.put('/api/plugins/php', { enabled: false });
            expect((await rig.page('set.test')).status).to.equal(200);
            await rig.panel.client.put('/api/plugins/php', { enabled: true });

            const { user, folder } = (await rig.get(`/sites/${id}`)).data;
            expect((await rig.delete(`/sites/${id}`)).status).to.equal(200);
            expect([hasAccount(user), existsSync(folder), statSync(join(folder, 'private')).uid]).to.equal([
                false,
                true,
                0
            ]);
        }
    );
});
