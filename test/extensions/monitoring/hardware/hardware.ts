import { existsSync, readdirSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { parseGpus } from '../../../../extensions/monitoring/src/hardware/gpus.ts';
import { parseSmart } from '../../../../extensions/monitoring/src/hardware/smart.ts';
import { createMachine } from '../../../../extensions/monitoring/src/machine.ts';
import { Sampler } from '../../../../extensions/monitoring/src/sampling/sampler.ts';
import { readPressure } from '../../../../extensions/monitoring/src/sampling/sources/pressure.ts';
import { Sensors } from '../../../../extensions/monitoring/src/sampling/sources/sensors.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { TestMachine } from '../machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';
import { asleep, failing, flash, nvme } from './smart-output.ts';
import { addChip, addDrive, HardwareTree } from './tree.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const mdstat = `Personalities : [raid1] [raid6] [raid5] [raid4]
md0 : active raid1 sdb1[2](F) sda1[0]
      976630464 blocks super 1.2 [2/1] [U_]
      bitmap: 3/8 pages [12KB], 65536KB chunk

md1 : active raid5 sdf1[4] sde1[2] sdd1[1] sdc1[0](S)
      1953260928 blocks level 5, 64k chunk, algorithm 2 [3/2] [UU_]
      [==>..................]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec

md2 : active (auto-read-only) raid1 sdh1[1] sdg1[0]
      523712 blocks super 1.2 [2/2] [UU]
      	resync=PENDING

md3 : active raid5 sdi1[0](F) sdj1[1](F) sdk1[2]
      1000 blocks level 5, 64k chunk, algorithm 2 [3/1] [__U]

md127 : inactive sdz1[0](S)
      1000 blocks super 1.2

unused devices: <none>
`;

describe('/api/plugins/monitoring/hardware', () => {
    let rig: MonitoringRig;
    let tree: HardwareTree;
    const look = async (): Promise<void> => {
        rig.machine.pass(300_000);
        await rig.host.schedules.run('hardware');
        await rig.machine.tick();
    };

    beforeEach(async () => {
        tree = new HardwareTree();
        rig = await createMonitoringRig();
        rig.machine.use(tree.root);
    });
    afterEach(async () => {
        await rig.end();
        tree[Symbol.dispose]();
    });

    it('says how drives are, keeps the values of one that sleeps, and finds those that fail', async () => {
        addDrive(tree, 'nvme0n1', false, 'INTEL SSDPEKNW010T8');
        addDrive(tree, 'sdb', true, 'HDS721050DLE630');
        addDrive(tree, 'sdc', false, 'Samsung SSD 860');
        tree.write('sys/block/md0/size', 1);
        const answers = new Map([
            ['/dev/nvme0n1', nvme()],
            ['/dev/sdb', failing],
            ['/dev/sdc', flash]
        ]);
        rig.host.programs.answer('smartctl', ({ args }) => ({
            code: 216,
            stdout: answers.get(args.at(-1) ?? '') ?? ''
        }));
        await look();
        const { drives, missing } = (await rig.get('/hardware')).data;
        expect(missing).to.equal([]);
        expect(drives[0]).to.equal({
            name: 'nvme0n1',
            kind: 'ssd',
            state: 'ok',
            message: null,
            model: 'INTEL SSDPEKNW010T8',
            serial: 'S-1',
            size: 2_000_409_264 * 512,
            temperature: 36,
            wear: 7,
            poweredHours: 2401,
            reallocatedSectors: null,
            pendingSectors: null
        });
        expect(drives[1]).to.include({
            name: 'sdb',
            kind: 'hdd',
            state: 'failed',
            message: 'It says that it fails (Reallocated_Sector_Ct)',
            wear: null,
            reallocatedSectors: 1975,
            pendingSectors: 8
        });
        expect(drives[2]).to.include({ name: 'sdc', state: 'ok', wear: 12 });
        const found = (await rig.get('/unhealthy')).data.findings.filter(
            ({ kind }: { kind: string }) => kind === 'drive'
        );
        expect(found).to.have.length(1);
        expect(found[0]).to.include({
            severity: 'critical',
            subject: 'sdb (Hitachi HDS721050DLE630)',
            remedy: 'Save its data and replace it'
        });
        expect((await rig.get('/metrics')).data.drives).to.include({
            name: 'nvme0n1',
            wear: 7,
            temperature: 36
        });
        answers.set('/dev/sdb', asleep);
        answers.set('/dev/sdc', 'no JSON');
        await look();
        const later = (await rig.get('/hardware')).data.drives;
        expect(later[1]).to.include({ state: 'standby', temperature: 25, serial: 'S-2', message: null });
        expect(later[2]).to.include({
            state: 'unknown',
            model: 'Samsung SSD 860',
            message: 'smartctl gave no answer that can be read'
        });
        expect(rig.host.programs.calls.at(-1)?.args).to.equal([
            '--json',
            '--all',
            '--nocheck=standby',
            '/dev/sdc'
        ]);
    });

    it('names the program that is missing, and asks for none without hardware', async () => {
        await look();
        expect((await rig.get('/hardware')).data).to.include({ drives: [], gpus: [], missing: [] });
        addDrive(tree, 'sdb', true, 'HDS721050DLE630');
        tree.write('sys/bus/pci/devices/0000:01:00.0/vendor', '0x10de');
        tree.write('sys/bus/pci/devices/0000:01:00.0/class', '0x030000');
        rig.host.programs.missing('smartctl');
        rig.host.programs.missing('nvidia-smi');
        await look();
        const { drives, gpus, missing } = (await rig.get('/hardware')).data;
        expect(drives[0]).to.include({ name: 'sdb', state: 'unknown', model: 'HDS721050DLE630' });
        expect(gpus).to.equal([]);
        expect(missing).to.equal([
            { part: 'drives', tool: 'smartctl', install: 'apt-get install smartmontools' },
            { part: 'gpus', tool: 'nvidia-smi', install: 'apt-get install nvidia-smi' }
        ]);
        rig.host.programs.answer(
            'nvidia-smi',
            '0, Tesla T4, 37, 1024, 15360, 61, 34.20\n1, NVIDIA GeForce GT 710, [N/A], 10, 2000, 40, [N/A]\n'
        );
        await look();
        expect((await rig.get('/hardware')).data.gpus).to.equal([
            {
                name: '0',
                model: 'Tesla T4',
                state: 'ok',
                usage: 37,
                memoryUsed: 1024 * 1024 * 1024,
                memoryTotal: 15_360 * 1024 * 1024,
                temperature: 61,
                power: 34.2
            },
            {
                name: '1',
                model: 'NVIDIA GeForce GT 710',
                state: 'ok',
                usage: null,
                memoryUsed: 10 * 1024 * 1024,
                memoryTotal: 2_000 * 1024 * 1024,
                temperature: 40,
                power: null
            }
        ]);
    });

    it('reads arrays, and finds those that lack disks', async () => {
        tree.write('proc/mdstat', mdstat);
        await rig.machine.tick();
        const { raids } = (await rig.get('/hardware')).data;
        expect(raids.map(({ name, level, state }: Record<string, string>) => [name, level, state])).to.equal([
            ['md0', 'raid1', 'degraded'],
            ['md1', 'raid5', 'rebuilding'],
            ['md2', 'raid1', 'ok'],
            ['md3', 'raid5', 'failed'],
            ['md127', null, 'inactive']
        ]);
        expect(raids[0]).to.include({
            members: ['sdb1', 'sda1'],
            failedMembers: ['sdb1'],
            wanted: 2,
            working: 1,
            size: 976_630_464 * 1024,
            action: null
        });
        expect(raids[1]).to.include({ action: 'recovery', progress: 12.6 });
        expect(raids[2]).to.include({ action: 'resync', progress: null });
        const found = (await rig.get('/unhealthy')).data.findings.filter(
            ({ kind }: { kind: string }) => kind === 'raid'
        );
        expect(
            found.map(({ subject, severity, message }: Record<string, string>) => [
                subject,
                severity,
                message
            ])
        ).to.equal([
            ['md0', 'critical', 'It has less redundancy than it should; 1 of 2 disks work; failed: sdb1'],
            ['md3', 'critical', 'It has failed; 1 of 3 disks work; failed: sdi1, sdj1'],
            ['md1', 'warning', 'It is being rebuilt (recovery, 12.6 %)']
        ]);
    });

    it('fires a rule on a sensor, keeps its history, and exposes all of it', async () => {
        addChip(tree, 'hwmon0', 'coretemp', 'coretemp.0', {
            temp1_label: 'Package id 0',
            temp1_input: 61_000,
            temp1_max: 80_000,
            temp1_crit: 100_000,
            fan1_input: 1200
        });
        rig.machine.pass(60_000);
        await rig.machine.tick();
        await rig.ask('op', 'POST', `${base}/rules`, {
            name: 'Hot',
            metric: 'sensor.temperature:coretemp/Package id 0',
            threshold: 90,
            forSeconds: 0
        });
        tree.write('sys/class/hwmon/hwmon0/temp1_input', 101_000);
        await rig.machine.tick();
        expect((await rig.get('/hardware')).data.sensors).to.equal([
            {
                name: 'coretemp/Package id 0',
                kind: 'temperature',
                state: 'critical',
                value: 101,
                warnAt: 80,
                criticalAt: 100
            },
            {
                name: 'coretemp/fan1',
                kind: 'fan',
                state: 'ok',
                value: 1200,
                warnAt: null,
                criticalAt: null
            }
        ]);
        const { findings } = (await rig.get('/unhealthy')).data;
        expect(findings.map(({ kind, subject }: Record<string, string>) => `${kind} ${subject}`)).to.include([
            'alert sensor.temperature:coretemp/Package id 0',
            'sensor coretemp/Package id 0'
        ]);
        const history = (await rig.get(
            `/metrics/history?metric=${encodeURIComponent('sensor.temperature:coretemp/Package id 0')}`
        )) as { data: { points: { max: number | null }[] } };
        expect(history.data.points.map(({ max }) => max)).to.include(101);
        const text = (await rig.get('/prometheus')).text;
        expect(text).to.contain('portico_sensor_temperature_celsius{sensor="coretemp/Package id 0"} 101');
        expect(text).to.contain('portico_sensor_fan_rpm{sensor="coretemp/fan1"} 1200');
    });
});

describe('Sensors', () => {
    it('names chips that share a name by their devices, and leaves out limits that are none', () => {
        using tree = new HardwareTree();
        addChip(tree, 'hwmon0', 'nvme', 'nvme0', {
            temp1_input: 30_000,
            temp1_label: 'Composite',
            temp1_max: 65_261_850,
            temp1_crit: 0,
            temp2_input: 'garbage'
        });
        addChip(tree, 'hwmon1', 'nvme', 'nvme1', { temp1_input: -3_000, temp1_label: 'Composite' });
        const found = new Sensors(new TestMachine(tree.root)).read();
        expect(found.map(({ name, value, warnAt, state }) => [name, value, warnAt, state])).to.equal([
            ['nvme@nvme0/Composite', 30, null, 'ok'],
            ['nvme@nvme0/temp2', null, null, 'unknown'],
            ['nvme@nvme1/Composite', -3, null, 'ok']
        ]);
    });

    it('reads a chip that answers slowly once a minute', () => {
        using tree = new HardwareTree();
        addChip(tree, 'hwmon0', 'slow', 'i2c', { temp1_input: 30_000 });
        const machine = new TestMachine(tree.root);
        const read = machine.read.bind(machine);
        let reads = 0;
        machine.read = (path) => {
            if (path.endsWith('temp1_input')) {
                reads += 1;
                machine.pass(20);
            }
            return read(path);
        };
        const sensors = new Sensors(machine);
        for (let n = 0; n < 12; n += 1) {
            expect(sensors.read()[0]?.value).to.equal(30);
            machine.pass(10_000);
        }
        expect(reads).to.equal(2);
    });
});

describe('parseSmart', () => {
    it('warns of a drive that is worn, has no spare room, or says so', () => {
        expect(parseSmart(nvme({ percentage_used: 93, available_spare: 4 }))).to.include({
            state: 'warning',
            message: '93 % of its life is used up; Its spare room is used up'
        });
        expect(parseSmart(nvme({ critical_warning: 4 }))).to.include({ state: 'warning' });
        expect(parseSmart('')).to.be.null();
        expect(parseSmart('{"smart_status":7,"ata_smart_attributes":{"table":"x"}}')).to.include({
            state: 'unknown'
        });
    });
});

describe('parseGpus', () => {
    it('leaves out lines that are none', () => {
        expect(parseGpus('No devices were found\n0, x\n')).to.equal([]);
    });
});

describe('the pressure of this machine', () => {
    const machine = createMachine();
    itUnless(existsSync('/proc/pressure/cpu') ? undefined : 'this kernel does not count pressure', it)(
        'is counted, and is a share of the time',
        async () => {
            expect(readPressure(machine)?.cpu ?? -1).to.be.above(0);
            const sampler = new Sampler(machine);
            const options = {
                intervalSeconds: 10,
                remoteDisks: false,
                containers: false,
                excludeDisks: [],
                excludeDevices: [],
                excludeInterfaces: []
            };
            expect((await sampler.take(options)).sample.pressure).to.equal({
                cpu: null,
                memory: null,
                io: null
            });
            const pressure = await until(async () => {
                const { sample } = await sampler.take(options);
                return sample.pressure?.cpu == null ? null : sample.pressure;
            }, 'a second sample');
            for (const share of Object.values(pressure)) {
                expect(share ?? -1).to.be.within(0, 100);
            }
        }
    );
});

describe('smartctl of this machine', () => {
    const drives = readdirSync('/sys/block').filter((name) => existsSync(`/sys/block/${name}/device`));
    itUnless(
        drives.length > 0 && existsSync('/usr/sbin/smartctl') ? undefined : 'no drive, or no smartctl',
        it
    )('is understood', async () => {
        const rig = await createMonitoringRig({ on: createMachine(), reach: [] });
        try {
            const found = await until(async () => {
                const { data } = await rig.get('/hardware');
                return data.drives.length > 0 && data.missing.length === 0 ? data.drives : null;
            }, 'the drives to be asked');
            expect(found.map(({ name }: { name: string }) => name)).to.include(drives[0] ?? '');
            for (const { state, message } of found) {
                expect(state === 'ok' || state === 'standby' || message !== null, state).to.be.true();
            }
        } finally {
            await rig.end();
        }
    });
});
