import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ExportQueue } from '../../../../extensions/monitoring/src/exports/queue.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';
import { noPrometheus, PrometheusServer } from './prometheus-server.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const secret = 'Bearer very-secret-token';
/**
 * Fields of `otlp.json` that the plugin leaves out: they say nothing in it, and the protocol lets them be absent. The file is what the protocol's own
 * serializer wrote of the same two gauges (docs/adr/0081).
 */
const notSent = new Set(['droppedAttributesCount', 'version', 'startTimeUnixNano']);

describe('/api/plugins/monitoring/exports', () => {
    let rig: MonitoringRig;
    const create = async (more: object = {}) =>
        (
            await rig.ask('root', 'POST', `${base}/exports`, {
                type: 'remote_write',
                url: 'https://metrics.test/api/v1/write?tenant=1',
                intervalSeconds: 10,
                ...more
            })
        ).data;
    const read = async (id: number) => (await rig.get(`/exports/${id}`, 'root')).data;
    /** The export as it is when it says so. */
    const state = (id: number, holds: (of: { lastError: string | null; queued: number }) => boolean) =>
        until(async () => {
            const seen = await read(id);
            return holds(seen) ? seen : null;
        }, 'the export to get there');

    beforeEach(async () => {
        rig = await createMonitoringRig();
    });
    afterEach(() => rig.end());

    itUnless(noPrometheus, it)(
        'sends to a real Prometheus, and sends what waited after it was killed',
        async () => {
            const server = await PrometheusServer.start();
            rig.machine.time = Math.floor(Date.now() / 10_000) * 10_000 + 100;
            rig.host.network.answer('metrics.test', async (request) => {
                const { pathname, search } = new URL(request.url);
                return fetch(`${server.url}${pathname}${search}`, {
                    method: request.method,
                    headers: request.headers,
                    body: await request.arrayBuffer()
                });
            });
            try {
                const { id } = await create({ labels: { site: 'a "b"' } });
                await rig.machine.tick();
                await state(id, (seen) => seen.queued === 0 && seen.lastError === null);
                const memory = await server.query('portico_memory_used_percent', rig.machine.time);
                expect(memory).to.equal([
                    {
                        metric: {
                            __name__: 'portico_memory_used_percent',
                            instance: 'unknown',
                            site: 'a "b"'
                        },
                        value: '75'
                    }
                ]);
                const disks = await server.query('portico_disk_used_percent', rig.machine.time);
                expect(disks.map(({ metric }) => metric['disk']).sort()).to.equal([
                    '/',
                    '/srv/my files',
                    '/tank'
                ]);
                await server.kill();
                for (let n = 0; n < 3; n += 1) {
                    await rig.machine.tick();
                }
                const waiting = await state(id, (seen) => seen.queued === 3);
                expect(waiting.lastError).to.be.a.string();
                await server.start();
                // The pause after a failure ends first.
                rig.machine.steady += 600_000;
                await rig.machine.tick();
                await state(id, (seen) => seen.queued === 0 && seen.lastError === null);
                const [counted] = await server.query(
                    'count_over_time(portico_memory_used_percent[10m])',
                    rig.machine.time
                );
                expect(counted?.value).to.equal('5');
                const test = (await rig.ask('root', 'POST', `${base}/exports/${id}/test`)).data;
                expect(test).to.equal({ ok: true, status: 204, message: 'It was taken' });
            } finally {
                await server.close();
            }
        }
    );

    it('sends OTLP with the wanted metrics only', async () => {
        rig.host.network.answer('metrics.test', {});
        const { id } = await create({
            type: 'otlp',
            metrics: ['memory.used', 'disk.usedPercent:/tank'],
            labels: { instance: 'web-1' },
            headers: { Authorization: secret }
        });
        await rig.machine.tick();
        await state(id, (seen) => seen.queued === 0 && seen.lastError === null);
        const [request] = rig.host.network.requests;
        expect(request?.headers.get('authorization')).to.equal(secret);
        expect(request?.headers.get('content-type')).to.equal('application/json');
        const time = `${rig.machine.time}000000`;
        const parts = (await request?.json()) as object;
        expect(parts).to.equal(
            JSON.parse(readFileSync(new URL('otlp.json', import.meta.url), 'utf8'), (name, value: unknown) =>
                notSent.has(name) ? undefined : name === 'timeUnixNano' ? time : value
            )
        );
    });

    it('drops what is refused, keeps what can be taken later, and waits as long as it is asked to', async () => {
        const statuses = [400, 429, 503, 204];
        rig.host.network.answer('metrics.test', () => {
            const status = statuses.shift() ?? 204;
            return new Response(status === 204 ? null : `no: ${secret}`, {
                status,
                headers: status === 429 ? { 'retry-after': '60' } : {}
            });
        });
        const { id } = await create({ headers: { Authorization: secret } });
        await rig.machine.tick();
        const refused = await state(id, (seen) => seen.queued === 0 && seen.lastError !== null);
        expect(refused).to.include({
            dropped: 1,
            lastError: 'It answered 400: no: ***',
            lastSuccessAt: null
        });
        await rig.machine.tick();
        await state(id, (seen) => seen.lastError?.startsWith('It answered 429') === true);
        for (let n = 0; n < 5; n += 1) {
            await rig.machine.tick();
        }
        expect(rig.host.network.requests).to.have.length(2);
        await rig.machine.tick();
        await state(id, (seen) => seen.lastError?.startsWith('It answered 503') === true);
        expect(rig.host.network.requests).to.have.length(3);
        await rig.machine.tick();
        const sent = await state(id, (seen) => seen.queued === 0);
        expect(sent).to.include({ dropped: 1, lastError: null });
        expect(rig.host.network.requests).to.have.length(3 + 8);
    });

    it('keeps what waits over a restart, for an hour', async () => {
        rig.host.network.answer('metrics.test', new Response(null, { status: 503 }));
        const { id } = await create();
        await rig.machine.tick();
        await state(id, (seen) => seen.queued === 1);
        await rig.host.restart();
        // The first sample after the start waits, too.
        expect(await state(id, (seen) => seen.queued === 2)).to.include({ lastError: 'It answered 503' });
        rig.machine.pass(3_600_000);
        await rig.machine.tick();
        expect(await state(id, (seen) => seen.queued === 1)).to.include({ dropped: 2 });
        expect((await rig.ask('root', 'DELETE', `${base}/exports/${id}`)).status).to.equal(200);
        await rig.machine.tick();
        expect((await rig.get('/exports', 'root')).data).to.equal([]);
    });

    it('never gives the values of headers back, follows no redirect, and asks nothing while it is off', async () => {
        rig.host.network.answer(
            'metrics.test',
            () => new Response(null, { status: 307, headers: { location: 'https://other.test/' } })
        );
        const made = await create({ headers: { Authorization: secret, 'X-Scope-OrgID': 'one' } });
        expect(made.headers).to.equal({ Authorization: { set: true }, 'X-Scope-OrgID': { set: true } });
        const changed = await rig.ask('root', 'PUT', `${base}/exports/${made.id}`, {
            headers: { Authorization: { set: true } },
            version: made.version
        });
        expect(changed.data).to.include({ version: 2, headers: { Authorization: { set: true } } });
        const test = await rig.ask('root', 'POST', `${base}/exports/${made.id}/test`);
        expect(test.data).to.equal({ ok: false, status: 307, message: 'It answered 307' });
        expect(rig.host.network.requests.map(({ url }) => new URL(url).hostname)).to.equal(['metrics.test']);
        expect(rig.host.network.requests[0]?.headers.get('authorization')).to.equal(secret);
        await rig.ask('root', 'PUT', `${base}/exports/${made.id}`, { enabled: false });
        await rig.machine.tick();
        expect(rig.host.network.requests).to.have.length(1);
        const seen = JSON.stringify([(await rig.get('/exports', 'root')).data, rig.host.audit, rig.host.log]);
        expect(seen).to.not.contain('very-secret-token');
    });

    it('refuses what it cannot send, private addresses without a grant, and callers without the permission', async () => {
        for (const [more, path] of [
            [{ url: 'https://user:pass@metrics.test/' }, 'url'],
            [{ metrics: ['cpu.unknown'] }, 'metrics.0'],
            [{ labels: { __name__: 'x' } }, 'labels.__name__'],
            [{ headers: { 'Content-Length': '1' } }, 'headers.Content-Length'],
            [{ headers: { New: { set: true } } }, 'headers.New']
        ] as const) {
            const { code, data } = await rig.ask('root', 'POST', `${base}/exports`, {
                type: 'otlp',
                url: 'https://metrics.test/',
                ...more
            });
            expect([code, data.errors[0].path]).to.equal([40001, path]);
        }
        for (const as of ['op', 'viewer'] as const) {
            expect((await rig.get('/exports', as)).status).to.equal(403);
        }
        const { id } = await create({ url: 'http://127.0.0.1:9/' });
        const test = await rig.ask('root', 'POST', `${base}/exports/${id}/test`);
        expect(test.data).to.include({ ok: false, status: null });
        expect(rig.host.network.requests).to.equal([]);
        const stale = await rig.ask('root', 'PUT', `${base}/exports/${id}`, {
            intervalSeconds: 20,
            version: 9
        });
        expect(stale.code).to.equal(41200);
    });

    it('keeps 16 MiB at most, the newest', async () => {
        rig.host.network.answer('metrics.test', new Response(null, { status: 503 }));
        const { id } = await create({ enabled: false });
        const queue = new ExportQueue(rig.host.db);
        for (let n = 0; n < 5; n += 1) {
            await queue.add(id, rig.machine.time + n, Buffer.alloc(5 * 1024 * 1024, n));
        }
        expect(await read(id)).to.include({ queued: 3, dropped: 2 });
        expect((await queue.first(id))?.body[0]).to.equal(2);
    });
});
