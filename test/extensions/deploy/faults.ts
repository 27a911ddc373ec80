import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { asleep } from '../../support/panel/process.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { DeployRig, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 120_000;
const logBytes = 65_536;
let rig: DeployRig;

/** A project that serves a page, and what its next builds do. */
async function project(name: string) {
    rig.git.create(name, { 'index.html': 'first' });
    const id = await rig.project({
        name,
        source: { url: rig.git.url(name) },
        host: { domain: `${name}.test` }
    });
    await rig.serve(id);
    const build = (script: string) =>
        rig.put(`/projects/${id}`, { build: { kind: 'static', commands: [['sh', '-c', script]] } });
    return { id, build };
}

const below = (id: number, folder: string): readonly string[] =>
    readdirSync(join(rig.folder, `projects/${id}`, folder)).sort();

describe('A build that misbehaves', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start({ logBytes });
            mkdirSync(rig.folder, { recursive: true });
            execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=755', 'tmpfs', rig.folder]);
        }
    });

    after({ timeout: limitMs }, async () => {
        if (rig !== undefined) {
            execFileSync('umount', ['--lazy', rig.folder]);
        }
        await rig?.close();
    });

    real('fills the disk: what served goes on, nothing of it stays, and it can be repeated', async () => {
        const { id, build } = await project('disk');
        await build('busybox dd if=/dev/zero of=big bs=1M count=200');
        const full = await rig.deploy(id);
        expect([full.state, full.reason]).to.equal(['failed', 'BUILD_FAILED']);
        expect(await rig.log(full.id)).to.contain('No space left on device');
        expect((await rig.page('disk.test')).text).to.equal('first');
        expect([below(id, 'builds'), below(id, 'releases')]).to.equal([[], ['1']]);
        // The build fits, and its release does not.
        await build('busybox dd if=/dev/urandom of=big bs=1M count=40');
        const large = await rig.deploy(id);
        expect([large.state, large.reason]).to.equal(['failed', 'TOO_LARGE']);
        expect(await rig.log(large.id)).to.contain('no space left');
        expect((await rig.page('disk.test')).text).to.equal('first');
        expect([below(id, 'builds'), below(id, 'releases'), below(id, 'artifacts')]).to.equal([
            [],
            ['1'],
            ['1.tar']
        ]);
        await build('echo second >index.html');
        await rig.serve(id);
        expect((await rig.page('disk.test')).text).to.equal('second\n');
    });

    real('fills its log: the rest is left out, and said so', async () => {
        const { id, build } = await project('log');
        await build('yes 0123456789 | head -c 20000000; echo the end');
        const loud = await rig.serve(id);
        const text = await rig.log(loud.id);
        expect(text).to.contain('0123456789').and.to.contain('It serves');
        expect(text).to.match(/left out/);
        expect(text.length).to.be.below(2 * logBytes);
        const files = readdirSync(rig.panel.config.dataDir, { recursive: true, encoding: 'utf8' });
        const sizes = files
            .filter((name) => name.includes('deploy/') && name.includes('logs/'))
            .map((name) => statSync(join(rig.panel.config.dataDir, name)))
            .filter((entry) => entry.isFile())
            .map(({ size }) => size);
        expect(sizes.length > 0).to.be.true();
        expect(Math.max(...sizes)).to.be.below(2 * logBytes);
    });

    real('ignores every signal that can be ignored: a cancel ends it all the same', async () => {
        const { id, build } = await project('deaf');
        const sleeps = 200_000 + process.pid; // found among the processes of the machine
        await build(`trap "" TERM INT HUP QUIT USR1 USR2 PIPE; while :; do sleep ${sleeps}; done`);
        const begun = await rig.begin(id);
        await until(() => asleep(sleeps) === 1, 'the build');
        const start = performance.now();
        expect((await rig.post(`/deployments/${begun.id}/cancel`)).data.state).to.equal('cancelled');
        expect(performance.now() - start).to.be.below(5_000);
        expect(asleep(sleeps)).to.equal(0);
        expect((await rig.page('deaf.test')).text).to.equal('first');
        expect(below(id, 'builds')).to.equal([]);
    });
});
