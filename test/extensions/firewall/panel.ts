/** The firewall in a real panel, in a network namespace of its own: visitors come over a veth pair, and the panel is killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineHome } from '../../../core/src/engine/files/home.ts';
import { solve } from '../../support/panel/client.ts';
import { panelArguments } from '../../support/panel/process.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { type HttpResult, Network, noNamespaces } from './namespaces.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noNamespaces, it);
const patient = { timeout: 120_000 };

const root = fileURLToPath(new URL('../../../', import.meta.url));
const password = 'a quiet harbour at dawn';
const [host, port] = ['10.77.0.1', 7443];
const base = '/api/plugins/firewall';

let network: Network;
let folder: string;
let panel: ChildProcess | null = null;
let token: string;

const call = (method: string, path: string, body?: object, options: object = {}): Promise<HttpResult> =>
    network.visitor.http({ host, port, method, path, body, token, ...options });
const ask = (method: string, path: string, body?: object): Promise<HttpResult> =>
    call(method, `${base}${path}`, body);

/** Logs in from the visitor, challenge and all. */
async function login(secret: string, from: object = {}): Promise<HttpResult> {
    const { data } = await call('GET', '/api/auth/login', undefined, { token: undefined, ...from });
    const body = { username: 'admin', password: secret, altcha: solve(data) };
    return call('POST', '/api/auth/login', body, { token: undefined, ...from });
}

async function start(): Promise<void> {
    const plugins = join(folder, 'plugins');
    panel = spawn(
        'nsenter',
        [`--net=${network.server.path}`, join(root, 'node_modules/.bin/node'), ...panelArguments],
        {
            cwd: root,
            stdio: ['ignore', 'ignore', 'inherit'],
            env: {
                ...process.env,
                PORTICO_HOST: '0.0.0.0',
                PORTICO_PORT: String(port),
                PORTICO_DATA_DIR: join(folder, 'data'),
                PORTICO_ADMIN_PASSWORD: password,
                PORTICO_ENGINE_HTTP_PORT: '7080',
                PORTICO_ENGINE_HTTPS_PORT: '7081',
                PORTICO_LOG_LEVEL: 'warn',
                PORTICO_PLUGIN_DIRS: plugins
            }
        }
    );
    await until(async () => (await call('GET', '/readyz')).status === 200, 'the panel');
    await until(async () => {
        token ??= (await login(password)).data?.token;
        return (await ask('GET', '/state')).status === 200;
    }, 'the firewall');
}

async function end(signal: NodeJS.Signals): Promise<void> {
    const running = panel;
    panel = null;
    if (running !== null && running.exitCode === null && running.signalCode === null) {
        const ended = new Promise((resolve) => running.once('exit', resolve));
        running.kill(signal);
        await ended;
    }
}

describe('the firewall in a panel', patient, () => {
    before(patient, async () => {
        if (noNamespaces !== undefined) {
            return;
        }
        folder = mkdtempSync(join(tmpdir(), 'portico-firewall-'));
        chmodSync(folder, 0o755);
        mkdirSync(join(folder, 'plugins'));
        symlinkSync(join(root, 'extensions/firewall'), join(folder, 'plugins', 'firewall'));
        network = await Network.create();
        await network.server.listen(7001);
        await start();
    });
    after(patient, async () => {
        if (noNamespaces === undefined) {
            await end('SIGTERM');
            await network.close();
            const { persistent, runtime } = engineHome(join(folder, 'data'), null);
            for (const path of [folder, persistent, runtime]) {
                rmSync(path, { recursive: true, force: true });
            }
        }
    });

    test('refuses rules that would lock the caller out, unless they end by themselves', async () => {
        await ask('PUT', '/policy', { input: 'drop' });
        const refused = await ask('POST', '/apply', {});
        expect([refused.code, refused.data.connections[0].port, refused.data.connections[0].role]).to.equal([
            40950,
            port,
            'panel'
        ]);
        expect((await ask('POST', '/validate', {})).data.lockOut.length).to.equal(1);
        const open = await ask('POST', '/rules', {
            direction: 'in',
            action: 'accept',
            protocol: 'tcp',
            ports: ['7443']
        });
        const applied = await ask('POST', '/apply', {});
        expect(applied.code).to.equal(0);
        expect(await network.visitor.connect(host, 7001)).to.equal('timeout');
        expect((await ask('POST', '/confirm', { trialId: applied.data.trialId })).data.state).to.equal(
            'applied'
        );
        expect((await ask('DELETE', `/rules/${open.data.id}`)).code).to.equal(0);
        expect((await ask('POST', '/apply', {})).code).to.equal(40950);
        const accepted = await ask('POST', '/apply', { acceptLockOut: true, confirmSeconds: 8 });
        expect(accepted.code).to.equal(0);
        expect((await call('GET', '/readyz', undefined, { timeoutMs: 500 })).status).to.equal(0);
        await until(async () => (await ask('GET', '/state')).data?.lastOutcome === 'expired', 'the way back');
    });

    test('gives back the ruleset of before when the panel is killed, and says so when it is back', async () => {
        const table = async (): Promise<string> =>
            (await network.server.run('nft', '-s', 'list', 'table', 'inet', 'portico')).stdout;
        const then = await table();
        expect((await ask('POST', '/apply', { acceptLockOut: true, confirmSeconds: 5 })).code).to.equal(0);
        expect(await table()).not.to.equal(then);
        await end('SIGKILL');
        await until(async () => (await table()) === then, 'the guard');
        await start();
        expect((await ask('GET', '/state')).data).to.include({
            state: 'applied',
            lastOutcome: 'expired',
            drift: false,
            trial: null
        });
        expect((await call('GET', '/api/plugins/firewall')).data.state).to.equal('running');
    });

    test('goes on with a trial over the death of the panel', async () => {
        await ask('POST', '/rules', {
            direction: 'in',
            action: 'accept',
            protocol: 'tcp',
            ports: ['7443', '7001']
        });
        const { data } = await ask('POST', '/apply', { confirmSeconds: 300 });
        await end('SIGKILL');
        await start();
        expect((await ask('GET', '/state')).data.trial.id).to.equal(data.trialId);
        expect((await ask('POST', '/confirm', { trialId: data.trialId })).data).to.include({
            state: 'applied',
            lastOutcome: 'confirmed'
        });
        expect(await network.visitor.connect(host, 7001)).to.equal('open');
    });

    test('bans an address whose logins fail, within two seconds', async () => {
        for (let attempt = 0; attempt < 5; attempt += 1) {
            await login('wrong', { localAddress: '10.77.1.2' });
        }
        const began = performance.now();
        await until(
            async () =>
                (await network.visitor.connect(host, 7001, { localAddress: '10.77.1.2', timeoutMs: 200 })) ===
                'timeout',
            'the ban'
        );
        expect(performance.now() - began).to.be.below(2_000);
        expect(await network.visitor.connect(host, 7001)).to.equal('open');
        expect(
            (await ask('GET', '/bans')).data.map(
                ({ address, source }: { address: string; source: string }) => [address, source]
            )
        ).to.equal([['10.77.1.2', 'login']]);
    });

    test('fetches a list from a server of its network, and drops what it names', async () => {
        await network.visitor.serve(7005, '# a list\n10.77.2.0/24\n10.77.9.0/24 ; old\nnonsense\n');
        const { data: set } = await ask('POST', '/sets', {
            ...{ name: 'list', family: 'ipv4', source: 'url', url: 'http://10.77.0.2:7005/list' }
        });
        const shown = async () => (await ask('GET', `/sets/${set.id}`)).data;
        await until(async () => (await shown()).error !== null, 'the refusal');
        expect((await shown()).error).to.contain('10.77.0.2');
        expect((await shown()).elements).to.equal(0);
        // A private network needs a grant that names it.
        const { data: plugin } = await call('GET', base);
        const grants = { ...plugin.capabilities.granted, network: ['*', '10.77.0.0/16'] };
        expect((await call('PUT', base, { grants })).code).to.equal(0);
        await ask('POST', `/sets/${set.id}/refresh`);
        await until(async () => (await shown()).updatedAt !== null, 'the list');
        expect(await shown()).to.include({ elements: 2, skipped: 1, error: null });
        const { data: rule } = await ask('POST', '/rules', {
            ...{ direction: 'in', action: 'reject', sources: ['@list'] }
        });
        const { data: rules } = await ask('GET', '/rules');
        const ids = rules.map(({ id }: { id: number }) => id).filter((id: number) => id !== rule.id);
        await ask('POST', '/rules/order', { ids: [rule.id, ...ids] });
        const { data: trial } = await ask('POST', '/apply', { confirmSeconds: 60 });
        await ask('POST', '/confirm', { trialId: trial.trialId });
        const from = (localAddress: string): Promise<string> =>
            network.visitor.connect(host, 7001, { localAddress });
        expect([await from('10.77.2.2'), await from('10.77.0.2')]).to.equal(['refused', 'open']);
    });

    test('maps what listens and what is reachable', async () => {
        const { data: listeners } = await ask('GET', '/listeners');
        expect(listeners.find((each: { port: number }) => each.port === port)).to.include({
            protocol: 'tcp',
            address: '0.0.0.0',
            user: 'root'
        });
        const { data: map } = await ask('GET', '/reachability');
        const of = (wanted: number): unknown =>
            map.find(
                (each: { port: number; from: string }) => each.port === wanted && each.from === 'internet'
            )?.verdict;
        expect([of(7443), of(7001), of(7080)]).to.equal(['accept', 'accept', 'drop']);
    });
});
