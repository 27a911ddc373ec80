/** Target 15: the panel's start, its memory, sixteen logins at once, and the proof of work. */
import { hash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { Challenges } from '../../../core/src/features/auth/login/challenge.ts';
import { Passwords } from '../../../core/src/features/users/passwords/passwords.ts';
import { systemClock } from '../../../core/src/platform/clock.ts';
import { solve } from '../../support/panel/client.ts';
import { median, number, type Report } from '../report.ts';
import { startChild } from '../servers/child.ts';
import { startFleet } from '../servers/fleet.ts';
import { memoryOf } from '../servers/load.ts';

const starts = 5;
const counts = [10, 1_000, 10_000] as const;
const logins = 16;

export async function bench(report: Report): Promise<void> {
    await starting(report);
    await hashing(report);
    await proving(report);
}

async function starting(report: Report): Promise<void> {
    const cache = mkdtempSync(join(tmpdir(), 'portico-cache-'));
    const environment = { NODE_COMPILE_CACHE: join(cache, 'panel') };
    process.env['NODE_COMPILE_CACHE'] = join(cache, 'hello');
    try {
        const hello = async (): Promise<{ readonly ready: number; readonly memory: number }> => {
            const child = await startChild('hello.ts', {});
            await wait(300);
            const memory = memoryOf(child.pid);
            await child.close();
            return { ready: child.ready, memory };
        };
        const floorCold = (await hello()).ready;
        const cold = await startFleet(counts[0], '127.0.0.1:9', environment);
        await cold.end('SIGTERM');
        rmSync(environment.NODE_COMPILE_CACHE, { recursive: true, force: true });
        const coldMs = await cold.start();
        const [floor, ours]: [{ ready: number; memory: number }[], number[]] = [[], []];
        for (let n = 0; n < starts; n += 1) {
            floor.push(await hello());
            await cold.end('SIGTERM');
            ours.push(await cold.start());
        }
        await wait(300);
        const memory = memoryOf(cold.pid);
        await cold.close();
        const [ready, floorReady, floorMemory] = [
            median(ours),
            median(floor.map((each) => each.ready)),
            median(floor.map((each) => each.memory))
        ];
        report.add({
            target: '15',
            what: 'ready, against hapi + joi + MikroORM alone',
            value: ready / floorReady,
            most: [1.6, 1.3],
            of: `${number(ready)} of ${number(floorReady)} ms`
        });
        report.add({
            target: '',
            what: 'ready without a compile cache, against the same without one',
            value: coldMs / floorCold,
            of: `${number(coldMs)} of ${number(floorCold)} ms`
        });
        report.add({
            target: '15',
            what: 'memory with 10 hosts, against the same',
            value: memory / floorMemory,
            most: [2, 1.4],
            of: `${number(memory)} of ${number(floorMemory)} MB`
        });
        for (const count of counts.slice(1)) {
            const panel = await startFleet(count, '127.0.0.1:9', environment);
            await panel.end('SIGTERM');
            const again = await panel.start();
            await wait(300);
            report.add({
                target: '',
                what: `ready with ${count} hosts against 10, the engine still running`,
                value: again / ready,
                of: `${number(again)} ms`
            });
            report.add({
                target: '',
                what: `memory with ${count} hosts against 10`,
                value: memoryOf(panel.pid) / memory,
                of: `${number(memoryOf(panel.pid))} MB`
            });
            await panel.close();
        }
    } finally {
        delete process.env['NODE_COMPILE_CACHE'];
        rmSync(cache, { recursive: true, force: true });
    }
}

async function hashing(report: Report): Promise<void> {
    const passwords = new Passwords();
    await passwords.hash('warm up the harbour');
    const lags: number[] = [];
    for (let round = 0; round < 5; round += 1) {
        let [open, longest, last] = [true, 0, performance.now()];
        const watching = (async () => {
            while (open) {
                await wait(1);
                longest = Math.max(longest, performance.now() - last - 1);
                last = performance.now();
            }
        })();
        await Promise.all(Array.from({ length: logins }, (_, n) => passwords.hash(`a quiet harbour ${n}`)));
        open = false;
        await watching;
        lags.push(longest);
    }
    report.add({
        target: '15',
        what: `longest pause of the event loop with ${logins} passwords hashing`,
        value: median(lags),
        unit: 'ms',
        most: [10, 5]
    });
}

async function proving(report: Report): Promise<void> {
    const challenges = new Challenges({
        db: { prepare: () => ({ all: () => [], get: () => undefined }) } as never, // it asks only which challenges are spent
        clock: systemClock,
        key: randomBytes(32)
    });
    const payloads = Array.from({ length: 8 }, () => solve(challenges.create()));
    const verify = async (): Promise<number> => {
        const began = performance.now();
        for (let n = 0; n < 2_000; n += 1) {
            challenges.check(payloads[n % payloads.length] ?? '');
        }
        return (performance.now() - began) / 2_000;
    };
    const tries = 50_000;
    const native = (): number => {
        const began = performance.now();
        for (let n = 0; n < tries; n += 1) {
            hash('sha256', `0123456789abcdef01234567?expires=1700000000&for=login&${n}`);
        }
        return performance.now() - began;
    };
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round < 5; round += 1) {
        ours.push(await verify());
        theirs.push(native());
    }
    const share = median(theirs) / median(ours);
    report.add({
        target: '15',
        what: 'solving a challenge natively against verifying it',
        value: share,
        least: [500, 4_000],
        of: `${number(median(theirs))} ms against ${number(median(ours) * 1000)} µs`
    });
}
