import { execFileSync, fork, spawn, spawnSync } from 'node:child_process';
import {
    accessSync,
    closeSync,
    constants,
    existsSync,
    fsyncSync,
    mkdirSync,
    mkdtempSync,
    openSync,
    readlinkSync,
    rmdirSync,
    rmSync,
    writeFileSync,
    writeSync
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createMachine } from '../../../../extensions/monitoring/src/machine.ts';
import { Sampler } from '../../../../extensions/monitoring/src/sampling/sampler.ts';
import { findHierarchy } from '../../../../extensions/monitoring/src/sampling/sources/containers.ts';
import { ProcessList } from '../../../../extensions/monitoring/src/sampling/sources/processes.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { snapshot, TestMachine, worked } from '../machine.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const wanted = {
    intervalSeconds: 10,
    remoteDisks: false,
    containers: true,
    excludeDisks: [] as string[],
    excludeDevices: ['loop*'],
    excludeInterfaces: ['lo', 'veth*']
};
const docker = '0123456789abcdef'.repeat(4);

describe('Sampler on snapshots', () => {
    it('says null for every rate of the first sample, and what is otherwise known', async () => {
        const { sample, elapsedMs } = await new Sampler(new TestMachine()).take(wanted);
        expect(elapsedMs).to.be.null();
        expect(sample.cpu).to.equal({
            cores: 2,
            usage: null,
            user: null,
            system: null,
            iowait: null,
            steal: null,
            perCore: [
                { core: '0', usage: null },
                { core: '1', usage: null }
            ]
        });
        expect(sample.load).to.equal({ one: 1.5, five: 3, fifteen: 0.75, perCore: 1.5 });
        expect(sample.memory).to.equal({
            total: 16_384_000_000,
            used: 12_288_000_000,
            available: 4_096_000_000,
            cached: 2_560_000_000,
            buffers: 102_400_000,
            usedPercent: 75
        });
        expect(sample.swap).to.equal({ total: 2_048_000_000, used: 512_000_000, usedPercent: 25 });
        expect([sample.uptimeSeconds, sample.processes]).to.equal([
            86_400.25,
            { running: 3, blocked: 1, tasks: 321 }
        ]);
        expect(
            [...sample.devices, ...sample.interfaces]
                .flatMap((each) => Object.values(each))
                .every((value) => value === null || typeof value === 'string')
        ).to.be.true();
        expect(
            sample.containers.map(({ name, cpu, readBytesPerSecond }) => [name, cpu, readBytesPerSecond])
        ).to.equal([
            ['bbbbbbbbbbbb', null, null],
            ['web', null, null]
        ]);
    });

    it('makes exact rates of two snapshots', async () => {
        const machine = new TestMachine();
        const sampler = new Sampler(machine);
        await sampler.take(wanted);
        machine.use(snapshot('second'));
        machine.pass(10_000);
        const { sample, elapsedMs } = await sampler.take(wanted);
        expect([elapsedMs, sample.intervalSeconds]).to.equal([10_000, 10]);
        expect(sample.cpu).to.equal({
            cores: 2,
            usage: 25,
            user: 15,
            system: 6,
            iowait: 5,
            steal: 4,
            perCore: [
                { core: '0', usage: ((300 + 100 + 10 + 80) / 890) * 100 },
                { core: '1', usage: (10 / 1110) * 100 }
            ]
        });
        expect(sample.devices).to.equal([
            {
                name: 'sda',
                readBytesPerSecond: (2000 * 512) / 10,
                writeBytesPerSecond: (20_000 * 512) / 10,
                readsPerSecond: 10,
                writesPerSecond: 40,
                utilisation: 25
            },
            {
                name: 'nvme0n1',
                readBytesPerSecond: null,
                writeBytesPerSecond: null,
                readsPerSecond: null,
                writesPerSecond: null,
                utilisation: null
            },
            {
                name: 'cciss/c0d0',
                readBytesPerSecond: 1024,
                writeBytesPerSecond: 0,
                readsPerSecond: 1,
                writesPerSecond: 0,
                utilisation: 0
            }
        ]);
        // What was sent went down: the interface came anew. What was received went up all the same.
        expect(sample.interfaces).to.equal([
            {
                name: 'eth0',
                rxBytesPerSecond: 10_000,
                txBytesPerSecond: null,
                rxPacketsPerSecond: 10,
                txPacketsPerSecond: 1,
                rxErrorsPerSecond: 0.1,
                txErrorsPerSecond: 0,
                rxDroppedPerSecond: 0,
                txDroppedPerSecond: 1
            }
        ]);
        expect(sample.containers[1]).to.equal({
            id: docker,
            name: 'web',
            runtime: 'docker',
            cpu: 150,
            memory: 300_000_000,
            memoryLimit: 1_000_000_000,
            memoryPercent: 30,
            readBytesPerSecond: 200_000,
            writeBytesPerSecond: 20_000,
            rxBytesPerSecond: null,
            txBytesPerSecond: null,
            processes: 7
        });
        expect(sample.containers[0]).to.include({
            id: 'b'.repeat(64),
            runtime: 'podman',
            cpu: 300,
            memory: 100,
            memoryLimit: null,
            memoryPercent: (100 / 16_384_000_000) * 100,
            readBytesPerSecond: null,
            processes: null
        });
    });

    it('lists each file system once, with the rates of its own partition', async () => {
        const machine = new TestMachine();
        machine.spaces.set('/', { total: 1000, free: 300, available: 200, inodes: 0, inodesFree: 0 });
        const sampler = new Sampler(machine);
        await sampler.take(wanted);
        machine.use(snapshot('second'));
        machine.pass(10_000);
        const { disks } = (await sampler.take(wanted)).sample;
        expect(disks.map(({ mount, device, type, readOnly }) => [mount, device, type, readOnly])).to.equal([
            ['/', 'sda1', 'ext4', false],
            ['/srv/my files', 'sda2', 'xfs', false],
            ['/tank', null, 'zfs', true]
        ]);
        expect(disks[0]).to.include({
            total: 1000,
            used: 700,
            available: 200,
            usedPercent: (700 / 900) * 100,
            inodes: null,
            inodesUsed: null,
            inodesUsedPercent: null,
            readsPerSecond: 10,
            writesPerSecond: 0,
            utilisation: 5
        });
        expect(disks[1]).to.include({
            used: 600_000,
            usedPercent: (600_000 / 900_000) * 100,
            inodesUsed: 100,
            inodesUsedPercent: 10,
            writeBytesPerSecond: (20_000 * 512) / 10,
            utilisation: 20
        });
        const all = await sampler.take({ ...wanted, remoteDisks: true, excludeDisks: ['/srv/*', '/t?nk'] });
        expect(all.sample.disks.map(({ mount }) => mount)).to.equal(['/', '/mnt/nas']);
    });

    it('measures by the clock that does not jump, and makes no rate of what lies too far apart', async () => {
        const machine = new TestMachine();
        const sampler = new Sampler(machine);
        await sampler.take(wanted);
        machine.use(snapshot('second'));
        machine.pass(10_000);
        machine.time -= 7_200_000;
        const jumped = (await sampler.take(wanted)).sample;
        expect([jumped.at, jumped.interfaces[0]?.rxBytesPerSecond, jumped.cpu?.usage]).to.equal([
            '2026-03-01T10:00:10.100Z',
            10_000,
            25
        ]);
        machine.use(snapshot('first'));
        machine.pass(3_600_000);
        const slept = (await sampler.take(wanted)).sample;
        expect([slept.intervalSeconds, slept.cpu?.usage, slept.interfaces[0]?.rxPacketsPerSecond]).to.equal([
            null,
            null,
            null
        ]);
    });

    it('says null where counters were set back, and no more than that', async () => {
        const machine = new TestMachine(snapshot('second'));
        const sampler = new Sampler(machine);
        await sampler.take(wanted);
        machine.use(snapshot('first'));
        machine.pass(10_000);
        const { sample } = await sampler.take(wanted);
        expect([
            sample.cpu?.usage,
            sample.devices[0]?.readBytesPerSecond,
            sample.interfaces[0]?.rxBytesPerSecond,
            sample.interfaces[0]?.txBytesPerSecond
        ]).to.equal([null, null, null, 100]);
        expect(sample.containers.map(({ cpu }) => cpu)).to.equal([null, null]);
    });

    it('takes the control group nearer to the root for a container that two of them are called like', async () => {
        const machine = new TestMachine();
        const folders = machine.folders.bind(machine);
        machine.folders = (path) =>
            path === '/sys/fs/cgroup'
                ? ['user.slice', ...folders(path)]
                : path === '/sys/fs/cgroup/user.slice'
                  ? ['deeper']
                  : path === '/sys/fs/cgroup/user.slice/deeper'
                    ? ['1', '2', '3']
                    : /deeper\/\d$/.test(path)
                      ? [`docker-${docker}.scope`]
                      : folders(path);
        const { containers } = (await new Sampler(machine).take(wanted)).sample;
        expect(containers.map(({ id, memory }) => [id, memory])).to.equal([
            ['b'.repeat(64), 100],
            [docker, 200_000_000]
        ]);
    });

    it('goes on without what the machine does not have, and never waits for a file system that hangs', async () => {
        const machine = new TestMachine();
        [
            '/proc/stat',
            '/proc/meminfo',
            '/proc/diskstats',
            '/proc/net/dev',
            '/proc/loadavg',
            '/proc/uptime'
        ].forEach((path) => machine.files.set(path, null));
        let asked = 0;
        let answer: (space: {
            total: number;
            free: number;
            available: number;
            inodes: number;
            inodesFree: number;
        }) => void = () => undefined;
        const hanging = new Promise<{
            total: number;
            free: number;
            available: number;
            inodes: number;
            inodesFree: number;
        }>((resolve) => {
            answer = resolve;
        });
        const space = machine.space.bind(machine);
        machine.space = async (mount) => {
            if (mount !== '/tank') {
                return space(mount);
            }
            asked += 1;
            return hanging;
        };
        const sampler = new Sampler(machine);
        const { sample } = await sampler.take(wanted);
        expect([
            sample.cpu,
            sample.memory,
            sample.load,
            sample.uptimeSeconds,
            sample.devices,
            sample.interfaces
        ]).to.equal([null, null, null, null, [], []]);
        expect(
            sample.disks.map(({ mount, total, usedPercent }) => [mount, total === null, usedPercent === null])
        ).to.equal([
            ['/', false, false],
            ['/srv/my files', false, false],
            ['/tank', true, true]
        ]);
        await sampler.take(wanted);
        expect(asked).to.equal(1);
        answer({ total: 10, free: 5, available: 5, inodes: 1, inodesFree: 1 });
        await hanging;
        await wait(0);
        expect((await sampler.take(wanted)).sample.disks[2]?.usedPercent).to.equal(50);
    });
});

describe('Processes on snapshots', () => {
    it('measures from list to list, tells a process from its successor, and reads names with parentheses', async () => {
        const machine = new TestMachine();
        const processes = new ProcessList(machine);
        const first = await processes.list();
        expect(first.map(({ pid, name, cpu }) => [pid, name, cpu])).to.equal([
            [1, 'init', null],
            [77, 'a) S (b c', null],
            [90, 'old', null]
        ]);
        machine.use(snapshot('second'));
        machine.pass(5_000);
        const second = await processes.list();
        expect(second.map(({ pid, name, cpu }) => [pid, name, cpu])).to.equal([
            [1, 'init', 0],
            [77, 'a) S (b c', 50],
            [90, 'new', null]
        ]);
        expect(second[1]).to.include({
            parent: 1,
            state: 'R',
            user: 'www',
            threads: 4,
            memory: 1000 * 16_384,
            memoryPercent: 0.1,
            startedAt: '2026-01-01T00:00:50.000Z'
        });
        machine.pass(130_000);
        expect((await processes.list()).map(({ cpu }) => cpu)).to.equal([null, null, null]);
        expect(await processes.command(77)).to.equal('/usr/bin/worker --token s3cret value');
        expect(await processes.command(4_000)).to.be.null();
    });
});

describe('Sampler on this machine', () => {
    const real = { ...wanted, excludeInterfaces: [] as string[] };

    it('follows processor, disk and network under load', { timeout: 60_000 }, async () => {
        const sampler = new Sampler(createMachine());
        // On a disk, whose counter has to move: the run's own temporary folder may lie in memory.
        const folder = mkdtempSync('/var/tmp/portico-load-');
        const sink = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
        const burner = fork(new URL('burner.mjs', import.meta.url), { stdio: 'ignore', execArgv: [] });
        try {
            await new Promise((resolve) => {
                sink.once('listening', resolve);
            });
            await new Promise((resolve) => {
                burner.once('message', resolve);
            });
            const client = connect((sink.address() as { port: number }).port, '127.0.0.1');
            await sampler.take(real);
            const chunk = Buffer.alloc(1024 * 1024, 7);
            const file = openSync(join(folder, 'bytes'), 'w');
            for (let mebibyte = 0; mebibyte < 24; mebibyte += 1) {
                writeSync(file, chunk);
                await new Promise((resolve) => {
                    client.write(chunk, resolve);
                });
            }
            fsyncSync(file);
            closeSync(file);
            await worked(burner.pid, 0.4);
            client.destroy();
            const { sample, tookMs } = await sampler.take(real);
            const seconds = sample.intervalSeconds ?? 0;
            const sent =
                (sample.interfaces.find(({ name }) => name === 'lo')?.txBytesPerSecond ?? 0) * seconds;
            expect(sent).to.be.above(24 * 1024 * 1024);
            const written =
                sample.devices.reduce((sum, { writeBytesPerSecond }) => sum + (writeBytesPerSecond ?? 0), 0) *
                seconds;
            if (sample.devices.length > 0) {
                expect(written).to.be.above(24 * 1024 * 1024 * 0.9);
            }
            // One busy process is at least its part of all processors.
            expect((sample.cpu?.usage ?? 0) * (sample.cpu?.cores ?? 1)).to.be.within(
                50,
                100.01 * (sample.cpu?.cores ?? 1)
            );
            expect(tookMs).to.be.within(0, seconds * 1_000);
            const processes = new ProcessList(createMachine());
            await processes.list();
            const began = performance.now();
            await worked(burner.pid, 0.3);
            const busy = (await processes.list()).find(({ pid }) => pid === burner.pid);
            const most = (performance.now() - began) / 10;
            // Less than the 30 ticks: the list before was taken a little earlier than its answer came.
            expect(((busy?.cpu ?? -1) * most) / 100).to.be.within(20, most * 1.15);
            expect(busy?.memory ?? -1).to.be.above(10_000_000);
        } finally {
            burner.kill('SIGKILL');
            sink.close();
            rmSync(folder, { recursive: true, force: true });
        }
    });

    it('agrees with df about space', async () => {
        const { sample } = await new Sampler(createMachine()).take(real);
        const root = sample.disks.find(({ mount }) => mount === '/');
        const [, line = ''] = execFileSync('df', ['-B1', '--output=size,used,avail', '/'], {
            encoding: 'utf8'
        })
            .trim()
            .split('\n');
        const [size = 0, used = 0] = line.trim().split(/\s+/).map(Number);
        expect(root?.total).to.equal(size);
        expect(Math.abs((root?.used ?? 0) - used)).to.be.below(size * 0.01 + 64 * 1024 * 1024);
    });

    const hierarchy = findHierarchy(createMachine());
    const group = `${hierarchy}/docker`;
    const cannot =
        hierarchy === null
            ? 'no unified hierarchy of control groups'
            : mayWrite(hierarchy)
              ? undefined
              : 'control groups can be made by root only, and where they are not read-only';
    itUnless(cannot, it)('measures a control group as a container', async () => {
        const folder = join(group, 'c'.repeat(64));
        const made = !existsSync(group);
        mkdirSync(folder, { recursive: true });
        const burner = fork(new URL('burner.mjs', import.meta.url), { stdio: 'ignore', execArgv: [] });
        try {
            await new Promise((resolve) => {
                burner.once('message', resolve);
            });
            writeFileSync(join(folder, 'cgroup.procs'), String(burner.pid));
            const sampler = new Sampler(createMachine());
            const before = await sampler.take(real);
            await worked(burner.pid, 0.4);
            const { sample } = await sampler.take(real);
            const container = sample.containers.find(({ id }) => id === 'c'.repeat(64));
            expect(before.sample.containers.find(({ id }) => id === 'c'.repeat(64))?.cpu).to.be.null();
            expect(container).to.include({ runtime: 'docker', name: 'c'.repeat(12) });
            const seconds = sample.intervalSeconds ?? 0;
            expect(((container?.cpu ?? -1) / 100) * seconds).to.be.within(0.35, seconds * 1.15);
        } finally {
            const gone = new Promise((resolve) => {
                burner.once('exit', resolve);
            });
            burner.kill('SIGKILL');
            await gone;
            for (let tries = 0; tries < 200 && existsSync(folder); tries += 1) {
                try {
                    rmdirSync(folder);
                } catch {
                    await wait(10);
                }
            }
            if (made) {
                rmdirSync(group);
            }
        }
    });

    const cannotConnect =
        cannot ??
        (spawnSync('ip', ['-V']).error === undefined && process.getuid?.() === 0
            ? undefined
            : 'networks can be made by root only, with the program ip');
    itUnless(cannotConnect, it)('measures what a container with a network of its own receives', async () => {
        const id = `${process.pid.toString(16).padStart(8, '0')}`.repeat(8);
        const folder = join(group, id);
        const made = !existsSync(group);
        // Its processes are in a group below, as those of a container that runs systemd are.
        mkdirSync(join(folder, 'init.scope'), { recursive: true });
        const sleeper = spawn('unshare', ['--net', 'sleep', '60'], { stdio: 'ignore' });
        const [here, inside] = [`mo${process.pid}a`, `mo${process.pid}b`];
        const run = (file: string, ...args: string[]): unknown =>
            execFileSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
        try {
            const pid = String(sleeper.pid);
            const own = readlinkSync('/proc/self/ns/net');
            await until(() => (readlinkSync(`/proc/${pid}/ns/net`) === own ? null : true), 'a network');
            writeFileSync(join(folder, 'init.scope', 'cgroup.procs'), pid);
            run('ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', inside, 'netns', pid);
            run('ip', 'address', 'add', '10.231.77.1/30', 'dev', here);
            run('ip', 'link', 'set', here, 'up');
            run('nsenter', '-t', pid, '-n', 'ip', 'address', 'add', '10.231.77.2/30', 'dev', inside);
            run('nsenter', '-t', pid, '-n', 'ip', 'link', 'set', inside, 'up');
            const sampler = new Sampler(createMachine());
            await sampler.take(real);
            run('ping', '-c', '20', '-i', '0.02', '-s', '1400', '10.231.77.2');
            const { sample } = await sampler.take(real);
            const container = sample.containers.find((each) => each.id === id);
            const seconds = sample.intervalSeconds ?? 0;
            expect((container?.rxBytesPerSecond ?? 0) * seconds).to.be.within(20 * 1400, 20 * 3000);
            expect((container?.txBytesPerSecond ?? 0) * seconds).to.be.within(20 * 1400, 20 * 3000);
        } finally {
            const gone = new Promise((resolve) => {
                sleeper.once('exit', resolve);
            });
            sleeper.kill('SIGKILL');
            await gone;
            for (const each of [join(folder, 'init.scope'), folder, ...(made ? [group] : [])]) {
                await until(() => removed(each), `${each} to be removed`);
            }
        }
    });
});

function removed(folder: string): true | null {
    try {
        rmdirSync(folder);
        return true;
    } catch {
        return null;
    }
}

function mayWrite(folder: string): boolean {
    try {
        accessSync(folder, constants.W_OK);
        return true;
    } catch {
        return false;
    }
}
