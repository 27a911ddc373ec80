/** Bans of fail2ban: a server of its own, with a jail that does nothing but hold them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { noNamespaces, run } from './namespaces.ts';
import { FirewallRig } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const lacks =
    noNamespaces ?? (existsSync('/usr/bin/fail2ban-server') ? undefined : 'fail2ban is not installed');
const test = itUnless(lacks, it);
const patient = { timeout: 60_000 };

const jails = ['door', 'gate'];
const files: Readonly<Record<string, string>> = {
    'fail2ban.conf':
        '[DEFAULT]\nloglevel = ERROR\nlogtarget = STDERR\nsyslogsocket = auto\ndbfile = None\ndbpurgeage = 1d\n[Definition]\n',
    'jail.conf': jails
        .map(
            (name) =>
                `[${name}]\nenabled = true\nfilter = any\nbackend = polling\nlogpath = LOG\nmaxretry = 2\nfindtime = 600\nbantime = 600\n`
        )
        .join('\n'),
    'filter.d/any.conf': '[Definition]\nfailregex = ^.*bad login from <HOST>$\n'
};

let rig: FirewallRig;
let folder: string;
let server: ChildProcess;
const client = (...args: readonly string[]) =>
    run('fail2ban-client', '-c', folder, '-s', join(folder, 'f.sock'), '-p', join(folder, 'f.pid'), ...args);
const listed = async () =>
    (await rig.get('/intrusion')).data.find((each: { tool: string }) => each.tool === 'fail2ban');
const change = (verb: 'ban' | 'unban', body: object) => rig.post(`/intrusion/fail2ban/${verb}`, body);

describe('bans of fail2ban', patient, () => {
    before(patient, async () => {
        if (lacks !== undefined) {
            return;
        }
        folder = mkdtempSync(join(tmpdir(), 'portico-fail2ban-'));
        ['filter.d', 'action.d'].forEach((each) => mkdirSync(join(folder, each)));
        const log = join(folder, 'log');
        writeFileSync(log, '');
        for (const [name, text] of Object.entries(files)) {
            writeFileSync(join(folder, name), text.replaceAll('LOG', log));
        }
        rig = await FirewallRig.start();
        rig.host.programs.answer('fail2ban-client', ({ args }) => client(...args));
        server = spawn(
            'fail2ban-server',
            ['-c', folder, '-s', join(folder, 'f.sock'), '-p', join(folder, 'f.pid'), '-f', 'start'],
            { stdio: 'ignore' }
        );
        await until(async () => (await client('status')).stdout.includes(jails[1] ?? ''));
    });
    after(patient, async () => {
        if (lacks !== undefined) {
            return;
        }
        if (server.exitCode === null) {
            server.kill();
            await once(server, 'exit');
        }
        await rig.close();
        rmSync(folder, { recursive: true, force: true });
    });

    test('are listed by their jails, made and lifted', async () => {
        const empty = jails.map((name) => ({ name, addresses: [] }));
        expect(await listed()).to.equal({ tool: 'fail2ban', available: true, lists: empty });
        for (const address of ['192.0.2.7', '2001:db8::7', '198.51.100.0/24']) {
            const made = await change('ban', { address, list: 'door' });
            expect([address, made.status]).to.equal([address, 200]);
        }
        const all = { name: 'door', addresses: ['192.0.2.7', '198.51.100.0/24', '2001:db8::7'] };
        const door = async () => {
            const [first] = (await listed()).lists;
            return { ...first, addresses: [...first.addresses].sort() };
        };
        await until(async () => (await door()).addresses.length === 3);
        expect(await door()).to.equal(all);
        expect((await client('get', 'door', 'banip')).stdout).to.include('192.0.2.7');
        expect((await change('unban', { address: '192.0.2.7', list: 'door' })).status).to.equal(200);
        await until(async () => !(await door()).addresses.includes('192.0.2.7'));
    });

    test('take no other jail, address or option, and are for those who may ban', async () => {
        const address = '192.0.2.8';
        for (const body of [
            { address },
            { address, list: 'nope' },
            { address: '--help', list: 'door' },
            { address: 'a; b', list: 'door' }
        ]) {
            expect([body, (await change('ban', body)).code]).to.equal([body, 40001]);
        }
        const viewer = { username: 'v', permissions: ['read'] };
        const refused = await rig.ask('POST', '/intrusion/fail2ban/ban', { address, list: 'door' }, viewer);
        expect(refused.code).to.equal(40300);
        expect(JSON.stringify(await listed())).to.not.include(address);
    });

    test('are not available when it does not run or is missing', async () => {
        server.kill();
        await once(server, 'exit');
        expect(await listed()).to.equal({ tool: 'fail2ban', available: false, lists: [] });
        expect((await change('ban', { address: '192.0.2.7', list: 'door' })).code).to.equal(50251);
        rig.host.programs.missing('fail2ban-client');
        const missing = await change('ban', { address: '192.0.2.7', list: 'door' });
        expect([missing.code, missing.text.includes('apt-get install fail2ban')]).to.equal([50302, true]);
    });
});
