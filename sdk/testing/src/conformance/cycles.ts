/** Enabled and disabled again and again: nothing may be left of any of it. */
import { readdirSync } from 'node:fs';

import type { TestHost } from '../panel/host.ts';
import { leaksOf } from '../panel/options.ts';
import { errorOf, type Finding } from './finding.ts';
import { askAll, type ConformanceRequest } from './requests.ts';

/** Cycles whose traces are taken for those of a first time: caches, code that is compiled, threads of a pool. */
const warming = 5;
/** Beside what is opened and closed just now by the machine itself. */
const tolerance = 2;

/** Runs the cycles on a host that runs, and leaves it running. */
export async function checkCycles(
    host: TestHost,
    cycles: number,
    requests: readonly ConformanceRequest[]
): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    let before = holdings();
    for (let cycle = 1; cycle <= cycles; cycle += 1) {
        await askAll(host, requests);
        const left = leaksOf(await host.stop());
        const taps = host.hooks.taps().filter(({ plugin }) => plugin === host.name);
        if (left.length > 0 || taps.length > 0) {
            const what = [...left, ...taps.map(({ hook }) => `a tap of ${hook}`)];
            findings.push(
                ...what.map((each) =>
                    errorOf(
                        'cycles',
                        `cycle ${cycle}`,
                        `When it was disabled, it left ${each}`,
                        'Make it in onStart and end it in onStop, hand it to ctx.use, or take it from the context (schedule, spawn, dial), which ends it for you'
                    )
                )
            );
            await host.start();
            return findings;
        }
        if (cycle === warming) {
            before = holdings();
        }
        await host.start();
    }
    await host.stop();
    const after = holdings();
    if (cycles > warming) {
        for (const [what, now] of Object.entries(after)) {
            const then = before[what] ?? 0;
            if (now > then + tolerance) {
                findings.push(
                    errorOf(
                        'cycles',
                        `${cycles} cycles`,
                        `There are ${now} ${what}, and there were ${then} after ${warming} cycles`,
                        'Close in onStop what onStart, a route or the module itself opens past the context'
                    )
                );
            }
        }
    }
    await host.start();
    return findings;
}

/** What this process holds, by kind. */
function holdings(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {
        'open files and sockets': 0,
        'listeners on the process': process
            .eventNames()
            .reduce((sum, event) => sum + process.listenerCount(event), 0)
    };
    for (const kind of process.getActiveResourcesInfo()) {
        if (!/Request|Callback|Immediate/i.test(kind)) {
            counts[`resources of the kind ${kind}`] = (counts[`resources of the kind ${kind}`] ?? 0) + 1;
        }
    }
    try {
        counts['open files and sockets'] = readdirSync('/proc/self/fd').length;
    } catch {
        // Only Linux shows them so.
    }
    return counts;
}
