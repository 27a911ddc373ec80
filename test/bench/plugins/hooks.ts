/** Target 5: what hooks cost with and without taps. */
import { createHookHost } from '@portico/sdk';

import { exampleHost } from '../../support/plugins/example-host.ts';
import { median, number, type Report } from '../report.ts';
import { costOfChange } from './write-cost.ts';

const calls = 20_000;
const rounds = 7;

/** Nanoseconds of one call. */
async function cost(work: () => unknown): Promise<number> {
    const began = performance.now();
    for (let n = 0; n < calls; n += 1) {
        const result = work();
        if (result instanceof Promise) {
            await result;
        }
    }
    return ((performance.now() - began) * 1e6) / calls;
}

/** Medians of rounds that alternate. */
async function costs<K extends string>(
    works: Readonly<Record<K, () => unknown>>
): Promise<Readonly<Record<K, number>>> {
    const names = Object.keys(works) as K[];
    const found = new Map<K, number[]>(names.map((name) => [name, []]));
    for (let round = -2; round < rounds; round += 1) {
        for (const name of names) {
            const taken = await cost(works[name]);
            if (round >= 0) {
                found.get(name)?.push(taken);
            }
        }
    }
    return Object.fromEntries(names.map((name) => [name, median(found.get(name) ?? [])])) as Record<
        K,
        number
    >;
}

export async function bench(report: Report): Promise<void> {
    const host = createHookHost(() => undefined);
    const tapped = host.define('host.afterChange', 'notify');
    const unused = host.define('engine.applied', 'notify');
    const guard = host.define('host.guard', 'guard');
    const waterfall = host.define('host.beforeSave', 'waterfall');
    const happened = { action: 'create', host: exampleHost('a.test') } as const;
    let seen = 0;
    const taps = Array.from({ length: 12 }, () => async () => {
        seen += 1;
    });
    const given: readonly ((payload: unknown, call: object) => Promise<void>)[] = taps;
    taps.forEach((tap, n) => host.tap({ plugin: `p${n}`, version: '1.0.0' }, 'host.afterChange', tap));
    for (let n = 0; n < 5; n += 1) {
        host.tap({ plugin: `p${n}`, version: '1.0.0' }, 'host.guard', () => undefined);
        host.tap({ plugin: `p${n}`, version: '1.0.0' }, 'host.beforeSave', (event) => event);
    }
    const payload = { action: 'create', before: null, after: exampleHost('a.test') } as const;
    const sides = { before: null, host: exampleHost('a.test') } as const;
    const found = await costs({
        loop: async () => {
            for (const tap of taps) {
                await tap();
            }
        },
        isolated: async () => {
            const copy = Object.freeze({ ...happened, host: Object.freeze({ ...happened.host }) });
            for (const tap of given) {
                await tap(copy, { signal: null });
            }
        },
        hook: () => tapped.run(happened),
        unused: () => (unused.used ? unused.run({ revision: 1, reloaded: false }) : undefined),
        request: async () => {
            await waterfall.run(sides);
            await guard.run(payload);
        }
    });
    report.add({
        target: '5',
        what: '12 async taps against a plain awaited loop',
        value: found.hook / found.loop,
        most: [1.2, 0.8],
        of: `${number(found.hook)} of ${number(found.loop)} ns`
    });
    report.add({
        target: '5',
        what: 'the same, against a loop that gives each run a frozen copy of its payload',
        value: found.hook / found.isolated,
        of: `${number(found.hook)} of ${number(found.isolated)} ns`
    });
    report.add({
        target: '5',
        what: 'a hook without taps',
        value: found.unused,
        unit: 'ns',
        most: [50, 5]
    });
    const write = await costOfChange();
    report.add({
        target: '5',
        what: 'the hooks of a change, five taps each, of its processor time',
        value: (found.request / 1000 / write) * 100,
        unit: '%',
        most: [10, 4],
        of: `${number(found.request / 1000)} of ${number(write)} µs`
    });
    if (seen === 0) {
        throw new Error('No tap ran');
    }
}
