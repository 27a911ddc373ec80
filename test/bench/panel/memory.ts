/** Target 13: the memory of the engine, by the number of hosts and after many reloads; and the memory of the panel. */
import { setTimeout as wait } from 'node:timers/promises';

import { startUpstream } from '../../support/servers/upstream.ts';
import { number, type Report } from '../report.ts';
import { nameOf, startFleet } from '../servers/fleet.ts';
import { memoryOf, statusOf } from '../servers/load.ts';

const counts = [10, 1_000, 10_000] as const;
const applies = 100;
/** Go returns memory to the system some seconds after it was used. */
const restMs = 6_000;

export async function bench(report: Report): Promise<void> {
    const upstream = await startUpstream('one');
    const engine = new Map<number, number>();
    const own = new Map<number, number>();
    try {
        for (const count of counts) {
            const panel = await startFleet(count, upstream.address);
            try {
                const client = await panel.login();
                const pid = panel.enginePid() ?? 0;
                const reload = async (): Promise<void> => {
                    const { code, text } = await client.post('/api/proxyengine/reload');
                    if (code !== 0) {
                        throw new Error(text);
                    }
                    if (
                        (await statusOf(`http://127.0.0.1:${panel.httpPort}/`, { host: nameOf(1) })) !== 200
                    ) {
                        throw new Error('A site is not served');
                    }
                };
                await reload();
                await wait(1_000);
                const first = memoryOf(pid);
                engine.set(count, first);
                own.set(count, memoryOf(panel.pid));
                if (count === counts[2]) {
                    for (let n = 0; n < applies; n += 1) {
                        await reload();
                    }
                    await wait(restMs);
                    report.add({
                        target: '13',
                        what: `engine after ${applies} reloads with traffic against after the first, ${count} hosts`,
                        value: memoryOf(pid) / first,
                        most: [2.5, 1.5],
                        of: `${number(memoryOf(pid))} of ${number(first)} MB`
                    });
                    report.add({
                        target: '',
                        what: `panel after ${applies} reloads against before`,
                        value: memoryOf(panel.pid) / (own.get(count) ?? NaN),
                        of: `${number(memoryOf(panel.pid))} of ${number(own.get(count) ?? NaN)} MB`
                    });
                }
            } finally {
                await panel.close();
            }
        }
    } finally {
        await upstream.close();
    }
    const [few, some, many] = counts.map((count) => engine.get(count) ?? NaN) as [number, number, number];
    report.add({
        target: '13',
        what: 'engine with 10,000 hosts against 10',
        value: many / few,
        most: [4, 2.5],
        of: `${number(many)} of ${number(few)} MB; 1,000 hosts ${number(some)} MB`
    });
    report.add({
        target: '',
        what: 'panel with 10,000 hosts against 10',
        value: (own.get(10_000) ?? NaN) / (own.get(10) ?? NaN),
        of: `${number(own.get(10_000) ?? NaN)} of ${number(own.get(10) ?? NaN)} MB; 1,000 hosts ${number(own.get(1_000) ?? NaN)} MB`
    });
}
