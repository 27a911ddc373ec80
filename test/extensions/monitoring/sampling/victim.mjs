/** A monitor in a process of its own, to be killed: ticks as fast as it can, and says how far it is. Arguments: the folder of its database, the number of the first tick. */
import process from 'node:process';

import { openPluginDatabase } from '../../../../core/src/plugins/runtime/database.ts';
import { entities, migrations } from '../../../../extensions/monitoring/src/entities.ts';
import { Monitor } from '../../../../extensions/monitoring/src/sampling/monitor.ts';
import { memoryOf, TestMachine } from '../machine.ts';

const [, , folder = '', first = '0'] = process.argv;
const db = await openPluginDatabase({ dataDir: folder, entities, migrations });
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
    alertsKept: 1000
};
const quiet = () => undefined;
const machine = new TestMachine();
machine.time += Number(first) * 10_000;
const ctx = {
    settings,
    name: 'monitoring',
    db,
    log: { error: quiet, warn: quiet },
    notify: async ({ title }) => void process.send?.({ told: title })
};
const memory = (tick) => (tick % 20 < 10 ? 40 : 95);
machine.files.set('/proc/meminfo', memoryOf(memory(Number(first))));
const monitor = new Monitor(ctx, machine);
await monitor.start();
if ((await monitor.rules.list()).every(({ name }) => name !== 'Short')) {
    await monitor.rules.create(
        {
            name: 'Short',
            metric: 'memory.usedPercent',
            operator: '>',
            threshold: 90,
            recoverThreshold: 50,
            forSeconds: 0,
            cooldownSeconds: 0,
            severity: 'warning',
            enabled: true
        },
        { ifMatch: null, audit: quiet }
    );
}
process.send?.({ tick: Number(first) });
for (let tick = Number(first) + 1; process.connected; tick += 1) {
    machine.files.set('/proc/meminfo', memoryOf(memory(tick)));
    await machine.tick();
    process.send?.({ tick });
}
