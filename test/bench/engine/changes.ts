/** Target 14: fifty changes in twenty seconds, during visits, downloads and open WebSockets. */
import { get as httpGet } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import { WebSocket } from 'ws';

import type { Client } from '../../support/panel/client.ts';
import { startUpstream } from '../../support/servers/upstream.ts';
import { median, number, type Report } from '../report.ts';
import { nameOf, startFleet } from '../servers/fleet.ts';
import { wrk } from '../servers/load.ts';

const hosts = 100;
const halves = 10; // seconds
const changesOfHalf = 25;
const downloads = 10;
const sockets = 20;
const queued = 20;
const windowMs = 1_050;
/** The body of the downloads, which are sent slowly during the whole bench. */
const pieces = 200;
const pieceMs = 110;

export async function bench(report: Report): Promise<void> {
    const upstream = await startUpstream('one', (request, response) => {
        if (request.url !== '/slow') {
            response.end('ok');
            return true;
        }
        void (async () => {
            for (let n = 0; n < pieces; n += 1) {
                response.write('x'.repeat(1_000));
                await wait(pieceMs);
            }
            response.end();
        })();
        return true;
    });
    const panel = await startFleet(hosts, upstream.address);
    try {
        const client = await panel.login();
        const loads = async (): Promise<number> =>
            (await client.get('/api/proxyengine/status')).data.loads as number;
        const change = async (id: number, body: object): Promise<void> => {
            const { code, text } = await client.put(`/api/hosts/${id}`, body);
            if (code !== 0) {
                throw new Error(text);
            }
        };
        const slow = Array.from({ length: downloads }, () => download(panel.httpPort, nameOf(1)));
        let lost = 0;
        const open = await Promise.all(
            Array.from({ length: sockets }, () => connect(panel.httpPort, nameOf(1), () => (lost += 1)))
        );
        const before = await loads();

        const visits = wrk({
            url: `http://127.0.0.1:${panel.httpPort}/`,
            headers: { host: nameOf(1) },
            seconds: halves * 2
        });
        await paced(changesOfHalf, (n) =>
            change(
                10 + n,
                n % 3 === 0
                    ? { enabled: false }
                    : n % 3 === 1
                      ? { upstream: '127.0.0.1:9' }
                      : { maintenance: true }
            )
        );
        const [without, lostWithout] = [(await loads()) - before, lost];
        await paced(changesOfHalf, (n) =>
            change(
                50 + n,
                n % 5 < 2
                    ? {
                          headers: {
                              request: [],
                              response: [{ op: 'set', name: 'X-Bench', value: String(n) }]
                          }
                      }
                    : { notes: String(n), enabled: n % 2 === 0 }
            )
        );
        const seen = await visits;
        const issued = (await loads()) - before;
        const lostInAll = lost;
        open.forEach((socket) => socket.terminate());
        const whole = (await Promise.all(slow)).filter((bytes) => bytes === pieces * 1_000).length;

        report.add({
            target: '14',
            what: '50 changes in 20 s: answers that are not 2xx',
            value: seen.failures,
            unit: '',
            most: [0, 0],
            of: `${seen.requests} requests, ${seen.cut} on connections that were cut`
        });
        report.add({
            target: '14',
            what: 'downloads that were lost',
            value: downloads - whole,
            unit: '',
            most: [0, 0],
            of: `of ${downloads}`
        });
        report.add({
            target: '14',
            what: 'configurations loaded',
            value: issued,
            unit: '',
            most: [20, 10],
            of: 'for 10 changes of behaviour and 40 others'
        });
        report.add({
            target: '14',
            what: 'configurations loaded for changes that need none',
            value: without,
            unit: '',
            most: [0, 0],
            of: `for ${changesOfHalf} changes`
        });
        report.add({
            target: '14',
            what: 'WebSockets lost by changes that need no reload',
            value: lostWithout,
            unit: '',
            most: [0, 0],
            of: `of ${sockets}; by reloads ${lostInAll - lostWithout}`
        });
        await together(report, client, change);
    } finally {
        await panel.close();
        await upstream.close();
    }
}

/** Compares how long the engine is busy with many changes in one load and with a single change. */
async function together(
    report: Report,
    client: Client,
    change: (id: number, body: object) => Promise<void>
): Promise<void> {
    const body = (value: string): object => ({
        headers: { request: [], response: [{ op: 'set', name: 'X-Queued', value }] }
    });
    const duration = async (): Promise<{ readonly changes: number; readonly durationMs: number }> =>
        (await client.get('/api/proxyengine/status')).data.lastApply as {
            changes: number;
            durationMs: number;
        };
    const [alone, all]: [number[], number[]] = [[], []];
    let most = 0;
    for (let round = 0; round < 5; round += 1) {
        await wait(windowMs);
        await change(1, body(`alone ${round}`));
        alone.push((await duration()).durationMs);
        // Changes that arrive while no load is allowed go into one load.
        await Promise.all(Array.from({ length: queued }, (_, n) => change(2 + n, body(`${round} ${n}`))));
        const last = await duration();
        most = Math.max(most, last.changes);
        all.push(last.durationMs);
    }
    report.add({
        target: '14',
        what: `${queued} changes that wait against one alone`,
        value: median(all) / median(alone),
        most: [2, 1.2],
        of: `${number(median(all))} of ${number(median(alone))} ms, up to ${most} in one load`
    });
}

async function paced(count: number, work: (n: number) => Promise<void>): Promise<void> {
    const began = performance.now();
    for (let n = 0; n < count; n += 1) {
        await wait(Math.max(0, began + (n * halves * 1000) / count - performance.now()));
        await work(n);
    }
}

function download(port: number, host: string): Promise<number> {
    return new Promise((resolve) => {
        let bytes = 0;
        httpGet(
            { host: '127.0.0.1', port, path: '/slow', agent: false, setHost: false, headers: { host } },
            (answer) => {
                answer.on('data', (chunk: Buffer) => {
                    bytes += chunk.length;
                });
                answer.once('end', () => resolve(bytes));
                answer.once('error', () => resolve(-1));
            }
        ).once('error', () => resolve(-1));
    });
}

function connect(port: number, host: string, lost: () => void): Promise<WebSocket> {
    return new Promise((resolve, reject) => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`, { headers: { host } });
        socket.once('open', () => {
            socket.removeListener('error', reject);
            socket.on('error', () => undefined);
            socket.once('close', lost);
            resolve(socket);
        });
        socket.once('error', reject);
    });
}
