import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { freePort } from '../../support/ports.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { git } from './support/git-server.ts';
import { DeployRig, server, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 120_000;
let rig: DeployRig;

/** Processes of the account of the test. */
function processes(): readonly string[] {
    const uid = execFileSync('id', ['-u', rig.user]).toString().trim();
    return readdirSync('/proc').filter((name) => {
        try {
            const status = readFileSync(`/proc/${name}/status`, 'utf8');
            return new RegExp(`^Uid:\\s+${uid}\\b`, 'm').test(status) && !/^State:\s+[ZX]/m.test(status);
        } catch {
            return false;
        }
    });
}

/** How many processors the group of a process may use: 0.5 is half of one. Null: as many as there are. */
function processorsOf(pid: string): number | null {
    const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
    const [, , path = ''] = groups.find((line) => /:cpu\b/.test(line))?.split(':') ?? [];
    const folder = `/sys/fs/cgroup/cpu${path}`;
    if (existsSync(`${folder}/cpu.cfs_quota_us`)) {
        const [quota, period] = ['quota', 'period'].map((name) =>
            Number(readFileSync(`${folder}/cpu.cfs_${name}_us`, 'utf8'))
        );
        return (quota ?? 0) < 0 ? null : (quota ?? 0) / (period ?? 1);
    }
    const [, , unified = ''] = groups.find((line) => line.startsWith('0::'))?.split(':') ?? [];
    const [quota, period] = readFileSync(`/sys/fs/cgroup${unified}/cpu.max`, 'utf8').split(' ');
    return quota === 'max' ? null : Number(quota) / Number(period);
}

describe('A repository with bad intentions', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start({
                buildMemoryBytes: 128 * 2 ** 20,
                buildProcesses: 32,
                buildCpuPercent: 70
            });
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('releases no link that leads out, whether it was committed or built', async () => {
        rig.git.create('links', { 'index.html': 'x', secret: { link: '/etc/passwd' } });
        const id = await rig.project({
            name: 'links',
            source: { url: rig.git.url('links') },
            host: { domain: 'links.test' }
        });
        const committed = await rig.deploy(id);
        expect([committed.state, committed.reason]).to.equal(['failed', 'BUILD_FAILED']);
        expect(await rig.log(committed.id)).to.contain('secret leads out of the release');
        await rig.put(`/projects/${id}`, {
            build: { kind: 'static', commands: [['sh', '-c', 'rm secret; ln -s ../../../.. up']] }
        });
        expect((await rig.deploy(id)).reason).to.equal('BUILD_FAILED');
        await rig.put(`/projects/${id}`, { build: { kind: 'static', commands: [['rm', 'secret']] } });
        expect((await rig.deploy(id)).state).to.equal('live');
        expect((await rig.page('links.test', '/../../etc/passwd')).status).to.equal(404);
    });

    real('ends whole when it is cancelled, and when it uses up its memory or its processes', async () => {
        rig.git.create('hungry', { 'index.html': 'x' });
        const id = await rig.project({ name: 'hungry', source: { url: rig.git.url('hungry') } });
        const build = (script: string) =>
            rig.put(`/projects/${id}`, { build: { kind: 'static', commands: [['sh', '-c', script]] } });
        await build('node -e "const kept = []; for (;;) kept.push(Buffer.alloc(1e7, 1))"');
        const hungry = await rig.deploy(id);
        expect([hungry.reason, (await rig.log(hungry.id)).includes('memory')]).to.equal([
            'BUILD_FAILED',
            true
        ]);
        await build('i=0; while [ $i -lt 100 ]; do sleep 30 & i=$((i+1)); done; wait');
        const forks = await rig.deploy(id);
        expect(forks.reason).to.equal('BUILD_FAILED');
        await build('setsid sh -c "setsid sleep 300 & sleep 300" & echo started; sleep 300');
        const begun = await rig.begin(id);
        await until(
            () => processes().length > 2 && processes().map(processorsOf).includes(0.7),
            'the build within its share of a processor'
        );
        const start = performance.now();
        expect((await rig.post(`/deployments/${begun.id}/cancel`)).data.state).to.equal('cancelled');
        expect(performance.now() - start).to.be.below(5_000);
        expect(processes()).to.equal([]);
    });

    real('reaches no network where the project forbids it', async () => {
        rig.git.create('quiet', { 'index.html': 'x' });
        const id = await rig.project({
            name: 'quiet',
            source: { url: rig.git.url('quiet') },
            build: {
                kind: 'static',
                network: false,
                commands: [
                    [
                        'node',
                        '-e',
                        `fetch('${rig.git.url('quiet')}/info/refs?service=git-upload-pack').then(() => process.exit(9), () => console.log('no way'))`
                    ]
                ]
            }
        });
        const deployment = await rig.serve(id);
        expect(await rig.log(deployment.id)).to.contain('no way');
    });

    real('cannot pass the server of another account off as its own', async () => {
        const port = await freePort();
        const other: Server = createServer((_, response) => response.end('mine'));
        await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
        try {
            rig.git.create('fake', {
                'package.json': '{"scripts":{"start":"node x.js"}}',
                'x.js': 'setInterval(() => {}, 1000)'
            });
            const id = await rig.project({
                name: 'fake',
                source: { url: rig.git.url('fake') },
                host: { domain: 'fake.test' },
                run: { port },
                health: { successes: 1 }
            });
            const deployment = await rig.deploy(id);
            expect([deployment.state, deployment.reason]).to.equal(['failed', 'START_FAILED']);
            expect(await rig.log(deployment.id)).to.contain('is no program of this release');
            expect((await rig.get(`/projects/${id}`)).data.state).to.equal('empty');
        } finally {
            await new Promise((resolve) => other.close(resolve));
        }
    });

    real('fetches submodules by addresses that are accepted, and no others', async () => {
        rig.git.create('lib', { 'lib.js': 'exports.text = "from the submodule";' });
        rig.git.create('parent', {
            'package.json': '{"scripts":{"start":"node x.js"}}',
            'x.js': server('x')
        });
        const work = rig.git.work('parent');
        const lib = git(rig.git.work('lib'), 'rev-parse', 'HEAD');
        const link = (url: string): void => {
            git(work, 'update-index', '--add', '--cacheinfo', `160000,${lib},lib`);
            git(work, 'config', '--file', '.gitmodules', 'submodule.lib.path', 'lib');
            git(work, 'config', '--file', '.gitmodules', 'submodule.lib.url', url);
            git(work, 'add', '.gitmodules');
            git(work, 'commit', '--quiet', '--message', 'Submodule');
            git(work, 'push', '--quiet', 'origin', 'HEAD:refs/heads/main');
        };
        link('../lib.git');
        const id = await rig.project({
            name: 'parent',
            source: { url: rig.git.url('parent'), submodules: true },
            health: { successes: 1 }
        });
        await rig.serve(id);
        expect(existsSync(join(rig.folder, `projects/${id}/releases/1/lib/lib.js`))).to.be.true();
        const touched = join(rig.top, 'touched');
        for (const url of [
            `ext::sh -c touch% ${touched}`,
            `file://${rig.git.top}/lib.git`,
            `--upload-pack=touch ${touched}`,
            `${rig.git.top}/lib.git`
        ]) {
            link(url);
            expect((await rig.deploy(id)).reason, url).to.equal('FETCH_FAILED');
        }
        expect(existsSync(touched)).to.be.false();
    });
});
