/** What the monitoring costs: a sample of this machine, 500 checks, the count of requests, and the search in log files. */
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { createMachine } from '../../../extensions/monitoring/src/machine.ts';
import { Sampler } from '../../../extensions/monitoring/src/sampling/sampler.ts';
import { Counts } from '../../../extensions/monitoring/src/traffic/counts.ts';
import { TopCounts } from '../../../extensions/monitoring/src/traffic/top.ts';
import { createMonitoringRig, type MonitoringRig } from '../../extensions/monitoring/rig.ts';
import { startCaddy } from '../../support/engine/caddy.ts';
import type { PanelProcess } from '../../support/panel/process.ts';
import { freePort } from '../../support/ports.ts';
import { until } from '../../support/until.ts';
import { median, number, type Report } from '../report.ts';
import { nameOf, startFleet } from '../servers/fleet.ts';
import { compare, type Compared, ratio, statusOf, type Variant } from '../servers/load.ts';
import { startNginx } from '../servers/nginx.ts';

const samples = 100;
const logBytes = 64 * 1024 * 1024;
/** Ten seconds of 2,000 a second. */
const [requests, requestSeconds] = [20_000, 10];
const rounds = 5;
/** What a try costs does not depend on their number. */
const [checks, checkSeconds] = [50, 20];

export async function bench(report: Report): Promise<void> {
    await measureSample(report);
    await measureChecks(report);
    await measureTraffic(report);
    await measureEngine(report);
    await measureSearch(report);
}

/** Processor time: what else the machine does changes how long a sample takes. */
async function measureSample(report: Report): Promise<void> {
    const sampler = new Sampler(createMachine());
    const wanted = {
        ...{ intervalSeconds: 10, remoteDisks: false, containers: true },
        ...{ excludeDisks: [], excludeDevices: [], excludeInterfaces: [] }
    };
    await sampler.take(wanted);
    const times: number[] = [];
    const began = process.cpuUsage();
    for (let count = 0; count < samples; count += 1) {
        times.push((await sampler.take(wanted)).tookMs);
    }
    report.add({
        target: 'mo1',
        what: 'a sample of this machine, processor time',
        value: cpuMs(began) / samples,
        unit: 'ms',
        most: [4, 2],
        of: `median ${number(median(times))} ms by the clock`
    });
}

/** Checks of a web server that is a process of its own. */
async function measureChecks(report: Report): Promise<void> {
    await using open = new AsyncDisposableStack();
    const target = open.adopt(await startNginx(0, nameOf), (each) => each.close());
    const rig = open.adopt(
        await createMonitoringRig({ on: createMachine(), reach: ['127.0.0.0/8'] }),
        (each) => each.end()
    );
    const idle = await costOf(checkSeconds);
    for (let n = 0; n < checks; n += 1) {
        const check = {
            name: `Check ${n}`,
            kind: 'http',
            target: `http://${target.address}/`,
            intervalSeconds: 10
        };
        const { code, text } = await rig.ask('op', 'POST', '/api/plugins/monitoring/checks', check);
        if (code !== 0) {
            throw new Error(text);
        }
    }
    const before = await triesOf(rig);
    const busy = await costOf(checkSeconds);
    const tries = (await triesOf(rig)) - before;
    report.add({
        target: 'mo4',
        what: '500 checks of a web server at 60 s',
        value: (((busy - idle) / tries) * (500 / 60)) / 10,
        unit: '%',
        most: [6, 3],
        of: `of a core; ${tries} tries cost ${number(busy - idle)} ms`
    });
}

/** Processor time of this process over some seconds, in milliseconds. */
async function costOf(seconds: number): Promise<number> {
    const began = process.cpuUsage();
    await wait(seconds * 1_000);
    return cpuMs(began);
}

async function triesOf(rig: MonitoringRig): Promise<number> {
    // What waits is written for this answer.
    await rig.get('/checks/1/results');
    const [row] = await rig.host.db.read((em) =>
        em.execute<{ tries: number }[]>('select count(*) as tries from check_results')
    );
    return row?.tries ?? 0;
}

/** The engine with and without its access log, which the plugin counts meanwhile; in turns, as compare does. */
async function measureEngine(report: Report): Promise<void> {
    await using open = new AsyncDisposableStack();
    const upstream = open.adopt(await startNginx(0, nameOf), (each) => each.close());
    const plugins = open.adopt(mkdtempSync(join(tmpdir(), 'portico-bench-')), (folder) =>
        rmSync(folder, { recursive: true })
    );
    symlinkSync(
        fileURLToPath(new URL('../../../extensions/monitoring', import.meta.url)),
        join(plugins, 'monitoring')
    );
    const start = async (environment = {}): Promise<PanelProcess> =>
        open.adopt(await startFleet(10, upstream.address, environment), (panel) => panel.close());
    const plain = await start();
    const counted = await start({ PORTICO_PLUGIN_DIRS: plugins });
    const client = await counted.login();
    await until(
        async () => (await client.get('/api/plugins/monitoring')).data.state === 'running',
        'the plugin to run',
        90_000
    );
    await client.put('/api/settings', { 'engine.accessLog': true });
    const site = (panel: PanelProcess): Variant => ({
        url: `http://127.0.0.1:${panel.httpPort}/`,
        headers: { host: nameOf(1) },
        pid: panel.enginePid() ?? 0
    });
    const seen = async (): Promise<number> => {
        const { data } = await client.get('/api/plugins/monitoring/traffic');
        return data.reduce((sum: number, { requests: n }: { requests: number }) => sum + n, 0);
    };
    await until(
        async () => {
            await statusOf(site(counted).url, { host: nameOf(1) });
            return (await seen()) > 0;
        },
        'a request to be counted',
        90_000
    );
    const bare = open.adopt(await startBareEngine(upstream.address), ({ engine }) => engine.close());
    const found = await compare(
        { plain: site(plain), counted: site(counted), bare: bare.silent, logging: bare.logging },
        { rounds: 5, seconds: 2 }
    );
    const lost = (ours: Compared, theirs: Compared) => ({
        value: (1 - ratio(ours, theirs)) * 100,
        unit: '%',
        of: `${number(ours.rate)} of ${number(theirs.rate)} /s; its processor time for each ${number(ours.cpu)} and ${number(theirs.cpu)} µs`
    });
    report.add({
        target: 'mo5',
        what: 'the rate that the engine loses while its requests are counted, as fast as it can',
        most: [15, 5],
        ...lost(found.counted, found.plain)
    });
    report.add({
        target: '',
        what: 'what a bare engine loses with its own log, that nothing reads',
        ...lost(found.logging, found.bare)
    });
}

/** An engine without the panel: a proxy, and the same proxy with the engine's own log in a file. */
async function startBareEngine(upstream: string) {
    const engine = await startCaddy();
    const ports = { silent: engine.settings.httpPort, logging: await freePort() };
    const server = (port: number): object => ({
        listen: [`127.0.0.1:${port}`],
        automatic_https: { disable: true },
        routes: [
            {
                handle: [
                    {
                        handler: 'reverse_proxy',
                        upstreams: [{ dial: upstream }],
                        transport: { protocol: 'http' }
                    }
                ]
            }
        ]
    });
    await engine.load({
        admin: {
            listen: `unix/${engine.context.folders.adminSocket}`,
            origins: ['caddy'],
            config: { persist: false }
        },
        logging: {
            logs: {
                default: { exclude: ['http.log.access.requests'] },
                requests: {
                    include: ['http.log.access.requests'],
                    writer: { output: 'file', filename: engine.context.folders.accessLogFile }
                }
            }
        },
        apps: {
            http: {
                servers: {
                    silent: server(ports.silent),
                    logging: { ...server(ports.logging), logs: { default_logger_name: 'requests' } }
                }
            }
        }
    });
    const variant = (port: number): Variant => ({ url: `http://127.0.0.1:${port}/`, pid: engine.pid ?? 0 });
    return { engine, silent: variant(ports.silent), logging: variant(ports.logging) };
}

/** Visits of 50 hosts, with many paths and addresses. Reading them from the engine's log is row 19. */
async function measureTraffic(report: Report): Promise<void> {
    const top = new TopCounts();
    const counts = Array.from({ length: 50 }, () => new Counts());
    const at = new Date();
    const count = (n: number): void => {
        const hostId = n % counts.length;
        const record = {
            ...{ at, hostId, method: 'GET', path: `/articles/${n % 4_000}`, status: 200, bytes: 4_711 },
            ...{ ms: n % 300, ip: `203.${n % 200}.${n % 113}.7`, agent: `Browser/${n % 40}`, dropped: 0 }
        };
        counts[hostId]?.add(record);
        top.add(record, 'network');
    };
    Array.from({ length: requests }, (_, n) => count(n));
    const began = process.cpuUsage();
    for (let n = 0; n < requests; n += 1) {
        count(n);
    }
    report.add({
        target: 'mo2',
        what: 'counting 2,000 recorded requests a second',
        value: cpuMs(began) / (requestSeconds * 10),
        unit: '%',
        most: [5, 2.5],
        of: 'of a core; reading them from the log is row 19'
    });
}

async function measureSearch(report: Report): Promise<void> {
    const rig = await createMonitoringRig({ settings: { logFiles: ['/var/log/*.log'] } });
    try {
        const folder = join(rig.host.machine, 'var/log');
        mkdirSync(folder, { recursive: true });
        const file = openSync(join(folder, 'big.log'), 'w');
        const lines = Array.from(
            { length: 10_000 },
            (_, n) => `2026-03-01T10:00:00Z INFO request ${n} of /articles/${n % 97} took ${n % 300} ms\n`
        ).join('');
        const times = Math.ceil(logBytes / lines.length);
        for (let time = 0; time < times; time += 1) {
            writeSync(file, lines);
        }
        closeSync(file);
        const took: number[] = [];
        const spent: number[] = [];
        for (let round = 0; round < rounds; round += 1) {
            const [began, since] = [performance.now(), process.cpuUsage()];
            let next = '';
            do {
                const page = await rig.get(`/logs/lines?source=file:/var/log/big.log&q=absent${next}`, 'op');
                if (page.status !== 200 || page.data.length > 0) {
                    throw new Error(`It answered ${page.text.slice(0, 200)}`);
                }
                const cursor = /cursor=([^&>]+)/.exec(page.headers.get('link') ?? '')?.[1];
                next = cursor === undefined ? '' : `&cursor=${cursor}`;
            } while (next !== '');
            took.push(performance.now() - began);
            spent.push(cpuMs(since));
        }
        report.add({
            target: 'mo3',
            what: 'the search for a text that a log of 64 MiB does not have',
            value: (times * lines.length) / 1e3 / Math.min(...spent),
            unit: 'MB/s',
            least: [100, 200],
            of: `in a second of processor time; ${number((times * lines.length) / 1e3 / Math.min(...took))} by the clock`
        });
    } finally {
        await rig.end();
    }
}

function cpuMs(since: NodeJS.CpuUsage): number {
    const { user, system } = process.cpuUsage(since);
    return (user + system) / 1_000;
}
