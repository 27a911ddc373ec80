/** Lists from elsewhere: fetched, bounded, and kept as they were when a fetch fails. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { parseList } from '../../../../extensions/firewall/src/lists/lists.ts';
import { realMachine } from '../../../../extensions/firewall/src/machine.ts';
import { itUnless } from '../../../support/skip.ts';
import { noNamespaces } from '../namespaces.ts';
import { FirewallRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noNamespaces, it);
const patient = { timeout: 60_000 };
const hourMs = 3_600_000;
const megabyte = 2 ** 20;

describe('parseList', () => {
    it('takes an address or prefix from each line, and counts what is none', () => {
        const text = [
            '# a comment',
            '; another',
            '',
            '192.0.2.1',
            '198.51.100.0/24 ; SBL1',
            '  203.0.113.9\t# seen today\r',
            '203.0.113.10,malware,2026',
            '2001:db8::1',
            '10.0.0.1/8',
            'example.com',
            '<html>'
        ].join('\n');
        const { intervals, skipped } = parseList(text, 'ipv4');
        expect([intervals.length, skipped]).to.equal([4, 4]);
        expect(parseList(text, 'ipv6').intervals.length).to.equal(1);
    });
});

describe('a set from a URL', patient, () => {
    let rig: FirewallRig;
    let id: number;
    const url = 'https://lists.example/drop.txt';
    const shown = async () => (await rig.get(`/sets/${id}`)).data;
    const knock = (localAddress: string): Promise<string> =>
        rig.network.visitor.connect('10.77.0.1', 7001, { localAddress });
    const refresh = async () => {
        const accepted = await rig.post(`/sets/${id}/refresh`);
        expect(accepted.status, accepted.text).to.equal(202);
        return rig.host.tasks.wait(accepted.data.id);
    };
    /** A body of this many mebibytes of comments, and then an address. */
    const large = (count: number): Response =>
        new Response(
            ReadableStream.from(
                (function* () {
                    for (let at = 0; at < count; at += 1) {
                        yield Buffer.alloc(megabyte, `#${'x'.repeat(1022)}\n`);
                    }
                    yield Buffer.from('10.77.1.2\n');
                })()
            )
        );

    before(patient, async () => {
        if (noNamespaces === undefined) {
            rig = await FirewallRig.start();
            await rig.network.server.listen(7001);
            rig.host.network.answer('lists.example', '# nothing yet\n');
            const made = await rig.post('/sets', { name: 'bad', family: 'ipv4', source: 'url', url });
            id = made.data.id;
            await rig.rule({ action: 'reject', sources: ['@bad'] });
            await rig.settle();
        }
    });
    after(patient, () => rig?.close());

    test('is fetched by hand, and in the kernel at once', async () => {
        expect(await knock('10.77.0.2')).to.equal('open');
        rig.host.network.answer('lists.example', '# list\n10.77.0.0/24 ; SBL\nno address\n192.0.2.1\n');
        expect((await refresh()).result).to.equal({ elements: 2, skipped: 1 });
        expect(await shown()).to.include({ elements: 2, skipped: 1, error: null });
        expect(Date.parse((await shown()).updatedAt)).to.be.above(0);
        expect([await knock('10.77.0.2'), await knock('10.77.1.2')]).to.equal(['refused', 'open']);
        expect((await rig.post(`/sets/${id}/elements`, { add: ['10.77.1.2'] })).code).to.equal(40001);
    });

    test('keeps its last good elements when a fetch fails, and says why', async () => {
        const good = (await rig.get(`/sets/${id}/elements`)).data;
        const failures: readonly (readonly [answer: () => Response | string, why: string])[] = [
            [() => new Response('gone', { status: 404 }), '404'],
            [() => large(16), '16 MiB'],
            [() => '<html><body>\nPlease log in\n</body></html>\n', 'no address'],
            [() => '2001:db8::1\n', 'no address'],
            [
                () => {
                    throw new Error('no route to it');
                },
                'no route to it'
            ]
        ];
        for (const [answer, why] of failures) {
            rig.host.network.answer('lists.example', answer);
            const { state, error } = await refresh();
            expect([why, state]).to.equal([why, 'failed']);
            expect(error).to.include({ code: 50250 });
            expect((await shown()).error).to.contain(why);
            expect((await rig.get(`/sets/${id}/elements`)).data).to.equal(good);
            expect(await knock('10.77.0.2')).to.equal('refused');
        }
    });

    test('gives up a list that takes too long, before its first byte or after it', async () => {
        const good = (await rig.get(`/sets/${id}/elements`)).data;
        let isBegun = false;
        // A part of a list, and then nothing until the plugin ends the connection.
        const begun = ({ signal }: Request): Response =>
            new Response(
                new ReadableStream({
                    start(body) {
                        body.enqueue(Buffer.from('10.77.1.2\n'));
                        signal.addEventListener('abort', () => body.error(signal.reason));
                    },
                    pull: () => void (isBegun = true)
                })
            );
        rig.listMs = 250;
        for (const answer of [() => new Promise<Response>(() => undefined), begun]) {
            rig.host.network.answer('lists.example', answer);
            const { state, error } = await refresh();
            expect(state).to.equal('failed');
            expect(error).to.include({ code: 50250 });
            expect((await shown()).error).to.contain('it takes longer than 0.25 s');
            expect((await rig.get(`/sets/${id}/elements`)).data).to.equal(good);
        }
        expect(isBegun).to.be.true();
        rig.listMs = realMachine.listMs;
    });

    test('takes a list that is just short of the limit, and an empty one', async () => {
        rig.host.network.answer('lists.example', () => large(15));
        expect((await refresh()).result).to.equal({ elements: 1, skipped: 0 });
        expect([await knock('10.77.0.2'), await knock('10.77.1.2')]).to.equal(['open', 'refused']);
        rig.host.network.answer('lists.example', '# none today\n');
        expect((await refresh()).result).to.equal({ elements: 0, skipped: 0 });
        expect(await knock('10.77.1.2')).to.equal('open');
    });

    test('is fetched again on time, and again soon after a failure', async () => {
        const asked = (): number => rig.host.network.requests.length;
        rig.host.network.answer('lists.example', '10.77.0.2\n');
        await refresh();
        const then = asked();
        await rig.host.schedules.run('lists');
        rig.ahead = 23 * hourMs;
        await rig.host.schedules.run('lists');
        expect(asked()).to.equal(then);
        rig.ahead = 25 * hourMs;
        rig.host.network.answer('lists.example', () => new Response('', { status: 503 }));
        await rig.host.schedules.run('lists');
        expect([asked(), await knock('10.77.0.2')]).to.equal([then + 1, 'refused']);
        rig.host.network.answer('lists.example', '10.77.1.2\n');
        await rig.host.schedules.run('lists');
        expect(asked()).to.equal(then + 2);
        expect([await knock('10.77.0.2'), await knock('10.77.1.2')]).to.equal(['open', 'refused']);
        await rig.host.schedules.run('lists');
        expect(asked()).to.equal(then + 2);
        rig.ahead = 0;
    });

    test('is made of all countries of a source, or stays as it was', async () => {
        const none = await rig.post('/sets', {
            name: 'lands',
            family: 'ipv4',
            source: 'country',
            countries: ['de']
        });
        expect(none.code).to.equal(40001);
        await rig.host.setSettings({ countrySource: 'https://lists.example/{country}.zone' });
        rig.host.network.answer('lists.example', ({ url: asked }) =>
            asked.endsWith('/de.zone') ? '10.77.0.0/24\n' : '10.77.2.0/24\n'
        );
        const made = await rig.post('/sets', {
            name: 'lands',
            family: 'ipv4',
            source: 'country',
            countries: ['de', 'fr']
        });
        id = made.data.id;
        expect((await refresh()).result).to.equal({ elements: 2, skipped: 0 });
        rig.host.network.answer('lists.example', ({ url: asked }) =>
            asked.endsWith('/de.zone') ? '10.77.1.0/24\n' : new Response('', { status: 500 })
        );
        expect((await refresh()).state).to.equal('failed');
        expect(await shown()).to.include({ elements: 2 });
    });
});
