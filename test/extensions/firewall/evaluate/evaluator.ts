import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { noNamespaces } from '../namespaces.ts';
import { FirewallRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noNamespaces, it);
const patient = { timeout: 120_000 };

/** Random numbers that are the same each time (mulberry32). */
function dice(seed: number): (most: number) => number {
    let state = seed;
    return (most) => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) % most;
    };
}

const ports = Array.from({ length: 10 }, (_, at) => 7001 + at);
const rounds = 10;
const sources = ['10.77.0.2', '10.77.1.2', '10.77.2.2', 'fd77::2', 'fd77::3'];
const verdicts: Readonly<Record<string, string>> = { open: 'accept', refused: 'reject', timeout: 'drop' };
let rig: FirewallRig;

describe('the simulation', patient, () => {
    before(patient, async () => {
        if (noNamespaces === undefined) {
            rig = await FirewallRig.start();
            await Promise.all(ports.map((port) => rig.network.server.listen(port)));
        }
    });
    after(patient, () => rig?.close());

    test('agrees with real connections through random rules', async () => {
        const roll = dice(77);
        const pick = <T>(values: readonly T[]): T => values[roll(values.length)] as T;
        const some = <T>(values: readonly T[]): T[] => values.filter(() => roll(3) === 0);
        const action = (): string => pick(['accept', 'drop', 'reject']);
        const rule = (): object => ({
            direction: pick(['in', 'in', 'in', 'in', 'in', 'out']),
            action: action(),
            family: pick(['any', 'any', 'ipv4', 'ipv6']),
            protocol: pick(['any', 'tcp', 'tcp', 'udp']),
            ports: pick([[], some(ports).map(String), ['7002-7004', '7008-7010'], ['7001']]),
            services: pick([[], [], [], ['pair']]),
            sources: pick([
                [],
                some(sources),
                ['10.77.1.0/24'],
                ['@four'],
                ['@six', '10.77.2.2'],
                ['fd77::/64']
            ]),
            destinations: pick([[], [], ['10.77.0.1'], ['10.77.0.0/16', 'fd77::1']]),
            interface: pick([null, null, 'v0', 'v*', 'eth7', 'lo']),
            enabled: roll(8) !== 0
        });
        await rig.post('/services', { name: 'pair', ports: ['tcp/7005', 'udp/7001', 'tcp/7006'] });
        const [four, six] = [
            await rig.post('/sets', { name: 'four', family: 'ipv4' }),
            await rig.post('/sets', { name: 'six', family: 'ipv6' })
        ];
        await rig.post(`/sets/${four.data.id}/elements`, { add: ['10.77.2.0/24', '10.77.0.2'] });
        await rig.post(`/sets/${six.data.id}/elements`, { add: ['fd77::3'] });
        await rig.post('/zones', { name: 'near', sources: ['10.77.1.0/24', 'fd77::2'], policy: null });
        const wrong: unknown[] = [];
        const seen = new Set<string>();
        let cases = 0;
        for (let round = 0; round < rounds; round += 1) {
            const rules = Array.from({ length: 6 }, () => {
                const made = rule() as { direction: string };
                return made.direction === 'out' ? made : { ...made, zone: pick([null, null, null, 'near']) };
            });
            const exported = (await rig.get('/export')).data.document;
            const document = {
                ...exported,
                policy: { input: action(), output: 'accept', forward: 'accept', container: 'accept' },
                rules,
                zones: [
                    {
                        name: 'near',
                        sources: ['10.77.1.0/24', 'fd77::2'],
                        policy: pick([null, null, 'accept', 'drop', 'reject'])
                    }
                ],
                nat:
                    roll(3) === 0
                        ? [
                              {
                                  type: 'redirect',
                                  protocol: 'tcp',
                                  ports: ['7004'],
                                  to: '7001',
                                  sources: pick([[], ['10.77.1.2']])
                              }
                          ]
                        : []
            };
            const imported = await rig.post('/import', { document, mode: 'replace' });
            expect(imported.status, imported.text).to.equal(200);
            await rig.settle();
            const tried = sources.flatMap((source) => ports.map((port) => ({ source, port })));
            const results = await Promise.all(
                tried.map(async ({ source, port }) => {
                    const destination = source.includes(':') ? 'fd77::1' : '10.77.0.1';
                    const { data } = await rig.post('/simulate', {
                        source,
                        destination,
                        protocol: 'tcp',
                        port,
                        which: 'applied'
                    });
                    const connect = (timeoutMs: number): Promise<string> =>
                        rig.network.visitor.connect(destination, port, { localAddress: source, timeoutMs });
                    const first = await connect(300);
                    // On a busy machine, an answer may take longer.
                    const isLate = first === 'timeout' && data.verdict !== 'drop';
                    const real = isLate ? await connect(5_000) : first;
                    return { source, port, said: data, real: verdicts[real] ?? real };
                })
            );
            cases += results.length;
            results.forEach(({ real }) => seen.add(real));
            wrong.push(
                ...results
                    .filter(({ said, real }) => said.verdict !== real)
                    .map((each) => ({ round, ...each, rules }))
            );
        }
        expect(wrong.slice(0, 2)).to.equal([]);
        expect([cases, [...seen].sort()]).to.equal([500, ['accept', 'drop', 'reject']]);
    });
});
