/** Deployments: the way from a push to a release that serves against the same by hand, the way back and a large log. */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { DeployRig, server, withoutSandbox } from '../../extensions/deploy/rig.ts';
import { median, number, type Report } from '../report.ts';

const run = promisify(execFile);
const rounds = 5;
const logBytes = 100 * 2 ** 20;
const buildSeconds = 2;

export async function bench(report: Report): Promise<void> {
    if (withoutSandbox !== undefined) {
        console.log(`      not measured: ${withoutSandbox}`);
        return;
    }
    const rig = await DeployRig.start({ logBytes: 2 * logBytes });
    try {
        await measureReleases(rig, report);
        await measureLog(rig, report);
    } finally {
        await rig.close();
    }
}

async function measureReleases(rig: DeployRig, report: Report): Promise<void> {
    rig.git.create('app', {
        'package.json': '{"scripts":{"start":"node server.js"}}',
        'server.js': server('0')
    });
    const id = await rig.project({
        name: 'app',
        source: { url: rig.git.url('app') },
        host: { domain: 'app.test' },
        build: { commands: [['sleep', String(buildSeconds)]] },
        run: { drainSeconds: 1 }
    });
    const [served, byHand]: [number[], number[]] = [[], []];
    for (let round = 1; round <= rounds; round += 1) {
        rig.git.commit('app', { 'server.js': server(String(round)) });
        const { id: deployment } = await rig.serve(id);
        const { queuedAt, switchedAt } = (await rig.get(`/deployments/${deployment}`)).data;
        served.push((Date.parse(switchedAt as string) - Date.parse(queuedAt as string)) / 1_000);
        const folder = join(rig.top, 'by-hand');
        byHand.push(
            await seconds(async () => {
                // The git server answers in this process, so nothing here may block it.
                await run('git', ['clone', '--quiet', '--depth=1', rig.git.url('app'), folder]);
                await run('sleep', [String(buildSeconds)]);
            })
        );
        rmSync(folder, { recursive: true, force: true });
    }
    report.add({
        target: 'dp1',
        what: 'from a push to a release that serves, without 2 s, against by hand',
        value: (median(served) - 2) / median(byHand),
        most: [1.2, 1],
        of: `${number(median(served))} of ${number(median(byHand))} s`
    });
    const back: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
        back.push(
            await seconds(async () => {
                const { data } = await rig.post(`/projects/${id}/rollback`);
                await rig.over(data.id as number);
            })
        );
    }
    report.add({ target: 'dp2', what: 'the way back', value: median(back), unit: 's', most: [3, 2] });
}

/** Memory of this process, in which the panel runs, while a build prints. */
async function measureLog(rig: DeployRig, report: Report): Promise<void> {
    rig.git.create('loud', { 'index.html': 'x' });
    const print = `head -c ${logBytes} /dev/zero | tr '\\0' x | fold -w 120`;
    const id = await rig.project({
        name: 'loud',
        source: { url: rig.git.url('loud') },
        build: { kind: 'static', commands: [['sh', '-c', print]] }
    });
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let most = before;
    const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20);
    await rig.serve(id);
    clearInterval(timer);
    const value = (most - before) / 2 ** 20;
    report.add({ target: 'dp3', what: '100 MiB of build log', value, unit: 'MiB', most: [32, 16] });
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return (performance.now() - began) / 1_000;
}
