import { spawnSync } from 'node:child_process';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createMachine } from '../../../../extensions/monitoring/src/machine.ts';
import { expose } from '../../../../extensions/monitoring/src/prometheus/exposition.ts';
import { Sampler } from '../../../../extensions/monitoring/src/sampling/sampler.ts';
import { itUnless } from '../../../support/skip.ts';
import { TestMachine } from '../machine.ts';
import { base, createMonitoringRig } from '../rig.ts';
import { readExposition } from './grammar.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const wanted = {
    intervalSeconds: 10,
    remoteDisks: false,
    containers: true,
    excludeDisks: [],
    excludeDevices: ['loop*'],
    excludeInterfaces: ['lo']
};
const status = { sampledAt: 1, tookMs: 1.5, samples: 3, writeError: null, series: 7, refused: 0 };
const extras = { checks: [], drives: [], gpus: [] };
const hostile = 'a "quoted" \\ back\nslash, {x="y"} # ü';
const alert = {
    id: 3,
    rule: 1,
    name: hostile,
    metric: 'disk.usedPercent',
    instance: '/a\\b"c\nd',
    operator: '>',
    threshold: 1,
    severity: 'warning',
    channels: null,
    value: 2,
    worst: 2,
    last: 2,
    firedAt: 1,
    endedAt: null,
    endedBy: null,
    notified: 1,
    toldAt: null,
    acknowledgedBy: null,
    acknowledgedAt: null,
    note: null,
    silencedBy: null,
    actionDue: false
};

describe('expose', () => {
    it("writes what a strict reader of the format takes, with the kernel's own counters", async () => {
        const { reading } = await new Sampler(new TestMachine()).take(wanted);
        const families = readExposition(expose({ reading, extras, firing: [], status, settings: wanted }));
        const of = (name: string): (readonly [object, number])[] | undefined =>
            families
                .find((family) => family.name === name)
                ?.samples.map(({ labels, value }) => [Object.fromEntries(labels), value] as const);
        expect(of('portico_memory_size_bytes')).to.equal([[{}, 16_384_000_000]]);
        expect(of('portico_disk_read_bytes_total')).to.equal([
            [{ device: 'sda' }, 20_000 * 512],
            [{ device: 'cciss/c0d0' }, 10_240]
        ]);
        expect(of('portico_network_receive_bytes_total')).to.equal([
            [{ device: 'eth0' }, 5_000],
            [{ device: 'vethab1' }, 9]
        ]);
        expect(of('portico_filesystem_avail_bytes')).to.equal(
            ['/', '/srv/my files', '/tank'].map((mountpoint, index) => [
                {
                    device: ['/dev/sda1', '/dev/sda2', 'tank'][index],
                    fstype: ['ext4', 'xfs', 'zfs'][index],
                    mountpoint
                },
                300_000
            ])
        );
        expect(of('portico_cpu_seconds_total')?.[3]).to.equal([{ cpu: '0', mode: 'idle' }, 40]);
        expect(of('portico_container_cpu_seconds_total')).to.equal([
            [{ id: 'b'.repeat(64), name: 'bbbbbbbbbbbb', runtime: 'podman' }, 20],
            [{ id: '0123456789abcdef'.repeat(4), name: 'web', runtime: 'docker' }, 10]
        ]);
        expect(of('portico_container_memory_limit_bytes')).to.have.length(1);
        expect(of('portico_alert_firing')).to.be.undefined();
    });

    it('escapes what the format would take for its own', async () => {
        const { reading } = await new Sampler(new TestMachine()).take(wanted);
        const text = expose({
            reading,
            extras,
            firing: [alert, { ...alert, id: 4 }],
            status,
            settings: wanted
        });
        const firing = readExposition(text).find(({ name }) => name === 'portico_alert_firing');
        expect(firing?.samples.map(({ labels, value }) => [Object.fromEntries(labels), value])).to.equal(
            ['3', '4'].map((id) => [
                {
                    id,
                    rule: hostile,
                    metric: 'disk.usedPercent',
                    instance: '/a\\b"c\nd',
                    severity: 'warning'
                },
                1
            ])
        );
    });

    it('leaves a family out whole where nothing is known', async () => {
        const machine = new TestMachine();
        [
            '/proc/stat',
            '/proc/meminfo',
            '/proc/diskstats',
            '/proc/net/dev',
            '/proc/loadavg',
            '/proc/uptime',
            '/proc/self/mountinfo'
        ].forEach((path) => machine.files.set(path, null));
        const { reading } = await new Sampler(machine).take(wanted);
        expect(
            readExposition(
                expose({ reading, extras, firing: [], status: { ...status, tookMs: null }, settings: wanted })
            ).map(({ name }) => name)
        ).to.equal(['portico_monitoring_samples_total', 'portico_monitoring_series']);
    });

    const tool = process.env['PORTICO_PROMTOOL'] ?? 'promtool';
    const absent =
        spawnSync(tool, ['--version']).error === undefined ? undefined : 'promtool is not installed';
    itUnless(absent, it)('passes promtool on this machine', async () => {
        const { reading } = await new Sampler(createMachine()).take(wanted);
        const {
            status: exitCode,
            stdout,
            stderr
        } = spawnSync(tool, ['check', 'metrics'], {
            input: expose({ reading, extras, firing: [alert], status, settings: wanted }),
            encoding: 'utf8'
        });
        expect([exitCode, stdout, stderr]).to.equal([0, '', '']);
    });
});

describe('GET /api/plugins/monitoring/prometheus', () => {
    it('answers the text without the envelope, and a refusal with it', async () => {
        const rig = await createMonitoringRig();
        try {
            const answer = await rig.get('/prometheus');
            expect([answer.status, answer.headers.get('content-type')]).to.equal([
                200,
                'text/plain; version=0.0.4; charset=utf-8'
            ]);
            const samples = readExposition(answer.text).find(
                ({ name }) => name === 'portico_monitoring_samples_total'
            )?.samples;
            expect(samples?.map(({ value }) => value)).to.equal([1]);
            const head = await rig.ask('viewer', 'HEAD', `${base}/prometheus`);
            expect([head.status, head.text]).to.equal([200, '']);
            expect([
                (await rig.ask(null, 'GET', `${base}/prometheus`)).code,
                (await rig.ask('viewer', 'POST', `${base}/prometheus`, {})).code
            ]).to.equal([40100, 40400]);
        } finally {
            await rig.end();
        }
    });
});

describe('readExposition', () => {
    it('refuses what only a lenient reader takes', () => {
        const head = '# HELP a_total x\n# TYPE a_total counter\n';
        for (const text of [
            'a 1\n',
            `${head}a_total 1`,
            `${head}a_total  1\n`,
            `${head}a_total{b="c",} 1\n`,
            `${head}a_total{b='c'} 1\n`,
            `${head}a_total{b="\\x"} 1\n`,
            `${head}a_total 1\na_total 1\n`,
            `${head}a_total -1\n`,
            '# HELP a x\n# TYPE a counter\na 1\n',
            `${head}a_total{b="1",c="2"} 1\na_total{c="2",b="3"} 1\n`,
            `${head}a_total 1\n# HELP b x\n# TYPE b gauge\nb 1\na_total{c="1"} 1\n`,
            `${head}a_total Infinity\n`,
            `${head}a_total{b="c"}1\n`
        ]) {
            expect(() => readExposition(text), JSON.stringify(text)).to.throw();
        }
        expect(readExposition(`${head}a_total{b="c"} 1e+21\n`)).to.have.length(1);
    });
});
