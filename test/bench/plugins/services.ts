/** How long the start of a service takes: under the panel's own supervisor and as a unit of systemd, each against the same without the panel. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';

import { ServicesRig } from '../../support/machine/services.ts';
import { noSystemd, SystemdMachine } from '../../support/machine/systemd.ts';
import { median, number, type Report } from '../report.ts';

const rounds = 25;
const owner = 'bench-1';
const command = {
    grants: { exec: 'sleep', user: null },
    path: '/bin/sleep',
    args: ['600'],
    cwd: '/',
    env: {},
    account: null,
    limits: {},
    restart: 'always',
    stopSeconds: 5,
    stopSignal: 'SIGTERM',
    reloadSignal: null
} as const;

export async function bench(report: Report): Promise<void> {
    await supervised(report);
    if (noSystemd === undefined) {
        await underSystemd(report);
    } else {
        console.log(`      not as a unit: ${noSystemd}`);
    }
}

async function supervised(report: Report): Promise<void> {
    const rig = new ServicesRig();
    try {
        await rig.services.put(owner, 'web', command);
        const [service, bare] = await inTurns(
            async () => {
                await rig.services.stop(owner, 'web');
                return () => rig.services.start(owner, 'web');
            },
            async () => async () => {
                const child = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' });
                await once(child, 'spawn');
                child.kill('SIGKILL');
            }
        );
        report.add({
            target: '17',
            what: 'the start of a service against a bare spawn',
            value: service / bare,
            most: [40, 15],
            of: `${number(service)} of ${number(bare)} ms`
        });
    } finally {
        await rig.close();
    }
}

async function underSystemd(report: Report): Promise<void> {
    const machine = new SystemdMachine();
    try {
        await machine.boot();
        const panel = machine.panel();
        await panel.call('open');
        await panel.call('put', owner, 'web', command);
        writeFileSync(machine.unitPath('bare.service'), '[Service]\nType=exec\nExecStart=/bin/sleep 600\n');
        await machine.run('systemctl', ['daemon-reload']);
        const [service, bare] = await inTurns(
            async () => {
                await panel.call('stop', owner, 'web');
                return () => panel.call('start', owner, 'web');
            },
            async () => {
                await machine.run('systemctl', ['stop', 'bare.service']);
                return () => machine.run('systemctl', ['start', 'bare.service']);
            }
        );
        report.add({
            target: '17',
            what: 'the start of a service as a unit against `systemctl start` of a bare unit',
            value: service / bare,
            most: [8, 4],
            of: `${number(service)} of ${number(bare)} ms`
        });
    } finally {
        await machine.close();
    }
}

/** Does one and the other in turns, and returns the median of each in milliseconds. Each prepares what is then measured. */
async function inTurns(
    ...each: readonly (() => Promise<() => Promise<unknown>>)[]
): Promise<readonly [number, number]> {
    const taken: number[][] = each.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
        for (const [index, prepare] of each.entries()) {
            const run = await prepare();
            const began = performance.now();
            await run();
            taken[index]?.push(performance.now() - began);
        }
    }
    const [first = NaN, second = NaN] = taken.map(median);
    return [first, second];
}
