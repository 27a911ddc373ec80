/** Measures what the process of a test holds, before and after a plugin was disabled and enabled many times. */
import { readdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { expect } from '@hapi/code';

/** Bytes that a hundred generations may leave in the heap: far less than one generation takes, which is about 300 KB. */
const noiseBytes = 4 * 1024 * 1024;

setFlagsFromString('--expose-gc');
/** Collects all garbage. */
export const collect = runInNewContext('gc') as () => void;

export interface Held {
    readonly files: number;
    readonly resources: Readonly<Record<string, number>>;
    readonly heap: number;
}

const fewestLooks = 6;
const mostLooks = 60;

/**
 * Measures what the process holds: the lowest of several measurements of each, since connections of clients, reads of files and programs that are asked
 * come and go.
 *
 * @param before - what it held earlier: while it has more files than that, it is looked at again, for nine seconds at most
 */
export async function held(before: { readonly files: number } = { files: Infinity }): Promise<Held> {
    const looks: Held[] = [];
    while (
        looks.length < fewestLooks ||
        (looks.length < mostLooks && looks.every(({ files }) => files > before.files))
    ) {
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
    const least = (of: (look: Held) => number): number => Math.min(...looks.map(of));
    const kinds = Object.keys(Object.assign({}, ...looks.map(({ resources }) => resources)));
    return {
        files: least(({ files }) => files),
        resources: Object.fromEntries(
            kinds.map((kind) => [kind, least(({ resources }) => resources[kind] ?? 0)])
        ),
        heap: least(({ heap }) => heap)
    };
}

/** Fails when the process holds more than before. A few sockets and timers of clients are allowed. */
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
