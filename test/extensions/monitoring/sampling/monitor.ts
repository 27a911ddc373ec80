import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { openPluginDatabase } from '../../../../core/src/plugins/runtime/database.ts';
import { entities, migrations } from '../../../../extensions/monitoring/src/entities.ts';
import { History } from '../../../../extensions/monitoring/src/history/history.ts';
import { createMachine } from '../../../../extensions/monitoring/src/machine.ts';
import { Monitor } from '../../../../extensions/monitoring/src/sampling/monitor.ts';
import type { Ctx } from '../../../../extensions/monitoring/src/settings.ts';
import { memoryOf, snapshot, TestMachine } from '../machine.ts';
import { base, createMonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('monitoring over generations', () => {
    it('keeps alerts, what is held, rules and history over a restart, and notifies only once', async () => {
        const rig = await createMonitoringRig();
        const memory = async (percent: number): Promise<void> => {
            rig.machine.files.set('/proc/meminfo', memoryOf(percent));
            await rig.machine.tick();
        };
        try {
            await rig.ask('op', 'POST', `${base}/rules`, {
                name: 'Soon',
                metric: 'memory.usedPercent',
                threshold: 50,
                forSeconds: 0
            });
            await rig.ask('op', 'POST', `${base}/rules`, {
                name: 'Later',
                metric: 'memory.usedPercent',
                threshold: 50,
                forSeconds: 35
            });
            await rig.ask('op', 'DELETE', `${base}/rules/2`);
            await memory(10);
            await memory(60);
            await memory(60);
            const before = (await rig.get('/alerts')).data;
            expect(before.map(({ name }: { name: string }) => name)).to.equal(['Soon']);
            rig.machine.pass(10_000);
            await rig.host.restart();
            expect((await rig.get('/alerts')).data).to.equal(before);
            expect((await rig.get('/rules')).data.map(({ name }: { name: string }) => name)).to.equal([
                'Disk nearly full',
                'Inodes nearly used up',
                'Memory nearly used up',
                'Load high',
                'A check is down',
                'The certificate of a check ends soon',
                'Soon',
                'Later'
            ]);
            // 10 s before the restart, 10 s across it, 10 s after: not 35 yet.
            await memory(60);
            expect((await rig.get('/alerts?state=firing')).data).to.have.length(1);
            await memory(60);
            expect(
                (await rig.get('/alerts?state=firing')).data.map(({ name }: { name: string }) => name)
            ).to.equal(['Later', 'Soon']);
            rig.machine.pass(7_200_000);
            await rig.host.restart();
            await memory(20);
            expect(
                (await rig.get('/alerts?state=firing')).data.map(({ name }: { name: string }) => name)
            ).to.equal(['Later']);
            expect(rig.host.notifications.map(({ title }) => title)).to.equal([
                'Soon',
                'Later',
                'Over: Soon'
            ]);
            const points = (
                await rig.get('/metrics/history?metric=memory.usedPercent&from=2026-03-01T12:00:00Z&step=60')
            ).data.points;
            expect(points[0]).to.include({ min: 10, max: 75 });
            expect(
                points.slice(2, 100).every(({ avg }: { avg: number | null }) => avg === null)
            ).to.be.true();
        } finally {
            await rig.end();
        }
    });

    it('does not take a clock that jumps for time that has passed', async () => {
        const rig = await createMonitoringRig();
        try {
            await rig.ask('op', 'POST', `${base}/rules`, {
                name: 'Held',
                metric: 'memory.usedPercent',
                threshold: 50,
                forSeconds: 20
            });
            await rig.machine.tick();
            rig.machine.time += 86_400_000;
            await rig.machine.tick();
            expect((await rig.get('/alerts')).data).to.equal([]);
            rig.machine.time -= 2 * 86_400_000;
            await rig.machine.tick();
            const { data } = await rig.get('/alerts');
            expect(
                data.map(({ name, state, firedAt }: { name: string; state: string; firedAt: string }) => [
                    name,
                    state,
                    firedAt
                ])
            ).to.equal([['Held', 'firing', '2026-02-28T12:00:30.100Z']]);
        } finally {
            await rig.end();
        }
    });

    it('takes another interval at once', async () => {
        const rig = await createMonitoringRig();
        try {
            expect(await rig.machine.tick()).to.equal(10_000);
            await rig.host.setSettings({
                intervalSeconds: 60,
                excludeInterfaces: ['eth*'],
                maxSeries: 12,
                retentionDays: 30
            });
            const pause = await rig.machine.tick();
            expect([pause > 30_000 && pause <= 60_000, rig.machine.time % 60_000]).to.equal([true, 100]);
            expect(await rig.machine.tick()).to.equal(60_000);
            expect(
                (await rig.get('/metrics')).data.interfaces.map(({ name }: { name: string }) => name)
            ).to.equal(['lo', 'vethab1']);
            expect((await rig.get('/metrics/history?metric=load.one')).data.step).to.equal(60);
            expect((await rig.host.health()).map(({ name, state }) => [name, state])).to.equal([
                ['accessLog', 'ok'],
                ['sampling', 'ok'],
                ['containers', 'ok']
            ]);
            await rig.host.setSettings({ intervalSeconds: 10 });
            rig.machine.steady += 1_000_000;
            expect((await rig.host.health())[1]).to.include({
                state: 'degraded',
                evidence: 'Nothing has been measured lately'
            });
            rig.machine.steady -= 1_000_000;
        } finally {
            await rig.end();
        }
    });

    // A hundred times, under traffic, in a panel: test/extensions/hundred.
    it(
        'leaves nothing behind when it is enabled and disabled twenty times',
        { timeout: 120_000 },
        async () => {
            const rig = await createMonitoringRig({ on: createMachine(), settings: { intervalSeconds: 2 } });
            const descriptors = (): number => readdirSync('/proc/self/fd').length;
            const resources = (): Record<string, number> =>
                Object.fromEntries(
                    Object.entries(Object.groupBy(process.getActiveResourcesInfo(), (kind) => kind)).map(
                        ([kind, list]) => [kind, list?.length ?? 0]
                    )
                );
            const settled = async (): Promise<void> => {
                for (let turn = 0; turn < 5; turn += 1) {
                    await new Promise((resolve) => {
                        setTimeout(resolve, 10);
                    });
                }
            };
            try {
                await rig.host.stop();
                await settled();
                const [files, held] = [descriptors(), resources()];
                for (let round = 0; round < 20; round += 1) {
                    await rig.host.start();
                    const { leaked, failures } = await rig.host.stop();
                    expect([leaked, failures, rig.host.held()]).to.equal([[], [], []]);
                }
                await settled();
                expect(descriptors()).to.be.at.most(files + 2);
                expect(resources()['Timeout'] ?? 0).to.be.at.most((held['Timeout'] ?? 0) + 1);
                await rig.host.start();
                expect((await rig.get('/metrics')).status).to.equal(200);
                expect((await rig.get('/rules')).data).to.have.length(7);
            } finally {
                await rig.end();
            }
        }
    );
});

describe('Monitor', () => {
    it('tells people that a disk is full although nothing can be written, and writes it down when there is room', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'portico-full-'));
        const db = await openPluginDatabase({ dataDir: folder, entities, migrations });
        let [full, deaf] = [false, false];
        const told: string[] = [];
        const settings = {
            intervalSeconds: 10,
            retentionDays: 365,
            maxSeries: 400,
            excludeDisks: [],
            excludeDevices: [],
            excludeInterfaces: [],
            remoteDisks: false,
            containers: false,
            diskFullPercent: 95,
            alertsKept: 10
        };
        const log: string[] = [];
        // The part that a monitor uses.
        const ctx = {
            settings,
            name: 'monitoring',
            log: {
                error: (text: string) => void log.push(text),
                warn: (text: string) => void log.push(text)
            },
            db: {
                read: db.read.bind(db),
                write: (work: never) => (full ? Promise.reject(new Error('disk is full')) : db.write(work))
            },
            async notify({ title }: { readonly title: string }) {
                if (deaf) {
                    throw new Error('no channel');
                }
                told.push(title);
            }
        } as unknown as Ctx;
        const machine = new TestMachine(snapshot('second'));
        const monitor = new Monitor(ctx, machine);
        try {
            await monitor.start();
            full = true;
            ['/', '/srv/my files', '/tank'].forEach((mount) =>
                machine.spaces.set(mount, {
                    total: 100,
                    free: mount === '/' ? 0 : 50,
                    available: mount === '/' ? 0 : 50,
                    inodes: 100,
                    inodesFree: 99
                })
            );
            deaf = true;
            for (let index = 0; index < 9; index += 1) {
                await machine.tick();
            }
            expect([told, monitor.status().writeError]).to.equal([[], 'disk is full']);
            deaf = false;
            await machine.tick();
            expect(told).to.equal(['Disk full: /']);
            expect((await monitor.journal.list({ limit: 10 })).rows.map(({ name }) => name)).to.equal([
                'Disk full'
            ]);
            full = false;
            await machine.tick();
            expect(monitor.status().writeError).to.be.null();
            const stored = await db.read((em) => em.execute('select name, told, ended_at from alerts'));
            expect(stored).to.equal([{ name: 'Disk full', told: 1, ended_at: null }]);
            const plan = monitor.history.plan({
                from: machine.time - 100_000,
                to: machine.time,
                step: 10_000,
                now: machine.time,
                interval: 10_000
            });
            expect(
                (await monitor.history.points('disk.usedPercent:/', plan)).filter(({ max }) => max === 100)
                    .length
            ).to.equal(11);
            expect(log.filter((text) => text === 'History could not be written')).to.have.length(1);
            await monitor.stop();
            const again = new Monitor(ctx, machine);
            await again.start();
            await again.stop();
            expect(told).to.equal(['Disk full: /']);
        } finally {
            await monitor.stop();
            await db.close();
            rmSync(folder, { recursive: true, force: true });
        }
    });

    it(
        'is killed again and again, and loses no more than its open step, and no alert',
        { timeout: 120_000 },
        async () => {
            const folder = mkdtempSync(join(tmpdir(), 'portico-killed-'));
            const told: string[] = [];
            const victims: ChildProcess[] = [];
            try {
                let tick = 0;
                for (let round = 0; round < 4; round += 1) {
                    const victim = fork(new URL('victim.mjs', import.meta.url), [folder, String(tick)], {
                        execArgv: ['--conditions=portico-source', '--disable-warning=ExperimentalWarning'],
                        stdio: 'ignore'
                    });
                    victims.push(victim);
                    const from = tick;
                    const gone = new Promise((resolve) => {
                        victim.once('exit', resolve);
                    });
                    victim.on('message', (message: { readonly tick?: number; readonly told?: string }) => {
                        tick = message.tick ?? tick;
                        if (message.told !== undefined) {
                            told.push(message.told);
                        }
                        if (tick >= from + 45 + round * 7) {
                            victim.kill('SIGKILL');
                        }
                    });
                    await gone;
                    expect(tick).to.be.at.least(from + 45);
                }
                const db = await openPluginDatabase({ dataDir: folder, entities, migrations });
                const machine = new TestMachine();
                const end = machine.time + (tick + 1) * 10_000;
                const history = new History(db, { retentionDays: 365, maxSeries: 400 });
                await history.load(end);
                const plan = history.plan({
                    from: machine.time - 100,
                    to: end,
                    step: 600_000,
                    now: end,
                    interval: 10_000
                });
                const [points] = await db.read((em) =>
                    em.execute<{ rows: number }[]>('select count(*) as rows from history where id < 1000000')
                );
                expect(points?.rows ?? -1).to.be.within(tick - 8, tick + 1);
                const aggregates = await history.points('memory.usedPercent', plan);
                expect([
                    aggregates[0]?.min,
                    aggregates[0]?.max,
                    Math.abs((aggregates[0]?.avg ?? 0) - 67) < 4
                ]).to.equal([40, 95, true]);
                // One alert for each time that it was too much, however often the watcher was killed during it; what was being said at such a moment is said again.
                const times = Math.floor((tick - 10) / 20) + 1;
                const [state] = await db.read((em) =>
                    em.execute<{ open: number; all: number }[]>(
                        'select sum(ended_at is null) as open, count(*) as "all" from alerts'
                    )
                );
                expect([state?.all === times || state?.all === times + 1, (state?.open ?? 0) <= 1]).to.equal([
                    true,
                    true
                ]);
                expect(told.filter((title) => title === 'Short').length).to.be.within(times - 4, times + 5);
                expect(
                    (
                        await db.read((em) =>
                            em.execute<{ integrity_check: string }[]>('pragma integrity_check')
                        )
                    )[0]?.integrity_check
                ).to.equal('ok');
                await db.close();
            } finally {
                victims.forEach((victim) => victim.kill('SIGKILL'));
                rmSync(folder, { recursive: true, force: true });
            }
        }
    );

    it('forgets the oldest alerts beyond what is kept', async () => {
        const rig = await createMonitoringRig({ settings: { alertsKept: 10 } });
        try {
            await rig.ask('op', 'POST', `${base}/rules`, {
                name: 'M',
                metric: 'memory.usedPercent',
                threshold: 50,
                forSeconds: 0
            });
            for (let round = 0; round < 15; round += 1) {
                for (const percent of [60, 40]) {
                    rig.machine.files.set('/proc/meminfo', memoryOf(percent));
                    await rig.machine.tick();
                }
            }
            rig.machine.files.set('/proc/meminfo', memoryOf(60));
            await rig.machine.tick();
            expect((await rig.get('/alerts')).data).to.have.length(16);
            // The one that fires is not counted.
            await rig.host.restart();
            expect((await rig.get('/alerts')).data.map(({ id }: { id: number }) => id)).to.equal([
                16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6
            ]);
        } finally {
            await rig.end();
        }
    });
});
