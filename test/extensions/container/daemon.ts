/** Settings of a dockerd that systemd runs: Debian's own unit, in a machine of the test's own. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createTestHost, type TestHost } from '@portico/testing';

import { defineContainer } from '../../../extensions/container/src/index.ts';
import { realMachine } from '../../../extensions/container/src/machine.ts';
import { noSystemd, SystemdMachine } from '../../support/machine/systemd.ts';
import { itUnless } from '../../support/skip.ts';
import { noEngine } from './engines.ts';
import type { EndedTask } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 120_000;
const unit = '/lib/systemd/system/docker.service';
const lacks = noEngine ?? noSystemd ?? (existsSync(unit) ? undefined : `${unit} is not there`);
const real = itUnless(lacks, it);
/** The folder of the panel's data is the one that both machines see. */
const inside = '/var/lib/portico/docker';
const dropIns = {
    'docker.service': `[Service]
ExecStart=
ExecStart=/usr/sbin/dockerd -H fd:// --config-file ${inside}/daemon.json --data-root ${inside}/data --bridge none --iptables=false
`,
    'docker.socket': `[Socket]\nListenStream=\nListenStream=${inside}/engine.sock\n`
};
let machine: SystemdMachine;
let host: TestHost;
let folder: string;

/** Runs the machine's own program where no systemd is the first process. */
function withoutSystemd(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const script = 'mount -t tmpfs tmpfs /run && exec systemctl "$@"';
    return new Promise((resolve) => {
        execFile('unshare', ['--mount', 'sh', '-c', script, 'sh', ...args], (error, stdout, stderr) => {
            resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
        });
    });
}

const file = (): string => readFileSync(join(machine.dataDir, 'docker/daemon.json'), 'utf8');
const mainPid = async (): Promise<string> =>
    (await machine.run('systemctl', ['show', '--property=MainPID', '--value', 'docker.service'])).trim();

async function set(change: object): Promise<EndedTask> {
    const { status, data, text } = await host.as('admin').ask<{ id: number }>('PUT', '/daemon', change);
    expect(status, text).to.equal(202);
    return (await host.tasks.wait(data.id)) as EndedTask;
}

describe('The settings of a daemon that systemd runs', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (lacks !== undefined) {
            return;
        }
        folder = mkdtempSync(join(tmpdir(), 'pcd-'));
        machine = new SystemdMachine();
        await machine.boot();
        mkdirSync(join(machine.dataDir, 'docker'));
        writeFileSync(join(machine.dataDir, 'docker/daemon.json'), '{ "debug": false }\n');
        for (const [name, text] of Object.entries(dropIns)) {
            const path = machine.unitPath(`${name}.d/test.conf`);
            mkdirSync(dirname(path));
            writeFileSync(path, text);
        }
        await machine.run('systemctl', ['daemon-reload']);
        const { stderr } = await machine.exec('systemctl', ['start', 'docker.service']);
        expect(stderr).to.equal('');
        const socket = join(machine.dataDir, 'docker/engine.sock');
        const daemonFile = join(machine.dataDir, 'docker/daemon.json');
        host = await createTestHost(defineContainer({ ...realMachine, daemonFile }), {
            package: new URL('../../../extensions/container/package.json', import.meta.url),
            machine: 'real',
            settings: { socket, stackFolder: join(folder, 'stacks') },
            timing: { patienceMs: 60_000 }
        });
        host.network.lead(socket, { path: socket });
        host.programs.answer('systemctl', ({ args }) => machine.exec('systemctl', args));
    });

    after({ timeout: limitMs }, async () => {
        await host?.close();
        await machine?.close();
        if (folder !== undefined) {
            rmSync(folder, { recursive: true, force: true });
        }
    });

    real('are read anew by the process that runs, or by a new one, as each setting needs', async () => {
        const first = await mainPid();
        const reloaded = await set({ liveRestore: true, registryMirrors: ['http://127.0.0.1:5000'] });
        expect(reloaded.error).to.be.null();
        expect(reloaded.result).to.include({ applied: 'reload', liveRestore: true });
        expect(await mainPid()).to.equal(first);
        const restarted = await set({ logDriver: 'local', logOptions: { 'max-size': '1m' } });
        expect(restarted.result).to.include({ applied: 'restart', logDriver: 'local' });
        expect(await mainPid()).to.not.equal(first);
        expect(JSON.parse(file())).to.equal({
            debug: false,
            'registry-mirrors': ['http://127.0.0.1:5000'],
            'log-driver': 'local',
            'log-opts': { 'max-size': '1m' },
            'live-restore': true
        });
    });

    real('come back when the daemon failed so often that systemd starts it no more', async () => {
        const kept = file();
        const failed = await set({ logOptions: { nonsense: '1' } });
        expect([failed.state, failed.error?.code]).to.equal(['failed', 42254]);
        expect(file()).to.equal(kept);
        const journal = await machine.run('journalctl', ['--no-pager', '-u', 'docker.service']);
        expect(journal).to.contain('Start request repeated too quickly');
        expect((await host.as('admin').ask('GET', '/containers')).status).to.equal(200);
    });

    real('stay where no systemd runs, which is said with what helps', async () => {
        host.programs.answer('systemctl', ({ args }) => withoutSystemd(args));
        const kept = file();
        const failed = await set({ logOptions: {} });
        expect([failed.state, failed.error?.code]).to.equal(['failed', 50302]);
        expect(failed.error?.message).to.contain('systemd');
        expect(file()).to.equal(kept);
    });
});
