import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';

import { signConsoleToken } from '../../../core/src/features/auth/tokens/console-tokens.ts';
import { readPanelAddress } from '../../../core/src/platform/address/panel.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import {
    auditOf,
    command,
    contentOf,
    panelFolder,
    portico,
    type Ran,
    removeFolder,
    type RunningPanel,
    startPanel
} from '../../support/panel/console.ts';
import { freePort } from '../../support/ports.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const made = /^[a-z2-9]{4}(-[a-z2-9]{4}){4}\n$/;

interface Answer {
    readonly status: number;
    readonly body: { readonly code: number; readonly data: Record<string, unknown> | null };
}

function ask(
    url: string,
    method: string,
    token: string,
    body?: object,
    headers: Record<string, string> = {}
): Promise<Answer> {
    return new Promise((done, failed) => {
        const asked = request(
            url,
            {
                method,
                agent: false,
                headers: {
                    authorization: `Bearer ${token}`,
                    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
                    ...headers
                }
            },
            (response) => {
                const chunks: Buffer[] = [];
                response.on('data', (chunk: Buffer) => chunks.push(chunk));
                response.on('end', () =>
                    done({
                        status: response.statusCode ?? 0,
                        body: JSON.parse(Buffer.concat(chunks).toString()) as Answer['body']
                    })
                );
            }
        );
        asked.on('error', failed);
        asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

describe('portico with a running panel', () => {
    let dataDir: string;
    let panel: RunningPanel;
    const run = (args: string[], input?: string): Promise<Ran> =>
        command([...args, '--data-dir', dataDir], input === undefined ? {} : { input });
    const token = (): string =>
        signConsoleToken(createKeyring(dataDir), readPanelAddress(dataDir)?.instance ?? '', Date.now());

    before(async () => {
        dataDir = await panelFolder();
        panel = await startPanel(dataDir);
    });

    after(async () => {
        await panel.stop();
        removeFolder(dataDir);
    });

    it('says where it listens only to its owner', () => {
        expect(statSync(join(dataDir, 'panel.json')).mode & 0o777).to.equal(0o600);
        expect(readPanelAddress(dataDir)).to.include({
            host: '127.0.0.1',
            port: Number(new URL(panel.url).port)
        });
    });

    it('resets a password through it, and says so in the audit log', async () => {
        const { code, stdout, stderr } = await run(['admin', 'reset-password', 'ADMIN', '--disable-totp']);
        expect(code, stderr).to.equal(0);
        expect(stdout).to.match(made);
        const last = auditOf(dataDir).at(-1);
        expect(last).to.include({
            action: 'update',
            resource: 'users',
            resource_id: 1,
            outcome: 'success',
            actor_id: null,
            username: null,
            token_id: null,
            ip: '127.0.0.1'
        });
        expect(last?.['user_agent']).to.match(/^portico-console \([\w.@-]+\)$/);
        const user = await ask(`${panel.url}/api/users/1`, 'GET', token());
        expect(user.body.data).to.include({ mustChangePassword: true, disabled: false });
        expect(contentOf(dataDir)).not.to.include(stdout.trim());
        expect(panel.output()).not.to.include(stdout.trim());
    });

    it('creates accounts, and hands on why the panel refuses', async () => {
        expect((await run(['admin', 'create', 'anna'])).stdout).to.match(made);
        expect(
            await run(
                ['admin', 'create', 'vera', '--role', 'viewer', '--password-stdin'],
                'a long password of vera\n'
            )
        ).to.include({ code: 0, stdout: '' });
        const before = auditOf(dataDir).length;
        expect(await run(['admin', 'create', 'Anna'])).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: The username is taken\n'
        });
        expect(await run(['admin', 'create', 'otto', '--role', 'emperor'])).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: There is no role emperor\n'
        });
        expect((await run(['admin', 'reset-password', '--password-stdin'], 'short')).stderr).to.equal(
            'portico: The password must have at least 10 characters\n'
        );
        expect(await run(['admin', 'reset-password', 'nobody'])).to.include({
            code: 1,
            stderr: 'portico: There is no user nobody\n'
        });
        expect(
            auditOf(dataDir)
                .slice(before)
                .map(({ outcome }) => outcome)
        ).not.to.include('success');
    });

    it('creates a token that works at once, and of no more than its owner may', async () => {
        const { code, stdout, stderr } = await run([
            'token',
            'create',
            '--user',
            'vera',
            '--name',
            'ci',
            '--permissions',
            'hosts:read',
            '--expires',
            '1h'
        ]);
        expect(code, stderr).to.equal(0);
        expect(stdout).to.match(/^ptk_[\w-]{43}\n$/);
        const me = await ask(`${panel.url}/api/auth/me`, 'GET', stdout.trim());
        expect(me.body.data).to.include({ username: 'vera', permissions: ['hosts:read'] });
        expect(
            (await run(['token', 'create', '--user', 'vera', '--name', 'c2', '--permissions', 'hosts:write']))
                .stderr
        ).to.include('vera does not have the permission hosts:write');
        expect(
            (await run(['token', 'create', '--user', 'vera', '--name', 'ci', '--permissions', 'hosts:read']))
                .stderr
        ).to.include('already has a token with the name "ci"');
        const theft = await ask(`${panel.url}/api/auth/console/tokens`, 'POST', stdout.trim(), {
            username: 'admin',
            name: 'x',
            permissions: ['users:write']
        });
        expect(theft).to.include({ status: 403 });
        expect(theft.body).to.include({ code: 40300 });
    });

    it('finds a user among more than a page of those whose names contain it', async () => {
        const db = new Sqlite(join(dataDir, 'portico.db'));
        const add = db.prepare(
            "insert into users (version, username, username_key, password_hash, role, disabled, must_change_password, created_at, updated_at) values (1, ?, ?, '-', 'viewer', 0, 0, 0, 0)"
        );
        db.transaction(() =>
            [...Array.from({ length: 600 }, (_, index) => `zoe${index}`), 'zoe'].forEach((name) =>
                add.run(name, name)
            )
        )();
        db.close();
        expect(JSON.parse((await run(['admin', 'reset-password', 'Zoe', '--json'])).stdout)).to.include({
            username: 'zoe'
        });
    });

    it('proves the audit log through it', async () => {
        expect((await run(['audit', 'verify'])).stdout).to.match(
            /^The audit log holds: \d+ entries \(1 to \d+\)/
        );
        expect(JSON.parse((await run(['audit', 'verify', '--json'])).stdout)).to.include({
            holds: true,
            break: null
        });
    });

    it('takes each token of the command line once, from this machine, and no forged one', async () => {
        const address = `${panel.url}/api/users/1`;
        const one = token();
        expect((await ask(address, 'GET', one)).status).to.equal(200);
        expect((await ask(address, 'GET', one)).body).to.include({ code: 40103 });
        const former = signConsoleToken(createKeyring(dataDir), 'A'.repeat(22), Date.now());
        expect((await ask(address, 'GET', former)).body).to.include({ code: 40101 });
        const late = signConsoleToken(
            createKeyring(dataDir),
            readPanelAddress(dataDir)?.instance ?? '',
            Date.now() - 31_000
        );
        expect((await ask(address, 'GET', late)).body).to.include({ code: 40102 });
        expect((await ask(`${panel.url}/api/auth/refresh`, 'POST', token())).body).to.include({
            code: 40101
        });
    });

    it('refuses such a token when a trusted proxy brings it from elsewhere', async () => {
        const settings = `${panel.url}/api/settings/panel.trustedProxies`;
        expect((await ask(settings, 'PUT', token(), { value: ['127.0.0.1'] })).status).to.equal(200);
        const forwarded = await ask(`${panel.url}/api/users/1`, 'GET', token(), undefined, {
            'x-forwarded-for': '203.0.113.7'
        });
        expect(forwarded.body).to.include({ code: 40101 });
        expect((await ask(settings, 'PUT', token(), { value: [] })).status).to.equal(200);
    });

    it('is no caller of what belongs to an account', async () => {
        for (const [method, path, body] of [
            ['GET', '/api/auth/me'],
            ['POST', '/api/auth/logout'],
            ['PUT', '/api/auth/password', { currentPassword: 'x', newPassword: 'a long new password' }],
            ['POST', '/api/auth/tokens', { name: 'x' }],
            ['POST', '/api/auth/step-up', { password: 'x' }],
            ['POST', '/api/auth/totp', { password: 'x' }]
        ] as const) {
            const { status } = await ask(`${panel.url}${path}`, method, token(), body);
            expect(status, path).to.be.between(399, 500);
        }
    });

    it('is healthy in the eyes of the doctor', async () => {
        const { code, stdout } = await portico(['doctor', '--json', '--data-dir', dataDir], {
            env: { PORTICO_ENGINE_HTTP_PORT: String(await freePort()) }
        });
        const { checks } = JSON.parse(stdout) as {
            checks: { id: string; state: string; evidence: string }[];
        };
        const states = Object.fromEntries(checks.map(({ id, state }) => [id, state]));
        expect(states, stdout).to.include({
            node: 'ok',
            'data-folder': 'ok',
            keys: 'ok',
            database: 'ok',
            migrations: 'ok',
            audit: 'ok',
            clock: 'ok',
            lock: 'ok',
            panel: 'ok'
        });
        expect(code, stdout).to.equal(checks.some(({ state }) => state === 'fail') ? 1 : 0);
        const { value } = JSON.parse(
            (await run(['setting', 'read', 'engine.httpPort', '--json'])).stdout
        ) as {
            value: number;
        };
        const http = checks.find(({ id }) => id === 'engine-http');
        expect(http?.evidence).to.contain(String(value)); // of the panel, not of this command's environment
    });

    it(
        'is told to hang when it does not answer, and the audit log is read from its file',
        { timeout: 60_000 },
        async () => {
            const before = auditOf(dataDir);
            panel.child.kill('SIGSTOP');
            try {
                const [reset, verify, doctor] = await Promise.all([
                    run(['admin', 'reset-password']),
                    run(['audit', 'verify']),
                    run(['doctor', '--json'])
                ]);
                expect(reset).to.include({ code: 1, stdout: '' });
                expect(reset.stderr)
                    .to.include(`Another process holds ${dataDir}`)
                    .and.include(`(process ${panel.child.pid})`)
                    .and.include('does not answer');
                expect(verify).to.include({ code: 0 });
                expect(verify.stderr).to.include('read from its file instead');
                expect(doctor.code).to.equal(1);
                const { checks } = JSON.parse(doctor.stdout) as {
                    checks: { id: string; state: string; evidence: string }[];
                };
                expect(checks.find(({ id }) => id === 'panel')).to.include({ state: 'fail' });
            } finally {
                panel.child.kill('SIGCONT');
            }
            expect(auditOf(dataDir)).to.equal(before);
            expect(await run(['audit', 'verify'])).to.include({ code: 0, stderr: '' });
        }
    );
});

describe('portico after a panel', () => {
    it('gives no token to a program that listens where a killed panel did, and works offline', async () => {
        const dataDir = await panelFolder();
        const panel = await startPanel(dataDir);
        panel.child.kill('SIGKILL');
        await new Promise((done) => panel.child.once('exit', done));
        const left = readFileSync(join(dataDir, 'panel.json'), 'utf8');
        const heard: string[] = [];
        const stranger: Server = createServer((socket) =>
            socket.on('data', (data) => heard.push(String(data))).on('error', () => undefined)
        );
        await new Promise<void>((done) =>
            stranger.listen((JSON.parse(left) as { port: number }).port, '127.0.0.1', done)
        );
        expect((await command(['admin', 'reset-password', '--data-dir', dataDir])).stdout).to.match(made);
        expect(heard).to.equal([]);
        await new Promise((done) => stranger.close(done));

        writeFileSync(join(dataDir, 'panel.json'), 'not what it was');
        expect(await command(['audit', 'verify', '--data-dir', dataDir])).to.include({ code: 0 });

        // The next one takes the engine over, and ends it for us.
        const next = await startPanel(dataDir);
        expect(readFileSync(join(dataDir, 'panel.json'), 'utf8')).not.to.equal(left);
        await next.stop();
        expect(next.child.exitCode).to.equal(0);
        removeFolder(dataDir);
    });

    it('and one that is just starting wait for each other', async () => {
        const dataDir = await panelFolder();
        const starting = startPanel(dataDir);
        const ran = await Promise.all(
            ['anna', 'bert'].map((name) => portico(['admin', 'create', name, '--data-dir', dataDir]))
        );
        await (await starting).stop();
        expect(ran.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).to.equal([
            [0, ''],
            [0, '']
        ]);
        expect(
            auditOf(dataDir).filter(({ action, resource }) => action === 'create' && resource === 'users')
        ).to.have.length(3);
        removeFolder(dataDir);
    });

    it('reaches one that listens on an address of the machine other than loopback', async () => {
        const address = Object.values(networkInterfaces())
            .flatMap((addresses) => addresses ?? [])
            .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
        if (address === undefined) {
            return; // a machine without a network has loopback only
        }
        const dataDir = await panelFolder();
        const panel = await startPanel(dataDir, { host: address });
        expect((await command(['admin', 'create', 'anna', '--data-dir', dataDir])).stdout).to.match(made);
        expect(auditOf(dataDir).at(-1)).to.include({ ip: address, username: null });
        await panel.stop();
        removeFolder(dataDir);
    });
});
