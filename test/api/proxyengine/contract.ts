/** Section 10 of the contract: what the engine runs, what it should run, and who decides. */
import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readOrigin } from '../../../core/src/engine/caddy/origin.ts';
import { engineHome } from '../../../core/src/engine/files/home.ts';
import type { Answer } from '../../support/panel/client.ts';
import { type Consumer, outcome, startConsumer } from '../../support/panel/consumer.ts';
import { startUpstream, type TestUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let panel: Consumer;
let upstream: TestUpstream;
let viewer = '';
let operator = '';

before(async () => {
    upstream = await startUpstream('up');
    panel = await startConsumer();
    viewer = await panel.tokenOf('viewer');
    operator = await panel.tokenOf('operator');
});

after(async () => {
    await panel?.close();
    await upstream?.close();
});

const engine = '/api/proxyengine';
const make = (domain: string, more: object = {}): ReturnType<Consumer['client']['post']> =>
    panel.client.post('/api/hosts', { domain, upstream: upstream.address, ...more });
const status = async (): Promise<{
    state: string;
    running: boolean;
    wanted: string;
    pending: number;
    pendingHosts: number;
    pid: number | null;
    message: string | null;
    configuration: { wanted: string; running: string | null };
}> => (await panel.client.get(`${engine}/status`)).data;
const stateOf = async (path: string): Promise<[string, string | null]> => {
    const { data } = await panel.client.get(path);
    return [data.state, data.stateMessage];
};

/** Asks the engine past the panel, as only root can. */
const behindItsBack = (method: string, path: string, body: object): Promise<number> => {
    const folders = engineHome(panel.config.dataDir, panel.config.engineUser);
    return new Promise((resolve, reject) => {
        const sent = request(
            {
                socketPath: folders.adminSocket,
                method,
                path,
                headers: { host: readOrigin(folders), 'content-type': 'application/json' }
            },
            (answer) => {
                answer.resume();
                answer.once('end', () => resolve(answer.statusCode ?? 0));
            }
        );
        sent.once('error', reject);
        sent.end(JSON.stringify(body));
    });
};

describe('start, stop, restart and reload', () => {
    it('succeed where there is nothing to do, and say so', async () => {
        for (const [verb, changed] of [
            ['start', false],
            ['stop', true],
            ['stop', false],
            ['start', true],
            ['start', false],
            ['restart', true],
            ['reload', true]
        ] as const) {
            const { status: code, data } = await panel.client.post(`${engine}/${verb}`);
            expect([code, data.changed, data.state], verb).to.equal([
                200,
                changed,
                verb === 'stop' ? 'stopped' : 'running'
            ]);
        }
    });

    it('are for operators, and on record', async () => {
        expect((await panel.client.post(`${engine}/reload`, undefined, { token: operator })).status).to.equal(
            200
        );
        for (const verb of ['start', 'stop', 'restart', 'reload', 'drift/overwrite', 'revisions/1/restore']) {
            const answer = await panel.client.post(`${engine}/${verb}`, undefined, { token: viewer });
            expect([...outcome(answer), answer.data.permission], verb).to.equal([
                403,
                40300,
                'FORBIDDEN',
                'engine:control'
            ]);
        }
        const { data } = await panel.client.get('/api/audit?resource=proxyengine&outcome=success');
        expect((data as { action: string }[]).map(({ action }) => action)).to.include([
            'start',
            'stop',
            'restart',
            'reload'
        ]);
    });

    it('a stopped engine keeps changes waiting, and serves them when it starts', async () => {
        await panel.client.post(`${engine}/stop`);
        await expect(panel.visit('stopped.test')).to.reject();
        const made = await make('stopped.test');
        expect([made.status, made.data.state, made.data.stateMessage]).to.equal([
            201,
            'pending',
            'The engine is stopped'
        ]);
        expect(outcome(await panel.client.post(`${engine}/reload`))).to.equal([
            503,
            50301,
            'ENGINE_UNAVAILABLE'
        ]);
        expect((await panel.client.get(`${engine}/config`)).data).to.be.null();
        expect((await panel.client.get(`${engine}/upstreams`)).data).to.equal([]);
        await panel.restart();
        expect((await status()).state).to.equal('stopped');
        await panel.client.post(`${engine}/start`);
        expect([
            await stateOf(made.headers.location ?? ''),
            (await panel.visit('stopped.test')).status
        ]).to.equal([['applied', null], 200]);
    });

    it('outlives the panel: the same process serves on, and is found again', async () => {
        await make('outlives.test');
        const { pid } = await status();
        await panel.panel.stop();
        expect((await panel.visit('outlives.test')).status).to.equal(200);
        await panel.restart();
        expect((await status()).pid).to.equal(pid);
        expect((await panel.visit('outlives.test')).status).to.equal(200);
    });
});

describe('engine.autoReload', () => {
    it('off: changes wait for a reload, and are told apart', async () => {
        await panel.client.put('/api/settings', { 'engine.autoReload': false });
        const made = await make('waits.test');
        expect([made.data.state, made.data.stateMessage, (await panel.visit('waits.test')).status]).to.equal([
            'pending',
            'Waits for a reload',
            404
        ]);
        expect((await panel.client.get('/api/hosts?state=pending')).data).to.have.length(1);
        expect(await status()).to.include({ pending: 1, pendingHosts: 1 });
        expect(outcome(await make('refused.test', { advanced: [{ handler: 'rate_limit' }] }))).to.equal([
            422,
            42200,
            'ENGINE_REJECTED'
        ]);
        expect((await panel.client.post(`${engine}/reload`)).data).to.include({
            changed: true,
            pending: 0,
            error: null
        });
        expect([
            await stateOf(made.headers.location ?? ''),
            (await panel.visit('waits.test')).status
        ]).to.equal([['applied', null], 200]);
    });

    it('off: a retry gets the very answer that was given', async () => {
        const make = (): Promise<Answer> =>
            panel.client.post(
                '/api/hosts',
                { domain: 'retried.test', upstream: '127.0.0.1:9' },
                { headers: { 'idempotency-key': 'retried' } }
            );
        const first = await make();
        expect(first.data.stateMessage).to.equal('Waits for a reload');
        expect((await make()).text).to.equal(first.text);
    });

    it('on again: what waited is brought to the engine', async () => {
        const made = await make('waited.test');
        expect(made.data.state).to.equal('pending');
        await panel.client.put('/api/settings', { 'engine.autoReload': true });
        await until(
            async () => (await stateOf(made.headers.location ?? ''))[0] === 'applied',
            'the host is served'
        );
        expect((await panel.visit('waited.test')).status).to.equal(200);
        expect(await status()).to.include({ pending: 0, pendingHosts: 0 });
    });
});

describe('drift', () => {
    it('is seen, told by its path, and written over', async () => {
        await make('drift.test');
        expect((await panel.client.get(`${engine}/drift`)).data).to.equal({
            drifted: false,
            config: [],
            table: [],
            more: false
        });
        expect(
            await behindItsBack('POST', '/config/apps/http/servers/sites/routes', {
                match: [{ host: ['foreign.test'] }],
                handle: [{ handler: 'static_response', body: 'foreign' }]
            })
        ).to.equal(200);
        const { data } = await panel.client.get(`${engine}/drift`);
        expect([
            data.drifted,
            data.config.length,
            (data.config[0].path as string).replace(/\d+$/, 'n')
        ]).to.equal([true, 1, '/apps/http/servers/sites/routes/n']);
        const { configuration } = await status();
        expect(configuration.running).not.to.equal(configuration.wanted);
        expect((await panel.client.post(`${engine}/drift/overwrite`)).status).to.equal(200);
        expect((await panel.client.get(`${engine}/drift`)).data.drifted).to.be.false();
        const { configuration: repaired } = await status();
        expect(repaired.running).to.equal(repaired.wanted);
        expect([
            (await panel.visit('drift.test')).status,
            (await panel.visit('foreign.test')).status
        ]).to.equal([200, 404]);
    });

    it('shows no secret to who may not see them', async () => {
        await make('masked.test', {
            access: { basicAuth: [{ username: 'u', password: 'a secret to be masked' }] },
            headers: { response: [{ op: 'set', name: 'X-Key', value: 'value-to-be-masked' }] }
        });
        for (const path of ['config', 'config/desired']) {
            const [open, masked] = [
                await panel.client.get(`${engine}/${path}`),
                await panel.client.get(`${engine}/${path}`, { token: viewer })
            ];
            expect(
                [
                    open.text.includes('value-to-be-masked'),
                    masked.status,
                    masked.text.includes('value-to-be-masked'),
                    masked.text.includes('$2')
                ],
                path
            ).to.equal([true, 200, false, false]);
        }
    });
});

describe('revisions', () => {
    it('are made by changes, say who made them, and bring back what was deleted with its id', async () => {
        const made = await make('comes-back.test', { notes: 'as it was' });
        const path = made.headers.location ?? '';
        const {
            data: [revision]
        } = await panel.client.get(`${engine}/revisions?limit=1`);
        expect([revision.by[0].username, revision.applied, revision.changed]).to.equal(['admin', true, 1]);
        expect((await panel.client.get(`${engine}/revisions/${revision.number as number}`)).data).to.include({
            number: revision.number,
            hash: revision.hash
        });
        await panel.client.delete(path);
        expect([
            (await panel.client.get(path)).status,
            (await panel.visit('comes-back.test')).status
        ]).to.equal([404, 404]);
        const restored = await panel.client.post(`${engine}/revisions/${revision.number as number}/restore`);
        expect([restored.status, restored.data.changed, restored.headers['x-engine-reload']]).to.equal([
            200,
            1,
            'false'
        ]);
        const { data } = await panel.client.get(path);
        expect([data.id, data.notes, data.state, (await panel.visit('comes-back.test')).status]).to.equal([
            made.data.id,
            'as it was',
            'applied',
            200
        ]);
        expect(data.version > made.data.version).to.be.true();
        expect(
            (await panel.client.post(`${engine}/revisions/${revision.number as number}/restore`)).data.changed
        ).to.equal(0);
        for (const url of [`${engine}/revisions/999999`, `${engine}/revisions/x`]) {
            expect(outcome(await panel.client.get(url))).to.equal([404, 40400, 'NOT_FOUND']);
        }
        expect(outcome(await panel.client.post(`${engine}/revisions/999999/restore`))).to.equal([
            404,
            40400,
            'NOT_FOUND'
        ]);
    });

    it('are paged, newest first', async () => {
        const first = await panel.client.get(`${engine}/revisions?limit=2`);
        const next = /<([^>]+)>; rel="next"/.exec(String(first.headers.link))?.[1] ?? '';
        const second = await panel.client.get(next);
        const numbers = ([...first.data, ...second.data] as { number: number }[]).map(({ number }) => number);
        expect(numbers).to.equal([...numbers].sort((a, b) => b - a));
        expect(Number(first.headers['x-total-count']) >= numbers.length).to.be.true();
    });
});

describe('GET /api/proxyengine/logs', () => {
    it('is an event stream of the last lines, for users who may read logs', async () => {
        const { headers, text } = await panel.client.get(`${engine}/logs?lines=3`, { token: operator });
        expect([headers['content-type'], typeof headers['x-request-id']]).to.equal([
            'text/event-stream; charset=utf-8',
            'string'
        ]);
        expect(text.split('\n').filter((line) => line.startsWith('data: '))).to.have.length(3);
        expect(outcome(await panel.client.get(`${engine}/logs`, { token: viewer }))).to.equal([
            403,
            40300,
            'FORBIDDEN'
        ]);
        expect((await panel.client.get(`${engine}/logs?lines=-1`)).code).to.equal(40001);
    });

    it('follows what comes', async () => {
        let came = false;
        const stream = new Promise<string>((resolve, reject) => {
            const sent = request(
                {
                    host: '127.0.0.1',
                    port: panel.port,
                    path: `${engine}/logs?lines=0&follow=true`,
                    headers: { authorization: `Bearer ${panel.client.token}` }
                },
                (answer) => {
                    let got = '';
                    answer.on('data', (chunk) => {
                        got += String(chunk);
                        if (got.includes('data: ')) {
                            came = true;
                            sent.destroy();
                            resolve(got);
                        }
                    });
                }
            );
            sent.once('error', reject);
            sent.end();
        });
        await until(async () => {
            await panel.client.post(`${engine}/reload`);
            return came;
        }, 'a line came');
        expect(await stream).to.contain('data: ');
    });
});

describe('without an engine', () => {
    it('the panel works, tells what is missing, and keeps hosts waiting', async () => {
        const alone = await startConsumer({ environment: { PORTICO_CADDY: '/nonexistent/caddy' } });
        try {
            expect((await alone.client.get('/readyz')).status).to.equal(200);
            const { data } = await alone.client.get(`${engine}/status`);
            expect([data.state, data.running, data.message]).to.equal([
                'missing',
                false,
                'there is no executable Caddy at /nonexistent/caddy (PORTICO_CADDY)'
            ]);
            const made = await alone.client.post('/api/hosts', {
                domain: 'alone.test',
                upstream: upstream.address
            });
            expect([made.status, made.data.state, made.data.stateMessage]).to.equal([
                201,
                'pending',
                'The engine is not installed'
            ]);
            for (const verb of ['start', 'restart', 'reload', 'drift/overwrite']) {
                const answer = await alone.client.post(`${engine}/${verb}`);
                expect([...outcome(answer), answer.data.tool, typeof answer.data.install], verb).to.equal([
                    503,
                    50302,
                    'TOOL_MISSING',
                    'caddy',
                    'string'
                ]);
            }
            expect(outcome(await alone.client.get(`${engine}/drift`))).to.equal([
                503,
                50301,
                'ENGINE_UNAVAILABLE'
            ]);
            expect((await alone.client.get(`${engine}/config`)).data).to.be.null();
        } finally {
            await alone.close();
        }
    });
});
