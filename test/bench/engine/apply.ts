/** Targets 9 to 11: the time from a change until it is served: through the panel, by a bare call of the engine, and by nginx with a file for each host. */
import { cpSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import Sqlite from 'better-sqlite3';

import { engineHome } from '../../../core/src/engine/files/home.ts';
import { startCaddy, type TestCaddy } from '../../support/engine/caddy.ts';
import type { Client } from '../../support/panel/client.ts';
import type { PanelProcess } from '../../support/panel/process.ts';
import { median, number, type Report } from '../report.ts';
import { nameOf, startFleet } from '../servers/fleet.ts';
import { startNginx } from '../servers/nginx.ts';

const few = 10;
const many = 10_000;
const repeats = 9;
/** The panel loads at most one configuration a second. */
const windowMs = 1_050;
const mark = 'X-Bench';

interface Seen {
    readonly status: number;
    readonly mark: string;
    readonly body: string;
}

/** Sends one request on a connection of its own. */
function look(port: number, host: string): Promise<Seen> {
    return new Promise((resolve, reject) => {
        const sent = request(
            { host: '127.0.0.1', port, agent: false, setHost: false, headers: { host }, timeout: 10_000 },
            (answer) => {
                let body = '';
                answer.on('data', (chunk: Buffer) => {
                    body += chunk.toString();
                });
                answer.once('end', () =>
                    resolve({
                        status: answer.statusCode ?? 0,
                        mark: String(answer.headers[mark.toLowerCase()] ?? ''),
                        body
                    })
                );
            }
        );
        sent.once('error', reject);
        sent.end();
    });
}

/** Milliseconds from the beginning of a change until a new connection shows it. */
async function served(
    change: () => Promise<unknown>,
    port: number,
    host: string,
    isServed: (seen: Seen) => boolean
): Promise<number> {
    const began = performance.now();
    await change();
    while (!(await look(port, host).then(isServed, () => false))) {
        if (performance.now() - began > 60_000) {
            throw new Error(`A change of ${host} is not served`);
        }
        await wait(1);
    }
    return performance.now() - began;
}

interface Fleet {
    readonly panel: PanelProcess;
    readonly client: Client;
    readonly bare: TestCaddy;
    readonly upstreams: readonly string[];
}

type Times = Readonly<
    Record<'settings' | 'reload' | 'bare' | 'durable' | 'upstream' | 'toggle' | 'create', number>
>;

async function ok(answer: Promise<{ readonly code: number; readonly text: string }>): Promise<void> {
    const { code, text } = await answer;
    if (code !== 0) {
        throw new Error(text);
    }
}

const headers = (value: string) => ({
    headers: { request: [], response: [{ op: 'set', name: mark, value }] }
});

/** The panel's configuration in a form that a second engine can load, with the present table. */
async function twin({ panel, client, bare }: Fleet): Promise<string> {
    const { data } = await client.get('/api/proxyengine/config');
    const home = engineHome(panel.dataDir, null);
    const { folders } = bare.context;
    cpSync(home.table, folders.table, { recursive: true, verbatimSymlinks: true });
    return JSON.stringify(data)
        .replaceAll(home.adminSocket, folders.adminSocket)
        .replaceAll(home.logFile, folders.logFile)
        .replaceAll(home.storage, folders.storage)
        .replaceAll(home.table, folders.table)
        .replaceAll(new RegExp(`\\b${panel.httpPort}\\b`, 'g'), String(bare.settings.httpPort))
        .replaceAll(new RegExp(`\\b${panel.httpsPort}\\b`, 'g'), String(bare.settings.httpsPort));
}

/** Writes one row for good on the panel's disk, with nothing but SQLite. */
function bareWriter(folder: string): { write(): number; close(): void } {
    const database = new Sqlite(join(folder, 'bench.db'));
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    database.exec('create table row (text text)');
    const insert = database.prepare('insert into row values (?)');
    insert.run('the first write makes the file of the log');
    return {
        write() {
            const began = performance.now();
            insert.run('x'.repeat(1000));
            return performance.now() - began;
        },
        close: () => void database.close()
    };
}

async function timesOf(fleet: Fleet, count: number): Promise<Times> {
    const { panel, client, bare, upstreams } = fleet;
    const host = nameOf(count - 1);
    const id = count - 1;
    const taken: Record<keyof Times, number[]> = {
        settings: [],
        reload: [],
        bare: [],
        durable: [],
        upstream: [],
        toggle: [],
        create: []
    };
    await ok(client.put(`/api/hosts/${id}`, headers('bench0')));
    const config = await twin(fleet);
    const disk = bareWriter(panel.dataDir);
    for (let n = 1; n <= repeats; n += 1) {
        await wait(windowMs);
        taken.reload.push(
            await served(
                () => ok(client.put(`/api/hosts/${id}`, headers(`bench${n}`))),
                panel.httpPort,
                host,
                (seen) => seen.mark === `bench${n}`
            )
        );
        await wait(windowMs);
        taken.settings.push(
            await served(
                () => ok(client.put('/api/settings/engine.acmeEmail', { value: `bench${n}@example.test` })),
                panel.httpPort,
                host,
                (seen) => seen.status === 200
            )
        );
        // After the same rest as the panel's changes: what has rested is slower.
        await wait(windowMs);
        const changed = JSON.parse(config.replaceAll('bench0', `bench${n}`)) as Record<string, unknown>;
        taken.bare.push(
            await served(
                () => bare.load(changed),
                bare.settings.httpPort,
                host,
                (seen) => seen.mark === `bench${n}`
            )
        );
        taken.durable.push(disk.write());
    }
    disk.close();
    const other = nameOf(1);
    for (let n = 1; n <= repeats * 3; n += 1) {
        const wanted = n % 2;
        taken.upstream.push(
            await served(
                () => ok(client.put('/api/hosts/1', { upstream: upstreams[wanted] })),
                panel.httpPort,
                other,
                ({ body }) => body === String(wanted)
            )
        );
        taken.toggle.push(
            await served(
                () => ok(client.put('/api/hosts/1', { enabled: n % 2 === 0 })),
                panel.httpPort,
                other,
                ({ status }) => status === (n % 2 === 0 ? 200 : 404)
            )
        );
        if (n % 2 === 1) {
            await ok(client.put('/api/hosts/1', { enabled: true }));
        }
        const made = `new${n}.example.test`;
        taken.create.push(
            await served(
                () => ok(client.post('/api/hosts', { domain: made, upstream: upstreams[0] })),
                panel.httpPort,
                made,
                ({ status }) => status === 200
            )
        );
    }
    return Object.fromEntries(Object.entries(taken).map(([key, values]) => [key, median(values)])) as Times;
}

async function nginxTimes(): Promise<number> {
    const nginx = await startNginx(many, nameOf);
    try {
        const taken: number[] = [];
        for (let n = 1; n <= 3; n += 1) {
            taken.push(
                await served(
                    async () => {
                        nginx.write(many - 1, `bench${n}`);
                        await nginx.reload();
                    },
                    nginx.port,
                    nameOf(many - 1),
                    (seen) => seen.mark === `bench${n}`
                )
            );
        }
        return median(taken);
    } finally {
        await nginx.close();
    }
}

export async function bench(report: Report): Promise<void> {
    const servers: Server[] = [];
    const upstreams = await Promise.all(
        ['0', '1'].map(async (body) => {
            const server = createServer((_request, response) => response.end(body));
            servers.push(server);
            await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
            return `127.0.0.1:${(server.address() as AddressInfo).port}`;
        })
    );
    const found: Times[] = [];
    try {
        for (const count of [few, many]) {
            const panel = await startFleet(count, upstreams[0] ?? '');
            const bare = await startCaddy();
            try {
                const times = await timesOf({ panel, client: await panel.login(), bare, upstreams }, count);
                found.push(times);
                report.add({
                    target: '9',
                    what: `a setting with a reload through the panel against the bare call, ${count} hosts`,
                    value: times.settings / times.bare,
                    most: [1.5, 1.2],
                    of: `${number(times.settings)} of ${number(times.bare)} ms`
                });
                report.add({
                    target: '',
                    what: `the bare call and one durable write of bare SQLite against the bare call, ${count} hosts`,
                    value: (times.bare + times.durable) / times.bare,
                    of: `${number(times.durable)} ms for the write`
                });
                report.add({
                    target: '',
                    what: `the bare call and a change of the panel that loads nothing against the bare call, ${count} hosts`,
                    value: (times.bare + times.upstream) / times.bare,
                    of: `${number(times.upstream)} ms for the change: its request, transaction, audit entry and table`
                });
                report.add({
                    target: '9',
                    what: `the behaviour of a host through the panel against the same, ${count} hosts`,
                    value: times.reload / times.bare,
                    most: [2, 1.5],
                    of: `${number(times.reload)} of ${number(times.bare)} ms`
                });
                report.add({
                    target: '9',
                    what: `a change without a reload against the bare call with one, ${count} hosts`,
                    value: times.upstream / times.bare,
                    most: [1.5, 1.2],
                    of: `${number(times.upstream)} of ${number(times.bare)} ms`
                });
            } finally {
                await bare.close();
                await panel.close();
            }
        }
    } finally {
        servers.forEach((server) => {
            server.closeAllConnections();
            server.close();
        });
    }
    const [ten, tenThousand] = found as [Times, Times];
    const against = (key: keyof Times, what: string, most: readonly [number, number]): void =>
        report.add({
            target: '10',
            what: `${what}: ${many} hosts against ${few}`,
            value: tenThousand[key] / ten[key],
            most,
            of: `${number(tenThousand[key])} of ${number(ten[key])} ms`
        });
    against('settings', 'a setting with a reload', [40, 25]);
    against('reload', 'a behaviour with a reload', [40, 25]);
    against('upstream', 'another upstream', [3, 1.5]);
    against('toggle', 'on and off', [3, 1.5]);
    against('create', 'a new host of a known profile', [3, 1.5]);
    const nginx = await nginxTimes();
    report.add({
        target: '11',
        what: `a change with a reload at ${many} hosts against nginx with a file for each`,
        value: tenThousand.reload / nginx,
        most: [0.125, 0.033],
        of: `${number(tenThousand.reload)} of ${number(nginx)} ms`
    });
    report.add({
        target: '11',
        what: 'the same without a reload',
        value: tenThousand.upstream / nginx,
        most: [0.125, 0.033],
        of: `${number(tenThousand.upstream)} of ${number(nginx)} ms`
    });
}
