/** Section 9 of the contract without channels, the tasks of section 12, and the start of section 13. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type Consumer, faultsOf, outcome, startConsumer } from '../../support/panel/consumer.ts';
import { createPanelProcess, panelArguments } from '../../support/panel/process.ts';
import { freePort } from '../../support/ports.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Setting {
    readonly key: string;
    readonly value: unknown;
    readonly default: unknown;
    readonly source: string;
    readonly secret: boolean;
    readonly version: number;
}

let panel: Consumer;

before(async () => {
    panel = await startConsumer();
});

after(() => panel?.close());

const read = async (key: string): Promise<Setting> =>
    (await panel.client.get(`/api/settings/${key}`)).data as Setting;
const documented = [
    'server.ipv4',
    'server.ipv6',
    'engine.autoReload',
    'engine.accessLog',
    'engine.httpPort',
    'engine.httpsPort',
    'engine.acmeEmail',
    'engine.acmeDirectory',
    'engine.acmeEab',
    'panel.url',
    'panel.trustedProxies',
    'panel.accessTokenMinutes',
    'panel.refreshTokenDays',
    'panel.requireTotp',
    'panel.stepUpMinutes',
    'audit.retentionDays',
    'dns.nameservers',
    'panel.outboundAllow'
];

describe('/api/settings', () => {
    it('lists every documented setting with all that is known of it', async () => {
        const { data } = await panel.client.get('/api/settings');
        expect((data as Setting[]).map(({ key }) => key)).to.include(documented);
        for (const setting of data as Setting[]) {
            expect(Object.keys(setting)).to.equal([
                'key',
                'value',
                'default',
                'source',
                'type',
                'unit',
                'description',
                'secret',
                'restart',
                'version'
            ]);
            expect((await panel.client.get(`/api/settings/${setting.key}`)).data).to.equal(setting);
        }
        expect(outcome(await panel.client.get('/api/settings/nope'))).to.equal([404, 40400, 'NOT_FOUND']);
    });

    it('are changed all or not at all', async () => {
        const before = (await panel.client.get('/api/settings')).text;
        const answer = await panel.client.put('/api/settings', {
            'audit.retentionDays': 30,
            'panel.stepUpMinutes': 'x',
            'panel.accessTokenMinutes': 0,
            nope: 1
        });
        expect(outcome(answer)).to.equal([400, 40001, 'VALIDATION_FAILED']);
        expect(faultsOf(answer).sort()).to.equal(['nope', 'panel.accessTokenMinutes', 'panel.stepUpMinutes']);
        expect((await panel.client.get('/api/settings')).text).to.equal(before);
        const done = await panel.client.put('/api/settings', {
            'audit.retentionDays': 30,
            'panel.stepUpMinutes': 20
        });
        expect((await panel.client.get('/api/settings')).data).to.equal(done.data);
        expect([
            (await read('audit.retentionDays')).value,
            (await read('panel.stepUpMinutes')).source
        ]).to.equal([30, 'stored']);
        await panel.client.put('/api/settings', { 'audit.retentionDays': null, 'panel.stepUpMinutes': null });
        expect([
            (await read('audit.retentionDays')).value,
            (await read('panel.stepUpMinutes')).source
        ]).to.equal([365, 'default']);
    });

    it('one by one have a version, which is held against If-Match', async () => {
        const path = '/api/settings/audit.retentionDays';
        const put = await panel.client.put(path, { value: 31 });
        expect((await panel.client.get(path)).data).to.equal(put.data);
        const stale = await panel.client.put(path, { value: 32 }, { headers: { 'if-match': '"999"' } });
        expect([...outcome(stale), stale.data.version]).to.equal([
            412,
            41200,
            'VERSION_STALE',
            put.data.version
        ]);
        expect(
            (await panel.client.put(path, { value: 32 }, { headers: { 'if-match': put.headers.etag ?? '' } }))
                .data.value
        ).to.equal(32);
        expect((await panel.client.put(path, (await panel.client.get(path)).data)).status).to.equal(200);
        await panel.client.put(path, { value: null });
    });

    it('that the environment decides cannot be changed, and say so', async () => {
        const fixed = await read('engine.httpPort');
        expect([fixed.value, fixed.source, fixed.default]).to.equal([panel.httpPort, 'environment', 80]);
        for (const answer of [
            await panel.client.put('/api/settings', { 'engine.httpPort': 8080, 'audit.retentionDays': 40 }),
            await panel.client.put('/api/settings/engine.httpPort', { value: 8080 })
        ]) {
            expect(answer.data.errors).to.equal([
                { path: 'engine.httpPort', message: 'engine.httpPort is set by PORTICO_ENGINE_HTTP_PORT' }
            ]);
        }
        expect((await read('audit.retentionDays')).value).to.equal(365);
    });

    it('refuse what they cannot hold', async () => {
        for (const body of [
            { 'server.ipv4': '1.2.3' },
            { 'server.ipv6': 'x' },
            { 'engine.acmeEmail': 'x' },
            { 'engine.acmeDirectory': 'ftp://x' },
            { 'panel.url': 'x' },
            { 'panel.trustedProxies': ['0.0.0.0/0'] },
            { 'panel.refreshTokenDays': 1e9 },
            { 'panel.requireTotp': 'true' },
            { 'engine.acmeEab': { kid: 'k' } }
        ]) {
            expect(outcome(await panel.client.put('/api/settings', body)), JSON.stringify(body)).to.equal([
                400,
                40001,
                'VALIDATION_FAILED'
            ]);
        }
        for (const body of [
            { 'panel.trustedProxies': ['x'] },
            { 'dns.nameservers': ['x'] },
            { 'panel.outboundAllow': ['10.0.0.0/33'] }
        ]) {
            expect(faultsOf(await panel.client.put('/api/settings', body))).to.equal([
                `${Object.keys(body)[0]}.0`
            ]);
        }
    });

    it('never show a secret again', async () => {
        const macKey = 'dGhpcy1pcy1hLW1hYy1rZXk';
        const put = await panel.client.put('/api/settings/engine.acmeEab', {
            value: { keyId: 'key', macKey }
        });
        expect([put.data.value, put.data.secret]).to.equal([{ set: true }, true]);
        for (const path of ['/api/settings', '/api/settings/engine.acmeEab', '/api/audit?limit=5']) {
            expect((await panel.client.get(path)).text).not.to.contain(macKey);
        }
        expect(
            (await panel.client.put('/api/settings/engine.acmeEab', put.data as object)).data.value
        ).to.equal({ set: true });
        expect(
            (await panel.client.put('/api/settings/engine.acmeEab', { value: null })).data.value
        ).to.be.null();
    });

    it('are read by viewers and written by admins', async () => {
        for (const role of ['viewer', 'operator']) {
            const token = await panel.tokenOf(role);
            expect((await panel.client.get('/api/settings', { token })).status).to.equal(200);
            for (const [method, path] of [
                ['PUT', '/api/settings'],
                ['PUT', '/api/settings/panel.url'],
                ['POST', '/api/settings/server-ip/detect']
            ] as const) {
                const answer = await panel.client.call(method, path, { body: {}, token });
                expect([...outcome(answer), answer.data.permission], path).to.equal([
                    403,
                    40300,
                    'FORBIDDEN',
                    'settings:write'
                ]);
            }
        }
    });

    it("take effect: the client's address is believed of a trusted proxy only", async () => {
        const forwarded = { 'x-forwarded-for': '203.0.113.9' };
        const seen = async (): Promise<string> => {
            await panel.client.put('/api/settings', {}, { headers: forwarded });
            return (await panel.client.get('/api/audit?limit=1')).data[0].ip as string;
        };
        expect(await seen()).to.equal('127.0.0.1');
        await panel.client.put('/api/settings', { 'panel.trustedProxies': ['127.0.0.1'] });
        expect(await seen()).to.equal('203.0.113.9');
        await panel.client.put('/api/settings', { 'panel.trustedProxies': null });
        expect(await seen()).to.equal('127.0.0.1');
    });
});

describe('POST /api/settings/server-ip/detect', () => {
    it('tells what the machine has, and what is set', async () => {
        await panel.client.put('/api/settings', { 'server.ipv4': '203.0.113.7' });
        const { status, data } = await panel.client.post('/api/settings/server-ip/detect');
        expect([status, data.ipv4, Array.isArray(data.candidates)]).to.equal([200, '203.0.113.7', true]);
    });
});

describe('/api/tasks', () => {
    it('is a list, and unknown ones are 40400', async () => {
        expect((await panel.client.get('/api/tasks')).data).to.equal([]);
        for (const [method, path] of [
            ['GET', '/api/tasks/1'],
            ['GET', '/api/tasks/1/events'],
            ['DELETE', '/api/tasks/1'],
            ['GET', '/api/tasks/x']
        ] as const) {
            expect(outcome(await panel.client.call(method, path)), `${method} ${path}`).to.equal([
                404,
                40400,
                'NOT_FOUND'
            ]);
        }
    });
});

describe('the process', () => {
    const root = fileURLToPath(new URL('../../../', import.meta.url));

    /** Starts a panel that is expected to end by itself. */
    const refuses = async (
        environment: Readonly<Record<string, string>>,
        dataDir = mkdtempSync(join(tmpdir(), 'portico-refuses-'))
    ): Promise<string> => {
        const child = spawn(process.execPath, panelArguments, {
            cwd: root,
            stdio: ['ignore', 'pipe', 'pipe'],
            env: {
                PATH: process.env['PATH'] ?? '',
                NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
                PORTICO_HOST: '127.0.0.1',
                PORTICO_PORT: '0',
                PORTICO_DATA_DIR: dataDir,
                PORTICO_ADMIN_PASSWORD: 'a quiet harbour at dawn',
                PORTICO_CADDY: '/nonexistent',
                ...environment
            }
        });
        let said = '';
        child.stdout.on('data', (chunk) => {
            said += String(chunk);
        });
        child.stderr.on('data', (chunk) => {
            said += String(chunk);
        });
        const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
        const code = await new Promise((resolve) => child.once('close', resolve));
        clearTimeout(timer);
        rmSync(dataDir, { recursive: true, force: true });
        expect(code, said).to.equal(1);
        return said;
    };

    it(
        'refuses a weak secret and what it cannot read, by name and in a line',
        { timeout: 60_000 },
        async () => {
            for (const [name, value] of [
                ['PORTICO_JWT_SECRET', 'tooshort'],
                ['PORTICO_JWT_SECRET', 'a'.repeat(40)],
                ['PORTICO_JWT_SECRET', 'changeme-changeme-changeme-changeme'],
                ['PORTICO_PORT', 'abc'],
                ['PORTICO_SAFE_MODE', 'yes']
            ] as const) {
                const said = await refuses({ [name]: value });
                expect(said).to.contain(`The panel did not start: ${name}`);
                expect(said.trim().split('\n')).to.have.length(1);
                if (name === 'PORTICO_JWT_SECRET') {
                    expect(said).not.to.contain(value);
                }
            }
        }
    );

    it(
        'keeps its folder to itself, and answers what is under way before it ends at SIGTERM',
        { timeout: 60_000 },
        async () => {
            const process = await createPanelProcess();
            try {
                await process.start();
                const second = spawn(globalThis.process.execPath, panelArguments, {
                    cwd: root,
                    stdio: ['ignore', 'pipe', 'pipe'],
                    env: {
                        PATH: globalThis.process.env['PATH'] ?? '',
                        PORTICO_HOST: '127.0.0.1',
                        PORTICO_PORT: String(await freePort()),
                        PORTICO_DATA_DIR: process.dataDir
                    }
                });
                let said = '';
                second.stderr.on('data', (chunk) => {
                    said += String(chunk);
                });
                expect(await new Promise((resolve) => second.once('close', resolve))).to.equal(1);
                expect(said).to.contain('is in use by another panel');
                expect([
                    statSync(process.dataDir).mode & 0o777,
                    statSync(join(process.dataDir, 'keys')).mode & 0o777
                ]).to.equal([0o700, 0o700]);
                for (const key of readdirSync(join(process.dataDir, 'keys'))) {
                    expect(statSync(join(process.dataDir, 'keys', key)).mode & 0o777, key).to.equal(0o600);
                }

                const client = await process.login();
                const body = JSON.stringify({ domain: 'drained.test', upstream: '127.0.0.1:9' });
                const slow = new Promise<number>((resolve, reject) => {
                    const sent = request(
                        {
                            host: '127.0.0.1',
                            port: process.port,
                            method: 'POST',
                            path: '/api/hosts',
                            headers: {
                                authorization: `Bearer ${client.token}`,
                                'content-type': 'application/json',
                                'content-length': String(body.length)
                            }
                        },
                        (answer) => {
                            answer.resume();
                            answer.once('end', () => resolve(answer.statusCode ?? 0));
                        }
                    );
                    sent.once('error', reject);
                    sent.write(body.slice(0, 10));
                    void until(
                        async () =>
                            client.get('/healthz').then(
                                () => false,
                                () => true
                            ),
                        'the panel stopped listening'
                    ).then(() => sent.end(body.slice(10)), reject);
                });
                // The request must have been read before the signal comes.
                await client.get('/readyz');
                await client.get('/readyz');
                const [code, status] = await Promise.all([process.end('SIGTERM'), slow]);
                expect([code, status]).to.equal([0, 201]);
                await process.start();
                expect((await client.get('/api/hosts')).data).to.have.length(1);
            } finally {
                await process.close();
            }
        }
    );

    it(
        'makes the first administrator with a password of its own, shown once',
        { timeout: 60_000 },
        async () => {
            const fresh = await createPanelProcess({ environment: { PORTICO_ADMIN_PASSWORD: '' } });
            try {
                await fresh.start();
                const password = /"admin" with the password (\S+)/.exec(fresh.output)?.[1] ?? '';
                expect(password.length >= 16).to.be.true();
                const { Client } = await import('../../support/panel/client.ts');
                const client = new Client(fresh.port);
                const { data } = await client.login('admin', password);
                expect(data.user.mustChangePassword).to.be.true();
                client.token = data.token as string;
                expect(outcome(await client.get('/api/hosts'))).to.equal([
                    403,
                    40302,
                    'PASSWORD_CHANGE_REQUIRED'
                ]);
                expect(fresh.output.split(password)).to.have.length(2);
                for (const file of readdirSync(fresh.dataDir, {
                    recursive: true,
                    withFileTypes: true
                }).filter((each) => each.isFile())) {
                    expect(
                        readFileSync(join(file.parentPath, file.name)).includes(password),
                        file.name
                    ).to.be.false();
                }
                await fresh.end('SIGTERM');
                await fresh.start();
                expect(fresh.output.split('with the password')).to.have.length(2);
            } finally {
                await fresh.close();
            }
        }
    );
});
