/** Target 19: what the panel spends on the access log while a plugin reads 5,000 records a second. */
import { appendFileSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import { createPluginFolder, pluginModule } from '../../support/plugins/folder.ts';
import { startUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';
import { number, type Report } from '../report.ts';
import { nameOf, startFleet } from '../servers/fleet.ts';
import { cpuOf } from '../servers/load.ts';

const seconds = 20;
const perSecond = 5_000;
const partsPerSecond = 20;
const reader = pluginModule(`
    let seen = 0;
    let dropped = 0;
    ctx.onStart(() => void (async () => {
        for await (const record of ctx.accessLog()) {
            seen += 1;
            dropped += record.dropped;
        }
    })().catch(() => undefined));
    ctx.route({ method: 'GET', path: '/seen', access: 'read', handler: () => ({ seen, dropped }) });
`);

export async function bench(report: Report): Promise<void> {
    const folder = createPluginFolder();
    folder.write('reader', reader, { manifest: { capabilities: { logs: ['access'] } } });
    const upstream = await startUpstream('one');
    const panel = await startFleet(10, upstream.address, { PORTICO_PLUGIN_DIRS: folder.path });
    try {
        const client = await panel.login();
        const seen = async (): Promise<{ readonly seen: number; readonly dropped: number }> =>
            (await client.get('/api/plugins/reader/seen')).data;
        await until(async () => (await client.get('/api/plugins/reader')).data.state === 'running');
        await client.put('/api/settings', { 'engine.accessLog': true });
        // The engine writes the first record; the others are its copies, so that an engine under load does not share the processor.
        await until(async () => {
            await visit(panel.httpPort);
            return (await seen()).seen > 0;
        });
        const path = await until(() => logOf(panel.enginePid() ?? 0));
        const line = JSON.parse(readFileSync(path, 'utf8').trim().split('\n').at(-1) ?? '') as object;
        await wait(2_000);
        const idle = await costOf(panel.pid, () => undefined);
        const before = (await seen()).seen;
        let written = 0;
        const cost = await costOf(panel.pid, () => {
            const now = Date.now() / 1000;
            const lines = Array.from({ length: perSecond / partsPerSecond }, (_none, index) => {
                const uri = `/shop/products/${written + index}?page=2`;
                const asked = { ...(line as { request: object }).request, uri };
                return `${JSON.stringify({ ...line, ts: now, request: asked })}\n`;
            });
            written += lines.length;
            appendFileSync(path, lines.join(''));
        });
        await until(async () => (await seen()).seen - before >= written, 'all records to be read');
        const { dropped } = await seen();
        const rate = written / cost.seconds;
        report.add({
            target: '19',
            what: `a core, while a plugin reads ${perSecond} records of the access log a second`,
            // A busy machine writes fewer: what a record costs holds all the same.
            value: ((cost.part - idle.part) * 100 * perSecond) / rate,
            unit: '%',
            most: [10, 7],
            of: `${number(cost.part * 100)} − ${number(idle.part * 100)} % idle, at ${number(rate)} records a second`
        });
        report.add({
            target: '19',
            what: 'records that were left out',
            value: dropped,
            unit: '',
            most: [0, 0]
        });
    } finally {
        await panel.close();
        await upstream.close();
        folder.remove();
    }
}

/** The part of a core that the process takes while something is done often. */
async function costOf(
    pid: number,
    work: () => void
): Promise<{ readonly part: number; readonly seconds: number }> {
    const [cpu, began] = [cpuOf(pid), performance.now()];
    for (let part = 1; part <= seconds * partsPerSecond; part += 1) {
        work();
        await wait(Math.max(0, began + (part * 1_000) / partsPerSecond - performance.now()));
    }
    const ms = performance.now() - began;
    return { part: (cpuOf(pid) - cpu) / 1_000 / ms, seconds: ms / 1_000 };
}

/** The access log that the engine has open; null while it has none. */
function logOf(pid: number): string | null {
    const open = readdirSync(`/proc/${pid}/fd`).map((each) => readlinkSync(`/proc/${pid}/fd/${each}`));
    return open.find((each) => each.endsWith('/access.log')) ?? null;
}

function visit(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
        request({ host: '127.0.0.1', port, path: '/', agent: false, headers: { host: nameOf(1) } })
            .once('response', (answer) => answer.resume().once('end', resolve))
            .once('error', reject)
            .end();
    });
}
