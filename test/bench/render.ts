/**
 * What the compiler costs, as ratios within one run: ten thousand sites against ten. With a real engine and wrk where they are there.
 * Run: node --conditions=portico-source test/bench/render.ts
 */
import { execFileSync, spawnSync } from 'node:child_process';

import { createProjection } from '../../core/src/engine/projection.ts';
import { render } from '../../core/src/engine/render.ts';
import type { Site } from '../../core/src/engine/site.ts';
import { freePort, startCaddy } from '../support/caddy.ts';
import { testContext, testSite } from '../support/site.ts';

const few = 10;
const many = 10_000;

/** Eight behaviours that real sites have. */
const behaviours: readonly Partial<Site>[] = [
    {},
    { compression: true },
    { securityHeaders: true },
    { compression: true, securityHeaders: true },
    { bodyLimitBytes: 10_000_000 },
    { headers: { request: [], response: [{ op: 'set', name: 'X-Served-By', value: 'portico' }] } },
    { timeouts: { connectSeconds: 5, readSeconds: 60, writeSeconds: 60 } },
    { compression: true, securityHeaders: true, bodyLimitBytes: 10_000_000, errorPages: [{ status: 502, body: 'away' }] }
];

const sites = (count: number, address = '127.0.0.1:3000'): readonly Site[] =>
    Array.from({ length: count }, (_, id) => testSite({ id, domain: `host${id}.example.test`, upstreams: [{ address, weight: 1 }], ...behaviours[id % behaviours.length] }));

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;

/** Median milliseconds of one call. */
const time = async (runs: number, work: (run: number) => unknown): Promise<number> => {
    const taken: number[] = [];
    for (let run = 0; run < runs; run += 1) {
        const start = process.hrtime.bigint();
        await work(run);
        taken.push(Number(process.hrtime.bigint() - start) / 1e6);
    }

    return median(taken);
};

const say = (what: string, value: number, unit: string, note = ''): void => {
    console.log(`${what.padEnd(58)} ${value.toFixed(3).padStart(10)} ${unit} ${note}`);
};

const filled = (count: number): ReturnType<typeof createProjection> => {
    const projection = createProjection(testContext());
    projection.change({ sites: sites(count).map((site) => ({ id: site.id, site })) });
    projection.loaded();
    return projection;
};

const changeTime = (count: number): Promise<number> => {
    const projection = filled(count);
    const site = sites(few)[3] ?? testSite();
    return time(2000, (run) => projection.change({ sites: [{ id: site.id, site: { ...site, upstreams: [{ address: `127.0.0.1:${3000 + run % 100}`, weight: 1 }] } }] }).table);
};

const scratch = await time(5, () => render({ ...testContext(), sites: sites(many), certificates: [] }).configHash);
say(`render from scratch, ${many} sites`, scratch, 'ms');
const changes = [await changeTime(few), await changeTime(many)] as const;
say(`one change in a projection of ${few}`, changes[0], 'ms');
say(`one change in a projection of ${many}`, changes[1], 'ms', `ratio ${(changes[1] / changes[0]).toFixed(2)}`);

const present = (program: string): boolean => spawnSync(program, ['version'], { stdio: 'ignore' }).error === undefined;
if (!present('caddy')) {
    console.log('no caddy here: the engine was not measured');
    process.exit(0);
}

const [caddy, bare, upstream, upstreamPort] = await Promise.all([startCaddy(), startCaddy(), startCaddy(), freePort()]);
const address = `127.0.0.1:${upstreamPort}`;
/** One server in an engine of its own. */
const serving = (engine: typeof bare, port: number, handler: Readonly<Record<string, unknown>>): Promise<void> => engine.load({
    admin: { listen: `unix/${engine.context.folders.adminSocket}`, origins: ['caddy'], config: { persist: false } },
    apps: { http: { servers: { one: { listen: [`127.0.0.1:${port}`], automatic_https: { disable: true }, routes: [{ handle: [handler] }] } } } }
});
await serving(upstream, upstreamPort, { handler: 'static_response', body: 'ok' });
try {
    const applied: number[] = [];
    const loads: number[] = [];
    for (const count of [few, many]) {
        const list = sites(count, address);
        await caddy.apply({ sites: list.map((site) => ({ id: site.id, site })) });
        const site = list.at(-1) ?? testSite();
        applied.push(await time(200, (run) => caddy.apply({ sites: [{ id: site.id, site: { ...site, enabled: run % 2 === 0 } }] })));
        await caddy.apply({ sites: [{ id: site.id, site }] });
        const config = caddy.projection.config();
        loads.push(await time(9, (run) => caddy.load({ ...config, logging: { logs: { default: { level: run % 2 === 0 ? 'ERROR' : 'WARN', writer: { output: 'discard' } } } } })));
        await caddy.load(config);
    }

    say(`on or off without a reload, ${few} sites`, applied[0] ?? NaN, 'ms');
    say(`on or off without a reload, ${many} sites`, applied[1] ?? NaN, 'ms', `ratio ${((applied[1] ?? NaN) / (applied[0] ?? NaN)).toFixed(2)}`);
    say(`a load, ${few} sites`, loads[0] ?? NaN, 'ms');
    say(`a load, ${many} sites`, loads[1] ?? NaN, 'ms', `ratio ${((loads[1] ?? NaN) / (loads[0] ?? NaN)).toFixed(2)}`);
    say(`memory of the engine, ${many} sites`, Number(/VmRSS:\s+(\d+)/.exec(execFileSync('cat', [`/proc/${caddy.pid}/status`]).toString())?.[1]) / 1024, 'MB');

    if (spawnSync('wrk', ['--version'], { stdio: 'ignore' }).error === undefined) {
        const port = await freePort();
        await serving(bare, port, { handler: 'reverse_proxy', upstreams: [{ dial: address }], transport: { protocol: 'http' } });
        const rate = (at: number, host: string): number =>
            Number(/Requests\/sec:\s+([\d.]+)/.exec(execFileSync('wrk', ['-t1', '-c32', '-d2s', '-H', `Host: ${host}`, `http://127.0.0.1:${at}/`]).toString())?.[1]);
        const rounds = Array.from({ length: 3 }, () => ({
            bare: rate(port, 'x.test'),
            first: rate(caddy.settings.httpPort, 'host0.example.test'),
            last: rate(caddy.settings.httpPort, `host${many - 8}.example.test`),
            rich: rate(caddy.settings.httpPort, `host${many - 1}.example.test`),
            unknown: rate(caddy.settings.httpPort, 'nobody.example.test')
        }));
        const of = (key: keyof (typeof rounds)[number]): number => median(rounds.map((round) => round[key]));
        say('one bare proxy', of('bare'), '/s');
        for (const key of ['first', 'last', 'rich', 'unknown'] as const) {
            say(`${key} of ${many}`, of(key), '/s', `ratio ${(of(key) / of('bare')).toFixed(2)}`);
        }
    }
}
finally {
    await Promise.all([caddy.close(), bare.close(), upstream.close()]);
}
