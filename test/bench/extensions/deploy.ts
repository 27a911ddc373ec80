/** Deployments: the way from a push to a release that serves against the same by hand, the way back and a large log. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { DeployRig, server, withoutSandbox } from '../../extensions/deploy/support/rig.ts';
import { median, number, type Report } from '../report.ts';

const run = promisify(execFile);
const rounds = 5;
const logBytes = 100 * 2 ** 20;
const buildSeconds = 2;
const polled = 50;
const pollSeconds = 60;
const gitServer = fileURLToPath(
    new URL('../../extensions/deploy/support/git-server-process.ts', import.meta.url)
);

export async function bench(report: Report): Promise<void> {
    if (withoutSandbox !== undefined) {
        console.log(`      not measured: ${withoutSandbox}`);
        return;
    }
    const rig = await DeployRig.start({ logBytes: 2 * logBytes });
    try {
        await measureReleases(rig, report);
        await measureLog(rig, report);
        await measurePolling(rig, report);
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

/**
 * Processor time of the panel and its programs while each project is asked for once, which happens each minute. Their branch is not there, so nothing
 * is built.
 */
async function measurePolling(rig: DeployRig, report: Report): Promise<void> {
    const server = spawn(
        process.execPath,
        ['--disable-warning=ExperimentalWarning', gitServer, join(rig.top, 'polled')],
        {
            stdio: ['ignore', 'pipe', 'inherit']
        }
    );
    let asked = 0;
    try {
        const [first] = (await once(server.stdout, 'data')) as [Buffer];
        const url = `http://127.0.0.1:${Number(first.toString())}/polled.git`;
        server.stdout.on('data', (chunk: Buffer) => (asked += chunk.toString().split('\n').length - 1));
        for (let at = 0; at < polled; at += 1) {
            const source = { url, branch: 'none' };
            await rig.project({ name: `polled-${at}`, source, triggers: { pollSeconds } });
        }
        // A plugin that begins anew asks for all of them at its first tick, ten seconds later.
        await rig.client.put('/api/plugins/deploy', { enabled: false });
        asked = 0;
        await rig.client.put('/api/plugins/deploy', { enabled: true });
        await wait(2_000);
        const [idle, idleAt] = [processorMs(), performance.now()];
        await wait(5_000);
        const perMs = (processorMs() - idle) / (performance.now() - idleAt);
        const [before, began] = [processorMs(), performance.now()];
        while (asked < polled && performance.now() - began < pollSeconds * 1_000) {
            await wait(50);
        }
        await wait(500);
        const used = processorMs() - before - perMs * (performance.now() - began);
        report.add({
            target: 'dp4',
            what: `a core for ${polled} projects that are polled each minute`,
            value: (used / asked) * (polled / (pollSeconds * 1_000)) * 100,
            unit: '%',
            most: [2, 1],
            of: `${number(used / asked)} ms for each of ${asked}`
        });
    } finally {
        const ended = once(server, 'exit');
        server.kill();
        await ended;
    }
}

/** Processor time of this process, in which the panel runs, and of the programs that it has ended. */
function processorMs(): number {
    const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
    const ticks = fields.split(' ').slice(11, 15).map(Number);
    return ticks.reduce((sum, each) => sum + each, 0) * 10;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return (performance.now() - began) / 1_000;
}
