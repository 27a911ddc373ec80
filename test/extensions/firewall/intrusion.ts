/** Bans of fail2ban and CrowdSec: servers of the test's own. The jails of fail2ban do nothing but hold bans. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { freePort } from '../../support/ports.ts';
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

/** CrowdSec's own local API, on a free port of loopback, with files of the test. */
class CrowdSec {
    readonly folder: string;
    #server: ChildProcess | null = null;

    constructor(folder: string, port: number) {
        this.folder = folder;
        mkdirSync(join(folder, 'data'));
        const config = {
            common: { daemonize: false, log_media: 'stdout', log_level: 'error' },
            config_paths: {
                config_dir: folder,
                data_dir: join(folder, 'data'),
                hub_dir: join(folder, 'hub'),
                simulation_path: join(folder, 'simulation.yaml'),
                notification_dir: join(folder, 'notifications'),
                plugin_dir: join(folder, 'plugins')
            },
            db_config: { type: 'sqlite', db_path: join(folder, 'data', 'crowdsec.db'), use_wal: true },
            api: {
                client: { credentials_path: join(folder, 'client.yaml') },
                server: {
                    listen_uri: `127.0.0.1:${port}`,
                    profiles_path: join(folder, 'profiles.yaml'),
                    console_path: join(folder, 'console.yaml')
                }
            },
            prometheus: { enabled: false }
        };
        // JSON is YAML.
        this.#write('config.yaml', JSON.stringify(config));
        this.#write('simulation.yaml', 'simulation: false\n');
        // It does not start without one.
        this.#write('profiles.yaml', 'name: all\nfilters: ["true"]\ndecisions: []\n');
        this.#write('client.yaml', '');
    }

    async start(): Promise<void> {
        await this.cli('machines', 'add', 'test', '--password', 'a password of the test', '--force');
        this.#server = spawn('crowdsec', ['-c', join(this.folder, 'config.yaml'), '-no-cs'], {
            stdio: 'ignore'
        });
        await until(async () => (await this.cli('decisions', 'list')).code === 0);
    }

    cli = (...args: readonly string[]) => run('cscli', '-c', join(this.folder, 'config.yaml'), ...args);

    async stop(): Promise<void> {
        const server = this.#server;
        this.#server = null;
        if (server !== null) {
            server.kill();
            await once(server, 'exit');
        }
    }

    #write(name: string, text: string): void {
        writeFileSync(join(this.folder, name), text, { mode: 0o600 });
    }
}

describe('bans of CrowdSec', patient, () => {
    const lacking = noNamespaces ?? (existsSync('/usr/bin/cscli') ? undefined : 'crowdsec is not installed');
    const test = itUnless(lacking, it);
    let rig: FirewallRig;
    let crowdsec: CrowdSec;
    const lists = async () => {
        const { data } = await rig.get('/intrusion');
        const { available, lists } = data.find((each: { tool: string }) => each.tool === 'crowdsec');
        return [
            available,
            ...lists.map(({ name, addresses }: { name: string; addresses: string[] }) => [
                name,
                [...addresses].sort()
            ])
        ];
    };
    const change = (verb: 'ban' | 'unban', address: string, who?: Parameters<FirewallRig['ask']>[3]) =>
        rig.ask('POST', `/intrusion/crowdsec/${verb}`, { address }, who);

    before(patient, async () => {
        if (lacking === undefined) {
            crowdsec = new CrowdSec(mkdtempSync(join(tmpdir(), 'portico-crowdsec-')), await freePort());
            await crowdsec.start();
            rig = await FirewallRig.start({ settings: { neverBan: ['192.0.2.128/25'] } });
            rig.host.programs.answer('cscli', ({ args }) => crowdsec.cli(...args));
        }
    });
    after(patient, async () => {
        await crowdsec?.stop();
        await rig?.close();
        if (lacking === undefined) {
            rmSync(crowdsec.folder, { recursive: true, force: true });
        }
    });

    test('are listed by their origin, all of them, and nothing else that it decided', async () => {
        expect(await lists()).to.equal([true]);
        for (const address of ['192.0.2.7', '2001:db8::7', '198.51.100.0/24']) {
            expect([address, (await change('ban', address)).status]).to.equal([address, 200]);
        }
        const more = Array.from({ length: 120 }, (_, at) => `203.0.113.${at}`);
        writeFileSync(
            join(crowdsec.folder, 'more.csv'),
            `duration,scope,value\n${more.map((value) => `4h,Ip,${value}`).join('\n')}\n`
        );
        await crowdsec.cli('decisions', 'import', '-i', join(crowdsec.folder, 'more.csv'));
        await crowdsec.cli('decisions', 'add', '--ip', '192.0.2.9', '--type', 'captcha');
        await crowdsec.cli('decisions', 'add', '--scope', 'Country', '--value', 'FR');
        expect(await lists()).to.equal([
            true,
            ['cscli-import', more.sort()],
            ['cscli', ['192.0.2.7', '198.51.100.0/24', '2001:db8::7']]
        ]);
    });

    test('are lifted one by one: a ban of a prefix outlives that of an address in it', async () => {
        await change('ban', '198.51.100.9');
        expect((await change('unban', '198.51.100.9')).status).to.equal(200);
        expect((await change('unban', '2001:DB8:0::7')).status).to.equal(200);
        const [, , [, left]] = await lists();
        expect(left).to.equal(['192.0.2.7', '198.51.100.0/24']);
        for (const address of ['198.51.100.9', '192.0.2.9']) {
            expect([address, (await change('unban', address)).code]).to.equal([address, 40400]);
        }
        expect((await crowdsec.cli('decisions', 'list')).stdout).to.contain('captcha');
    });

    test('spare what is never banned, and are for those who may ban', async () => {
        for (const [address, code] of [
            ['127.0.0.1', 40951],
            ['10.77.0.1', 40951],
            ['192.0.2.200', 40951],
            ['10.0.0.0/8', 40001],
            ['--all', 40001]
        ] as const) {
            expect([address, (await change('ban', address)).code]).to.equal([address, code]);
        }
        const viewer = { username: 'v', permissions: ['read'] };
        expect((await change('ban', '192.0.2.8', viewer)).code).to.equal(40300);
        const [, , [, left]] = await lists();
        expect(left).to.equal(['192.0.2.7', '198.51.100.0/24']);
    });

    test('are not available when it does not run or is missing', async () => {
        await crowdsec.stop();
        expect(await lists()).to.equal([false]);
        const failed = await change('ban', '192.0.2.8');
        expect([failed.code, failed.text.includes('cscli')]).to.equal([50251, true]);
        rig.host.programs.missing('cscli');
        const missing = await change('unban', '192.0.2.7');
        expect([missing.code, missing.text.includes('apt-get install crowdsec')]).to.equal([50302, true]);
    });
});
