import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { type Page, PhpRig, withoutPhp } from '../rig.ts';
import { makeRelease, mark } from '../stand-in.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutPhp, it);

const limitMs = 60_000;
const release = '7.8';
const index = `<?php
$new = ini_get('user_agent') === '${mark}';
if ($new && isset($_GET['fail'])) { http_response_code(500); }
if ($new && isset($_GET['die'])) { posix_kill(getmypid(), 11); }
if ($new && isset($_GET['slow'])) { usleep(300000); }
echo $new ? 'new' : 'old';
`;

let rig: PhpRig;
let id: number;

/** Asks again and again, until it is told to stop; resolves with every answer. */
function traffic(path = '/'): { stop(): Promise<readonly Page[]> } {
    let running = true;
    const one = async (): Promise<Page[]> => {
        const pages: Page[] = [];
        while (running) {
            pages.push(await rig.page('shop.test', path));
            await wait(5);
        }
        return pages;
    };
    const all = Promise.all([one(), one(), one()]);
    return {
        stop: async () => {
            running = false;
            return (await all).flat();
        }
    };
}

const begin = (more: object = {}) =>
    rig.post(`/sites/${id}/switch`, { release, percent: 50, observeSeconds: 5, ...more });
const state = async (): Promise<string> => (await rig.get(`/sites/${id}/switch`)).data.state;
const textsOf = (pages: readonly Page[]): readonly string[] =>
    [...new Set(pages.map(({ text }) => text))].sort();

describe('A switch to another release', { timeout: limitMs * 2 }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutPhp === undefined) {
            rig = await PhpRig.start(async (started) => {
                started.use(makeRelease(release));
                id = await started.create('shop', { release: '8.2' });
                started.write('shop', 'public/index.php', index);
            });
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('goes back when requests fail that did not before, and says why', async () => {
        const asked = traffic('/?fail');
        const task = await rig.finish(await begin());
        const pages = await asked.stop();
        expect([task.state, task.error.code]).to.equal(['failed', 42252]);
        expect(task.error.message).to.match(/\d+ of \d+ requests failed, and 0 of \d+ before/);
        expect(textsOf(pages)).to.equal(['new', 'old']);
        expect(await state()).to.equal('reverted');
        expect(
            textsOf(await Promise.all(Array.from({ length: 10 }, () => rig.page('shop.test', '/?fail'))))
        ).to.equal(['old']);
        const { data: site } = await rig.get(`/sites/${id}`);
        expect([site.release, site.state]).to.equal(['8.2', 'running']);
    });

    real(
        'goes back when a worker dies, when its path is answered otherwise, and when a person says so',
        async () => {
            const asked = traffic('/?die');
            const died = await rig.finish(await begin());
            await asked.stop();
            expect(died.error.message).to.match(/a worker died: child \d+ exited on signal 11/);
            const other = await rig.finish(await begin({ path: '/?fail' }));
            expect(other.error.message).to.contain('/?fail answers 500').and.to.contain('200');

            const accepted = await begin({ observeSeconds: 600 });
            await until(async () => (await state()) === 'observing');
            expect((await rig.get(`/sites/${id}`)).data.state).to.equal('switching');
            expect((await begin()).code).to.equal(40950);
            expect((await rig.put(`/sites/${id}/pool`, { maxChildren: 6 })).code).to.equal(40950);
            expect((await rig.delete(`/sites/${id}/switch`)).data).to.include({
                state: 'cancelled',
                from: '8.2',
                to: release
            });
            expect((await rig.finish(accepted)).state).to.not.equal('succeeded');
            expect((await rig.delete(`/sites/${id}/switch`)).code).to.equal(40400);
            expect(
                textsOf(await Promise.all(Array.from({ length: 10 }, () => rig.page('shop.test'))))
            ).to.equal(['old']);
        }
    );

    real('is taken back by the next start, when the panel ended in the middle', async () => {
        await begin({ observeSeconds: 600 });
        await until(async () => (await state()) === 'observing');
        await rig.panel.restart();
        await rig.panel.panel.settled();
        expect(['cancelled', 'reverted']).to.include(await state());
        expect(textsOf(await Promise.all(Array.from({ length: 10 }, () => rig.page('shop.test'))))).to.equal([
            'old'
        ]);
        expect((await rig.get('/sites')).data[0]).to.include({ release: '8.2', state: 'running' });
    });

    real('takes over without a lost request', async () => {
        const asked = traffic('/?slow');
        const task = await rig.finish(await begin());
        const pages = await asked.stop();
        expect([task.state, task.result], JSON.stringify(task.error)).to.equal([
            'succeeded',
            { siteId: id, release }
        ]);
        expect([...new Set(pages.map(({ status }) => status))]).to.equal([200]);
        expect(textsOf(pages)).to.equal(['new', 'old']);
        expect(await state()).to.equal('done');
        expect(textsOf(await Promise.all(Array.from({ length: 10 }, () => rig.page('shop.test'))))).to.equal([
            'new'
        ]);
        // And back at once, by a change of the site.
        const changed = await rig.put(`/sites/${id}`, { release: '8.2' });
        expect(changed.data, changed.text).to.include({ release: '8.2', state: 'running' });
        expect((await rig.page('shop.test')).text).to.equal('old');
        expect((await rig.put(`/sites/${id}`, { release: '7.0' })).code).to.equal(42251);
    });
});
