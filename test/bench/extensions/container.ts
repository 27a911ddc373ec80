/** Lists of many containers, deploys, figures and long logs: each against the calls of the engine itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { image, noEngine, type TestEngine } from '../../extensions/container/engines.ts';
import { PanelBesideEngine } from '../../extensions/container/panel.ts';
import { ContainerRig } from '../../extensions/container/support/rig.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';

const containers = 500;
const streams = 50;
const logBytes = 100 * 1_048_576;
/** The most that the route gives of what was written before. */
const lines = 100_000;
const rounds = 5;
/** For so long a container has to run before a deploy counts as a success. */
const settledMs = 1_000;

export async function bench(report: Report): Promise<void> {
    if (noEngine !== undefined) {
        console.log(`      not measured: ${noEngine}`);
        return;
    }
    await measureEngine(report);
    await measureLog(report);
}

/** Stands before the engine, and counts what it is asked. */
class Counter implements AsyncDisposable {
    readonly path: string;
    readonly asked: string[] = [];
    readonly open = new Set<Socket>();
    readonly #server: Server;

    constructor(engine: TestEngine) {
        this.path = join(engine.root, 'counted.sock');
        this.#server = createServer((socket) => {
            const there = connect(engine.socket);
            this.open.add(socket);
            socket.once('data', (chunk) => this.asked.push(chunk.toString('latin1').split(' HTTP')[0] ?? ''));
            socket.on('close', () => {
                this.open.delete(socket);
                there.destroy();
            });
            [socket, there].forEach((each) => each.on('error', () => each.destroy()));
            there.on('close', () => socket.destroy());
            socket.pipe(there).pipe(socket);
        }).listen(this.path);
    }

    /** What is asked during some work. */
    async during(work: () => Promise<unknown>): Promise<readonly string[]> {
        this.asked.length = 0;
        await work();
        return [...this.asked];
    }

    async [Symbol.asyncDispose](): Promise<void> {
        this.open.forEach((socket) => socket.destroy());
        await new Promise((resolve) => this.#server.close(resolve));
    }
}

async function measureEngine(report: Report): Promise<void> {
    await using rig = await ContainerRig.start();
    await using counter = new Counter(rig.engine);
    rig.host.network.lead(counter.path, { path: counter.path });
    await measureStack(report, rig);
    await rig.host.setSettings({ socket: counter.path });
    await measureRedeploy(report, rig, counter);
    await measureStats(report, rig, counter);
    await rig.host.setSettings({ socket: rig.engine.socket });
    await measureList(report, rig, counter);
}

const stackOf = (name: string): object => ({
    name,
    compose: `services:\n${['a', 'b', 'c', 'd', 'e']
        .map((each) => `  ${each}: { image: "${image}", command: [sleep, "1000"], stop_grace_period: 0s }\n`)
        .join('')}`
});

async function measureStack(report: Report, rig: ContainerRig): Promise<void> {
    const bare = async (): Promise<void> => {
        const { engine } = rig;
        await engine.ask('POST', '/networks/create', { Name: 'bare' });
        for (const each of ['a', 'b', 'c', 'd', 'e']) {
            await engine.run(`bare-${each}`, { HostConfig: { NetworkMode: 'bare' } });
        }
    };
    const clear = async (): Promise<void> => {
        for (const name of await rig.engine.names()) {
            await rig.engine.ask('DELETE', `/containers/${name}?force=true`);
        }
        await rig.engine.ask('DELETE', '/networks/bare');
    };
    const [with_, without]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
        with_.push(await timed(() => rig.make('/stacks', stackOf('five'))));
        await rig.make('/stacks/five', {}, 'DELETE');
        without.push(await timed(bare));
        await clear();
    }
    report.add({
        target: 'co1',
        what: 'a stack of five services, without the second that it has to run, against the same calls',
        value: (median(with_) - settledMs) / median(without),
        most: [1.3, 1.1],
        of: `${number(median(with_))} less ${settledMs} of ${number(median(without))} ms`
    });
}

async function measureRedeploy(report: Report, rig: ContainerRig, counter: Counter): Promise<void> {
    await rig.make('/stacks', stackOf('five'));
    const asked = await counter.during(() => rig.make('/stacks/five/redeploy'));
    report.add({
        target: 'co2',
        what: 'calls that create something in a redeploy without changes',
        value: asked.filter((each) => /^POST .*\/(create|start|stop|restart)/.test(each)).length,
        unit: '',
        most: [0, 0],
        of: `of ${asked.length} calls`
    });
    await rig.make('/stacks/five', {}, 'DELETE');
}

async function measureStats(report: Report, rig: ContainerRig, counter: Counter): Promise<void> {
    await Promise.all(Array.from({ length: streams }, (_, index) => rig.engine.run(`stat-${index}`)));
    const seen: Set<string>[] = [new Set(), new Set(), new Set()];
    const end = new AbortController();
    counter.asked.length = 0;
    const readers = seen.map(async (names) => {
        for await (const { data } of rig.host.as('admin').events('/stats', { signal: end.signal })) {
            names.add((data as { name: string }).name);
        }
    });
    await until(() => seen.every(({ size }) => size === streams), 'the figures of all', 60_000);
    report.add({
        target: 'co3',
        what: `subscriptions of ${seen.length} readers of the figures of ${streams} containers, for each container`,
        value: counter.asked.filter((each) => each.includes('/stats')).length / streams,
        unit: '',
        most: [1, 1]
    });
    end.abort();
    await Promise.allSettled(readers);
    await until(() => counter.open.size === 0, 'the end of the subscriptions').catch(() => undefined);
    report.add({
        target: 'co4',
        what: 'subscriptions that are left when the last reader is gone',
        value: counter.open.size,
        unit: '',
        most: [0, 0]
    });
    for (const name of await rig.engine.names()) {
        await rig.engine.ask('DELETE', `/containers/${name}?force=true`);
    }
}

async function measureList(report: Report, rig: ContainerRig, counter: Counter): Promise<void> {
    for (let count = 0; count < containers; count += 1) {
        await rig.engine.ask('POST', `/containers/create?name=many-${count}`, {
            Image: image,
            Cmd: ['true']
        });
    }
    const path = '/containers?all=true&limit=500';
    const [listed, bare]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
        listed.push(
            await timed(async () => {
                const { status, text } = await rig.get(path);
                if (status !== 200) {
                    throw new Error(text);
                }
            })
        );
        bare.push(await timed(() => rig.engine.ask('GET', '/containers/json?all=true')));
    }
    report.add({
        target: 'co5',
        what: `a list of ${containers} containers against the engine's own`,
        value: median(listed) / median(bare),
        most: [2, 1.5],
        of: `${number(median(listed))} of ${number(median(bare))} ms`
    });
    await rig.host.setSettings({ socket: counter.path });
    await rig.get('/containers');
    report.add({
        target: 'co6',
        what: 'calls of the engine for that list',
        value: (await counter.during(() => rig.get(path))).length,
        unit: '',
        most: [1, 1]
    });
}

/** The panel and the reader are processes of their own. */
async function measureLog(report: Report): Promise<void> {
    await using machine = await PanelBesideEngine.start(['container']);
    const { engine } = machine;
    const line = 'x'.repeat(1_100);
    const id = await engine.run('talker', {
        Cmd: ['busybox', 'sh', '-c', `busybox yes ${line} | busybox head -n ${lines}; sleep 1000`],
        HostConfig: { LogConfig: { Type: 'json-file', Config: {} } }
    });
    const file = join(engine.root, 'data', 'containers', id, `${id}-json.log`);
    const isWritten = (): boolean => existsSync(file) && statSync(file).size > lines * (line.length + 70);
    await until(isWritten, 'the log', 300_000);
    const ratios: number[] = [];
    let of = '';
    let grown = 0;
    for (let round = 0; round < 3; round += 1) {
        const before = residentOf(machine.pid);
        const peak = watch(machine.pid);
        const through = await timedRead(
            machine.read(`/container/containers/talker/logs?tail=${lines}&follow=false`)
        );
        grown = Math.max(grown, (await peak.stop()) - before);
        const direct = await timedRead(
            spawn('docker', ['-H', `unix://${engine.socket}`, 'logs', '--timestamps', 'talker'], {
                stdio: ['ignore', 'pipe', 'ignore']
            })
        );
        ratios.push(direct.ms / through.ms);
        of = `${number(through.ms / 1_000)} s, docker logs ${number(direct.ms / 1_000)} s`;
    }
    report.add({
        target: 'co7',
        what: 'the speed of a log of 100 MB against docker logs',
        value: median(ratios),
        least: [0.35, 0.5],
        of
    });
    report.add({
        target: 'co8',
        what: 'memory that the panel takes for it',
        value: grown / 1_024,
        unit: 'MiB',
        most: [64, 32]
    });
}

async function timedRead(child: ChildProcess): Promise<{ readonly ms: number; readonly bytes: number }> {
    const began = performance.now();
    let bytes = 0;
    for await (const chunk of child.stdout ?? []) {
        bytes += (chunk as Buffer).length;
    }
    if (child.exitCode === null && child.signalCode === null) {
        await once(child, 'exit');
    }
    if (bytes < logBytes) {
        throw new Error(`Only ${bytes} bytes came`);
    }
    return { ms: performance.now() - began, bytes };
}

/** Resident memory in KiB. */
const residentOf = (pid: number): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN);

function watch(pid: number): { stop(): Promise<number> } {
    let [peak, running] = [0, true];
    const done = (async () => {
        while (running) {
            peak = Math.max(peak, residentOf(pid));
            await wait(20);
        }
    })();
    return {
        async stop() {
            running = false;
            await done;
            return peak;
        }
    };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    await work();
    return performance.now() - began;
}
