/** What the monitoring costs: a sample of this machine, the count of requests, and the search in log files. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { Sampler } from '../../../extensions/monitoring/src/sampling/sampler.ts';
import { createMachine } from '../../../extensions/monitoring/src/sampling/sources/machine.ts';
import { Counts } from '../../../extensions/monitoring/src/traffic/counts.ts';
import { TopCounts } from '../../../extensions/monitoring/src/traffic/top.ts';
import { createMonitoringRig } from '../../extensions/monitoring/rig.ts';
import { median, number, type Report } from '../report.ts';

const samples = 100;
const logBytes = 64 * 1024 * 1024;
/** Ten seconds of 2,000 a second. */
const [requests, requestSeconds] = [20_000, 10];
const rounds = 5;

export async function bench(report: Report): Promise<void> {
    await measureSample(report);
    await measureTraffic(report);
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
