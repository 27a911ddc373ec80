/** What the process of a test holds, before and after a plugin was switched off and on many times. */
import { readdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { expect } from '@hapi/code';

/** What a hundred generations may leave in the heap: far less than one generation takes, which is some 300 KB. */
const noiseBytes = 4 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

export interface Held {
    readonly files: number;
    readonly resources: Readonly<Record<string, number>>;
    readonly heap: number;
}

/** What the process holds once it is quiet: the least of several looks, since the clients' own connections come and go. */
export async function held(): Promise<Held> {
    const looks: Held[] = [];
    for (let look = 0; look < 6; look += 1) {
        await wait(150);
        collect();
        const resources: Record<string, number> = {};
        for (const name of process.getActiveResourcesInfo()) {
            resources[name] = (resources[name] ?? 0) + 1;
        }
        looks.push({
            files: readdirSync('/proc/self/fd').length,
            resources,
            heap: process.memoryUsage().heapUsed
        });
    }
    return looks.reduce((least, each) =>
        each.files < least.files || (each.files === least.files && each.heap < least.heap) ? each : least
    );
}

/** Fails when there is more of anything; sockets of the clients come and go, and a timer or two are theirs. */
export function expectNoMore(before: Held, after: Held): void {
    expect(after.files).to.be.at.most(before.files);
    for (const [name, count] of Object.entries(after.resources).filter(
        ([kind]) => !['Timeout', 'Immediate', 'TickObject', 'TCPSocketWrap'].includes(kind)
    )) {
        expect([name, count <= (before.resources[name] ?? 0)]).to.equal([name, true]);
    }
    expect((after.resources['Timeout'] ?? 0) - (before.resources['Timeout'] ?? 0)).to.be.at.most(2);
    expect(after.heap - before.heap).to.be.below(noiseBytes);
}
